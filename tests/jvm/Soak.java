import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.windrow.Batch;
import org.windrow.Cursor;
import org.windrow.Db;
import org.windrow.Entry;
import org.windrow.Follower;
import org.windrow.Ingest;
import org.windrow.Keyspace;
import org.windrow.KeyspaceOptions;
import org.windrow.Options;
import org.windrow.Scan;
import org.windrow.Snapshot;
import org.windrow.Transaction;
import org.windrow.TransactionOptions;

/** Everything, again and again, for a number of seconds: resident memory, descriptors and threads must not grow. */
public class Soak {
    private static int rounds;

    static byte[] b(String text) {
        return text.getBytes();
    }

    private static Options options() {
        return new Options().memoryBytes(16 << 20).mergeOperator("longest", (key, base, operands) -> {
            byte[] longest = base == null ? new byte[0] : base;
            for (byte[] operand : operands) {
                longest = operand.length > longest.length ? operand : longest;
            }
            return longest;
        });
    }

    private static void once(Path path) throws Exception {
        try (Db db = Db.open(path, options())) {
            Keyspace users = db.keyspace("users", new KeyspaceOptions().mergeOperator("longest"));
            ByteBuffer key = ByteBuffer.allocateDirect(16);
            ByteBuffer value = ByteBuffer.allocateDirect(256);
            Batch batch = new Batch();
            for (int at = 0; at < 2000; at++) {
                String name = Integer.toString(at * 7919 % 5000);
                db.put(b(name), new byte[200]);
                users.merge(b(name), new byte[at % 50]);
                batch.put(users, b("b" + at), b("z"));
                db.get(key.clear().put(b(name)).flip(), value.clear());
            }
            db.write(batch);
            db.transact(tx -> {
                tx.put(db, b("n"), b("" + rounds));
                return null;
            });
            reads(db, users);
            refusals(db, users);
            try (Ingest ingest = db.keyspace("sorted").ingest()) {
                for (int at = 1000; at < 2000; at++) {
                    ingest.put(b("" + at), new byte[100]);
                }
                ingest.finish();
            }
            try (Follower follower = Follower.open(path, options()); Db seen = follower.db()) {
                follower.refresh();
                seen.get(b("n"));
            }
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                threads.add(new Thread(() -> {
                    for (int at = 0; at < 300; at++) {
                        db.get(b("" + at));
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            db.stats();
        }
    }

    private static void reads(Db db, Keyspace users) {
        long read = 0;
        try (Snapshot snapshot = db.snapshot()) {
            Scan scan = db.scan().at(snapshot).reverse();
            for (Entry entry : scan) {
                read += entry.value().length;
            }
        }
        for (Entry entry : users.scan().prefix(b("b"))) {
            read += entry.key().length;
        }
        try (Cursor cursor = db.cursor()) {
            cursor.seekLast();
            read += cursor.value().length;
        }
        // Forgotten: the cleaner closes them.
        db.cursor().seekFirst();
        db.scan().iterator().next();
        db.snapshot();
        Transaction transaction = db.transaction(TransactionOptions.PESSIMISTIC);
        transaction.put(users, b("lock" + rounds), b(""));
        transaction.close();
        if (read == 0) {
            throw new AssertionError("nothing was read");
        }
    }

    private static void refusals(Db db, Keyspace users) {
        for (Runnable wrong : List.<Runnable>of(() -> db.put(null, b("")), () -> db.put(new byte[70_000], b("")),
                () -> users.setPolicy("none"), () -> db.merge(b("a"), b("")))) {
            try {
                wrong.run();
                throw new AssertionError("it was not refused");
            } catch (NullPointerException | IllegalArgumentException e) {
                Reference.reachabilityFence(e);
            }
        }
    }

    private record Held(long residentBytes, int descriptors, int threads) {
        static Held now() throws Exception {
            System.gc();
            Thread.sleep(200);
            String[] statm = Files.readString(Path.of("/proc/self/statm")).split(" ");
            return new Held(Long.parseLong(statm[1]) * 4096, Path.of("/proc/self/fd").toFile().list().length,
                    Path.of("/proc/self/task").toFile().list().length);
        }
    }

    public static void main(String[] args) throws Exception {
        long seconds = Long.parseLong(args[0]);
        Path directory = Files.createTempDirectory(Path.of(args[1]), "soak");
        long begin = System.nanoTime();
        Held early = null;
        while (System.nanoTime() - begin < seconds * 1_000_000_000L) {
            once(directory.resolve("db"));
            rounds++;
            if (early == null && System.nanoTime() - begin > seconds * 250_000_000L) {
                early = Held.now();
            }
        }
        Held late = Held.now();
        Db.destroy(directory.resolve("db"));
        Files.delete(directory);
        System.out.printf("%d rounds in %d s: %d MiB, %d descriptors, %d threads after a quarter, %d MiB, %d, %d at the"
                + " end%n", rounds, seconds, early.residentBytes >> 20, early.descriptors, early.threads,
                late.residentBytes >> 20, late.descriptors, late.threads);
        boolean grows = late.descriptors > early.descriptors + 2 || late.threads > early.threads + 2
                || late.residentBytes > early.residentBytes * 1.1 + (8 << 20);
        if (grows) {
            throw new AssertionError("it grows");
        }
    }
}
