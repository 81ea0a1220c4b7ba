package org.windrow.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.windrow.Db;
import org.windrow.Entry;
import org.windrow.Keyspace;
import org.windrow.KeyspaceOptions;
import org.windrow.Options;
import org.windrow.Scan;
import org.windrow.Stats;
import org.windrow.WindrowException;

/**
 * The database of one instance of a program, for all stores whose tasks have one state directory. So there is one
 * budget of memory and one log, and a batch may be of several stores.
 *
 * <p>A store is a keyspace in it. Kafka removes the state of a task with its directory: when it is wiped, cleaned up,
 * or unused for long. So each store has a small file there that names its keyspace. A keyspace without a file is
 * dropped when the database is opened, and when a store comes that is new here: after a rebalance the tasks that have
 * left do not take room until the program is started again.
 *
 * <p>Rejected: a database for each store, as with RocksDB. Each would have a budget, a log and threads of its own, with
 * no bound on their sum.
 *
 * <p>Owns: the open databases, the stores that use each, the keyspace of each store, and the removal of a database that
 * no store needs any more. Never does: read or write a store's entries.
 */
final class Instance {
    /** The database in the directory of all tasks; {@link #MARKS} is the folder in each task's own directory. */
    private static final String DATABASE = "windrow.db";

    private static final String MARKS = "windrow";
    private static final String STORE_PREFIX = "store/";
    private static final long STATS_AGE_NS = 1_000_000_000L;

    private static final Map<Path, Instance> OPEN = new HashMap<>();

    private final Path path;
    private final Db db;
    /** Offsets, positions, and the paths of the files that name a keyspace. */
    private final Keyspace meta;
    /** Earlier values for changes that may be rolled back; see {@link Table}. */
    private final Keyspace undo;
    private final long bufferBytesMax;
    private int stores;
    /** The names of the keyspaces of open stores. Guarded by itself, and held while keyspaces are made and dropped. */
    private final Set<String> used = new HashSet<>();

    /** The bytes of uncommitted changes on the heap, of all stores. */
    final AtomicLong bufferBytes = new AtomicLong();

    private Stats stats;
    private long statsNs;

    private Instance(Path path, WindrowConfig config) {
        this.path = path;
        Options options = new Options();
        config.settings().forEach(options::set);
        db = Db.open(path, options);
        // Small, and written with every commit: more levels would gain nothing.
        meta = db.keyspace("meta", new KeyspaceOptions());
        undo = db.keyspace("undo", new KeyspaceOptions());
        // A batch is a quarter of the database's memory at most.
        long memoryBytes = db.stats().count("memory.budget_bytes");
        bufferBytesMax = Math.max(1, Math.min(config.bufferBytes(), memoryBytes / 8));
        dropForgotten();
    }

    /** The instance of a task's store, opened for the first store. */
    static Instance acquire(StateStoreContext context) {
        Path path = place(context);
        synchronized (OPEN) {
            Instance instance = OPEN.get(path);
            if (instance == null) {
                instance = open(path, context);
                OPEN.put(path, instance);
            }
            instance.stores++;
            return instance;
        }
    }

    private static Instance open(Path path, StateStoreContext context) {
        try {
            Files.createDirectories(path.getParent());
            return new Instance(path, new WindrowConfig(context.appConfigs()));
        } catch (IOException | WindrowException e) {
            throw new ProcessorStateException("Error opening the database " + path + ": " + e.getMessage(), e);
        }
    }

    /** The common directory of all tasks of a program; in a test's context, its own. */
    private static Path place(StateStoreContext context) {
        File stateDir = context.stateDir().getAbsoluteFile();
        File up = stateDir.getParentFile();
        for (int levels = 0; levels < 2 && up != null; levels++, up = up.getParentFile()) {
            if (up.getName().equals(context.applicationId())) {
                return up.toPath().resolve(DATABASE);
            }
        }
        return stateDir.toPath().resolve(DATABASE);
    }

    /** Releases it for one store, whose keyspace has this name (null: it got none); the last release closes it. */
    void release(String keyspace) {
        synchronized (used) {
            used.remove(keyspace);
        }
        synchronized (OPEN) {
            stores--;
            if (stores == 0) {
                OPEN.remove(path);
                db.close();
            }
        }
    }

    Db db() {
        return db;
    }

    Keyspace meta() {
        return meta;
    }

    Keyspace undo() {
        return undo;
    }

    /** Whether a store must write: all together have more than the limit, and it has more than half of its part. */
    boolean isOver(long ofOneStore) {
        return bufferBytes.get() > bufferBytesMax && ofOneStore * Math.max(1, stores) * 2 > bufferBytesMax;
    }

    long bufferBytesMax() {
        return bufferBytesMax;
    }

