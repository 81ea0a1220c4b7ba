package org.windrow;

import java.lang.ref.Cleaner;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/**
 * An open database, and its default keyspace. Any number of threads may use it at once.
 *
 * <pre>{@code
 * try (Db db = Db.open(Path.of("data"))) {
 *     db.put("apple".getBytes(), "red".getBytes());
 * }
 * }</pre>
 */
public final class Db extends Keyspace {
    /** Attempts of {@link #transact} before it gives up. */
    private static final int ATTEMPTS_MAX = 100;

    private final long database;
    private final Cleaner.Cleanable cleanable;

    Db(long database) {
        super(Native.defaultKeyspace(Db.class, database));
        this.database = database;
        this.cleanable = whenForgotten(this, database, Native::freeDatabase);
    }

    /** Opens the database in a directory, and makes both if they do not exist. */
    public static Db open(Path path) {
        return open(path, new Options());
    }

    /** Opens a database with options. */
    public static Db open(Path path, Options options) {
        return new Db(Native.open(path.toString(), options.flags(), options.settings(), options.keyspace(),
                options.names(), options.components()));
    }

    /** Makes a damaged database openable again. */
    public static RepairReport repair(Path path, Options options) {
        return RepairReport.of(Native.repair(path.toString(), options.flags(), options.settings(),
                options.keyspace(), options.names(), options.components()));
    }

    /** Removes a database's files, and its directory if nothing else is in it. */
    public static void destroy(Path path) {
        Native.destroy(path.toString());
    }

    // ---- keyspaces

    /** The keyspace of that name, made if there is none. */
    public Keyspace keyspace(String name) {
        return keyspace(name, new KeyspaceOptions());
    }

    /** The keyspace of that name, made with these options if there is none; settings are stored with it. */
    public Keyspace keyspace(String name, KeyspaceOptions options) {
        Objects.requireNonNull(name, "the name is null");
        return new Keyspace(Native.keyspace(this, database, name, options.words()));
    }

    /** The keyspace of that name; null if there is none. */
    public Keyspace findKeyspace(String name) {
        long found = Native.findKeyspace(this, database, Objects.requireNonNull(name, "the name is null"));
        return found == 0 ? null : new Keyspace(found);
    }

    /** The names of all keyspaces. */
    public List<String> keyspaces() {
        return List.of(Native.keyspaces(this, database));
    }

    /** Drops a keyspace with all its data. */
    public void dropKeyspace(String name) {
        Native.dropKeyspace(this, database, Objects.requireNonNull(name, "the name is null"));
    }

    // ---- batches, snapshots, transactions

    /** Writes a batch: all of its operations or none. Returns the sequence number of the last one. */
    public long write(Batch batch) {
        return write(batch, false);
    }

    /** The same; with {@code sync} it is on the device when the call returns. */
    public long write(Batch batch, boolean sync) {
        return Native.write(
                batch.owners(this), database, batch.operations(), batch.byteSize(), batch.handles(), sync);
    }

    /** A snapshot: all keyspaces as they are now. */
    public Snapshot snapshot() {
        return new Snapshot(Native.snapshot(this, database));
    }

    /** Begins a transaction. */
    public Transaction transaction(TransactionOptions options) {
        return new Transaction(this, Native.transaction(
                this, database, options.pessimistic(), options.lockTimeout().toMillis()));
    }

    /** Runs a transaction and commits it; again after a conflict. Returns the result of {@code work}. */
    public <T> T transact(Function<Transaction, T> work) {
        return transact(TransactionOptions.OPTIMISTIC, work);
    }

    /** The same, with options. An exception of {@code work} ends it, and nothing is written. */
    public <T> T transact(TransactionOptions options, Function<Transaction, T> work) {
        for (int attempt = 1;; attempt++) {
            try (Transaction transaction = transaction(options)) {
                T result = work.apply(transaction);
                transaction.commit(options.sync());
                return result;
            } catch (ConflictException e) {
                if (attempt == ATTEMPTS_MAX) {
                    throw e;
                }
            }
        }
    }

    // ---- the database

    /** Makes all writes so far durable. */
    public void sync() {
        Native.sync(this, database);
    }

    /** Writes all memtables to tables. */
    @Override
    public void flush() {
        Native.flush(this, database);
    }

    /** Merges all keyspaces down to their last levels, and returns when that is done. */
    public void compactAll() {
        Native.compactAll(this, database);
    }

    /** Waits until no flush or merge is due. */
    public void waitIdle() {
        Native.waitIdle(this, database);
    }

    /** Makes a copy of the database as it is now, in a directory that is empty or does not exist. */
    public void checkpoint(Path path) {
        Native.checkpoint(this, database, path.toString());
    }

    /** Checks every checksum. Returns the problems. */
    public List<String> verify() {
        return List.of(Native.verify(this, database));
    }

    /** Turns writing on again after a failure, once its cause is gone. */
    public void resume() {
        Native.resume(this, database);
    }

    /** The exception that turned writing off; null while it is on. */
    public RuntimeException writeError() {
        return Native.writeError(this, database);
    }

    /** All counters and sizes. */
    public Stats stats() {
        return new Stats(Native.statsRows(this, database));
    }

    /** The same as a readable table. */
    public String statsText() {
        return Native.stats(this, database, false);
    }

    /** The same as JSON. */
    public String statsJson() {
        return Native.stats(this, database, true);
    }

    /** For tests: makes the library panic. */
    void panic() {
        Native.panic(this, database);
    }

    /**
     * Flushes, makes everything durable, and frees the directory. Keyspaces and transactions throw
     * {@link ClosedException} from then on; open iterators, cursors and snapshots stay readable. A second call does
     * nothing.
     */
    @Override
    public void close() {
        try {
            Native.close(this, database);
        } finally {
            cleanable.clean();
            super.close();
        }
    }
}
