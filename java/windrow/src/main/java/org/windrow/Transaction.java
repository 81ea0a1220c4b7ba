package org.windrow;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads and writes that take effect at one moment, as if there were no other writers, or not at all. It sees the moment
 * at which it was begun, and its own writes. Closed without {@link #commit}, it has no effect. For one thread at a
 * time. {@link Db#transact} runs a transaction again after a conflict.
 */
public final class Transaction extends Handle {
    private static final int NO_LOCK = 0;
    private static final int FOR_UPDATE = 1;
    private static final int FOR_SHARE = 2;

    private final Db db;

    Transaction(Db db, long handle) {
        super(handle, Native::freeTransaction);
        this.db = db;
    }

    private Object owners(Keyspace keyspace) {
        return new Object[] {this, db, keyspace};
    }

    /** The value of a key; null if there is none. */
    public byte[] get(Keyspace keyspace, byte[] key) {
        return Native.transactionGet(owners(keyspace), handle, keyspace.handle, key, NO_LOCK);
    }

    /** The value of a key, which is locked until the end: other transactions that lock it wait. */
    public byte[] getForUpdate(Keyspace keyspace, byte[] key) {
        return Native.transactionGet(owners(keyspace), handle, keyspace.handle, key, FOR_UPDATE);
    }

    /** The value of a key, which other transactions may read but not write until the end. */
    public byte[] getForShare(Keyspace keyspace, byte[] key) {
        return Native.transactionGet(owners(keyspace), handle, keyspace.handle, key, FOR_SHARE);
    }

    /** Entries from one key to before another (null: no bound), {@code limit} at most. */
    public List<Entry> scan(Keyspace keyspace, byte[] from, byte[] to, boolean reverse, int limit) {
        byte[] chunk = Native.transactionScan(
                owners(keyspace), handle, keyspace.handle, from, to, reverse, Math.max(limit, 0));
        List<Entry> entries = new ArrayList<>();
        new EntryIterator(chunk).forEachRemaining(entries::add);
        return entries;
    }

    /** Puts. */
    public void put(Keyspace keyspace, byte[] key, byte[] value) {
        write(Batch.PUT, keyspace, key, value, Keyspace.OWN_TTL);
    }

    /** Puts with a time to live. */
    public void put(Keyspace keyspace, byte[] key, byte[] value, Duration ttl) {
        write(Batch.PUT_TTL, keyspace, key, value, Keyspace.ttlMillis(ttl));
    }

    /** Deletes. */
    public void delete(Keyspace keyspace, byte[] key) {
        write(Batch.DELETE, keyspace, key, new byte[0], Keyspace.OWN_TTL);
    }

    /** Deletes all keys from one to before another. */
    public void deleteRange(Keyspace keyspace, byte[] from, byte[] to) {
        write(Batch.DELETE_RANGE, keyspace, from, to, Keyspace.OWN_TTL);
    }

    /** Adds an operand for the keyspace's merge operator. */
    public void merge(Keyspace keyspace, byte[] key, byte[] operand) {
        write(Batch.MERGE, keyspace, key, operand, Keyspace.OWN_TTL);
    }

    private void write(int operation, Keyspace keyspace, byte[] key, byte[] value, long ttlMillis) {
        java.util.Objects.requireNonNull(value, "the value is null");
        Native.transactionWrite(owners(keyspace), handle, operation, keyspace.handle, key, value, ttlMillis);
    }

    /** Sets a savepoint, to which {@link #rollbackToSavepoint} goes back. Savepoints nest. */
    public void savepoint() {
        Native.savepoint(this, handle);
    }

    /** Drops the writes since the last savepoint, and the savepoint. */
    public void rollbackToSavepoint() {
        Native.rollbackToSavepoint(this, handle);
    }

    /** Writes all, or throws and writes nothing ({@link ConflictException}: run it again). It has ended in any case. */
    public void commit() {
        commit(false);
    }

    /** The same; with {@code sync} it is on the device when the call returns. */
    public void commit(boolean sync) {
        try (this) {
            Native.commit(this, handle, sync);
        }
    }
}