    /** The statistics, a second old at most. */
    synchronized Stats stats() {
        long now = System.nanoTime();
        if (stats == null || now - statsNs > STATS_AGE_NS) {
            stats = db.stats();
            statsNs = now;
        }
        return stats;
    }

    // ---- the keyspaces of stores

    /** A store's keyspace, and whether it is new. */
    record Place(String name, Keyspace keyspace, boolean isNew) {}

    /** The keyspace that the file in the task's directory names, or a new one. */
    Place place(StateStoreContext context, String store) {
        Path mark = context.stateDir().toPath().toAbsolutePath().resolve(MARKS).resolve(store);
        synchronized (used) {
            Place place = place(mark, store);
            used.add(place.name());
            return place;
        }
    }

    private Place place(Path mark, String store) {
        try {
            if (Files.exists(mark)) {
                String name = Files.readString(mark);
                Keyspace keyspace = name.startsWith(STORE_PREFIX) ? db.findKeyspace(name) : null;
                if (keyspace != null) {
                    return new Place(name, keyspace, false);
                }
            }
            dropForgotten();
            String name = STORE_PREFIX + Long.toHexString(nextNumber());
            Keyspace keyspace = db.keyspace(name);
            // The entry first: a keyspace whose file is missing is dropped by the next open.
            meta.put(markKey(name), mark.toString().getBytes(StandardCharsets.UTF_8));
            Files.createDirectories(mark.getParent());
            Files.writeString(mark, name);
            return new Place(name, keyspace, true);
        } catch (IOException e) {
            throw new ProcessorStateException("Error making " + mark + " for the store " + store, e);
        }
    }

    private long nextNumber() {
        byte[] key = "next".getBytes(StandardCharsets.UTF_8);
        byte[] next = meta.update(key, before -> Numbers.bytes(before == null ? 1 : Numbers.number(before, 0) + 1));
        return Numbers.number(next, 0);
    }

    private static byte[] markKey(String name) {
        return ("mark\0" + name).getBytes(StandardCharsets.UTF_8);
    }

    /** Drops the keyspaces of stores whose directories are gone, but for those of open stores. */
    private void dropForgotten() {
        for (String name : db.keyspaces()) {
            if (name.startsWith(STORE_PREFIX) && !used.contains(name) && isForgotten(name)) {
                db.dropKeyspace(name);
                forget(name);
            }
        }
    }

    private boolean isForgotten(String name) {
        byte[] mark = meta.get(markKey(name));
        if (mark == null) {
            return true;
        }
        try {
            Path path = Path.of(new String(mark, StandardCharsets.UTF_8));
            return !Files.exists(path) || !Files.readString(path).equals(name);
        } catch (IOException e) {
            // A file that cannot be read now is no reason to drop its keyspace.
            return false;
        }
    }

    private void forget(String name) {
        meta.delete(markKey(name));
        byte[] prefix = metaPrefix(name);
        for (Keyspace keyspace : new Keyspace[] {meta, undo}) {
            Scan scan = keyspace.scan().prefix(prefix).keysOnly();
            for (Entry entry : scan) {
                keyspace.delete(entry.key());
            }
        }
    }

    /**
     * Removes the database in the common directory of all tasks, and that directory if nothing is left in it. Does
     * nothing while a store is open, or a task has state; returns whether there is no database any more.
     */
    static boolean cleanUp(Path tasks) {
        Path path = tasks.toAbsolutePath().resolve(DATABASE);
        // No store of this process opens it meanwhile. Another process that has it open holds its lock.
        synchronized (OPEN) {
            try {
                if (OPEN.containsKey(path) || hasMarks(tasks)) {
                    return false;
                }
                Db.destroy(path);
                try {
                    Files.deleteIfExists(tasks);
                } catch (DirectoryNotEmptyException e) {
                    // Kafka has files of its own there.
                }
                return !Files.exists(path);
            } catch (IOException | WindrowException e) {
                throw new ProcessorStateException("Error removing the database " + path + ": " + e.getMessage(), e);
            }
        }
    }

    /** Whether the directory of any task has a file that names a keyspace. */
    private static boolean hasMarks(Path tasks) throws IOException {
        if (!Files.isDirectory(tasks)) {
            return false;
        }
        // The same places as those of a task's directory in acquire().
        try (Stream<Path> marks = Files.find(tasks, 3, (file, facts) -> file.endsWith(MARKS) && facts.isDirectory())) {
            return marks.findAny().isPresent();
        }
    }

    /** The prefix of a store's keys in {@link #meta} and in {@link #undo}. */
    static byte[] metaPrefix(String name) {
        return (name + "\0").getBytes(StandardCharsets.UTF_8);
    }
}
