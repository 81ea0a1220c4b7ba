package org.windrow;

/**
 * The library, method by method. Handles are numbers that the library looks up: it throws for one that is closed, or
 * never existed. The object that owns a handle is an argument, so that it is not collected, and its handle
 * closed, while the method runs.
 *
 * <p>Owns: the native methods. Never does: check an argument; the library does.
 */
final class Native {
    static {
        Library.load();
    }

    private Native() {}

    // ---- databases

    static native long open(
            String path, int flags, String[] settings, String[] keyspace, String[] names, Object[] components);

    static native String[] repair(
            String path, int flags, String[] settings, String[] keyspace, String[] names, Object[] components);

    static native void destroy(String path);

    static native void close(Object owner, long database);

    static native void freeDatabase(long database);

    static native long snapshot(Object owner, long database);

    static native void freeSnapshot(long snapshot);

    static native void sync(Object owner, long database);

    static native void flush(Object owner, long database);

    static native void compactAll(Object owner, long database);

    static native void waitIdle(Object owner, long database);

    static native void checkpoint(Object owner, long database, String path);

    static native String[] verify(Object owner, long database);

    static native void resume(Object owner, long database);

    static native RuntimeException writeError(Object owner, long database);

    static native String stats(Object owner, long database, boolean json);

    static native String[] statsRows(Object owner, long database);

    static native void panic(Object owner, long database);

    // ---- followers

    static native long follow(
            String path, int flags, String[] settings, String[] keyspace, String[] names, Object[] components);

    static native long followed(Object owner, long follower);

    static native boolean refresh(Object owner, long follower);

    static native void refreshEvery(Object owner, long follower, long millis);

    static native void freeFollower(long follower);

    // ---- keyspaces

    static native long keyspace(Object owner, long database, String name, String[] options);

    static native long findKeyspace(Object owner, long database, String name);

    static native long defaultKeyspace(Object owner, long database);

    static native String[] keyspaces(Object owner, long database);

    static native void dropKeyspace(Object owner, long database, String name);

    static native long synced(Object owner, long keyspace);

    static native String name(Object owner, long keyspace);

    static native String policy(Object owner, long keyspace);

    static native void setPolicy(Object owner, long keyspace, String policy);

    static native void configure(Object owner, long keyspace, String[] options);

    static native long count(Object owner, long keyspace, byte[] from, byte[] to);

    static native long approximateCount(Object owner, long keyspace);

    static native long approximateBytes(Object owner, long keyspace, byte[] from, byte[] to);

    static native void flushKeyspace(Object owner, long keyspace);

    static native void compactRange(Object owner, long keyspace, byte[] from, byte[] to);

    static native void freeKeyspace(long keyspace);

    // ---- reads

    static native byte[] get(Object owner, long keyspace, byte[] key);

    static native byte[] getAt(Object owner, long keyspace, long snapshot, byte[] key);

    static native int getDirect(
            Object owner, long keyspace, Object key, int keyAt, int keyLen, Object value, int valueAt, int valueLen);

    static native boolean contains(Object owner, long keyspace, byte[] key);

    static native byte[][] getAll(Object owner, long keyspace, long snapshot, byte[][] keys);

    static native byte[][] end(Object owner, long keyspace, boolean last, boolean pop);

    static native long ttl(Object owner, long keyspace, byte[] key);

    static native byte[] scan(
            Object owner, long keyspace, byte[] from, byte[] to, int flags, int limit, long snapshot);

    static native byte[] scanOn(Object owner, long scan);

    static native void freeScan(long scan);

    static native long cursor(Object owner, long keyspace, byte[] from, byte[] to, int flags, long snapshot);

    static native byte[] move(Object owner, long cursor, int how, byte[] key);

    static native void freeCursor(long cursor);

    // ---- writes

    static native void put(Object owner, long keyspace, byte[] key, byte[] value, long ttlMillis);

    static native void putDirect(
            Object owner, long keyspace, Object key, int keyAt, int keyLen, Object value, int valueAt, int valueLen);

    static native void delete(Object owner, long keyspace, byte[] key);

    static native void deleteRange(Object owner, long keyspace, byte[] from, byte[] to);

    static native void merge(Object owner, long keyspace, byte[] key, byte[] operand);

    static native boolean compareAndSet(Object owner, long keyspace, byte[] key, byte[] old, byte[] value);

    static native byte[] putIfAbsent(Object owner, long keyspace, byte[] key, byte[] value);

    static native byte[] remove(Object owner, long keyspace, byte[] key);

    static native void clear(Object owner, long keyspace);

    static native long write(
            Object owner, long database, byte[] operations, int length, long[] keyspaces, boolean sync);

    static native long ingest(Object owner, long keyspace);

    static native void ingestOn(Object owner, long ingest, byte[] entries, int length);

    static native long ingestFinish(Object owner, long ingest);

    static native void freeIngest(long ingest);

    // ---- transactions

    static native long transaction(Object owner, long database, boolean pessimistic, long lockTimeoutMillis);

    static native byte[] transactionGet(Object owner, long transaction, long keyspace, byte[] key, int lock);

    static native void transactionWrite(
            Object owner, long transaction, int operation, long keyspace, byte[] key, byte[] value, long ttlMillis);

    static native byte[] transactionScan(
            Object owner, long transaction, long keyspace, byte[] from, byte[] to, boolean reverse, int limit);

    static native void savepoint(Object owner, long transaction);

    static native void rollbackToSavepoint(Object owner, long transaction);

    static native void commit(Object owner, long transaction, boolean sync);

    static native void freeTransaction(long transaction);
}
