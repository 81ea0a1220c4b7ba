package org.windrow;

/**
 * The range and the direction of a scan: {@code for (Entry entry : keyspace.scan().prefix(key))}. An iterator closes
 * itself at its end; close one that does not reach it.
 */
public final class Scan implements Iterable<Entry> {
    static final int REVERSE = 1;
    private static final int PASS_CACHE_BY = 2;
    private static final int KEYS_ONLY = 4;

    private final Keyspace keyspace;
    private byte[] from;
    private byte[] to;
    private int flags;
    private int limit = -1;
    private Snapshot snapshot;

    Scan(Keyspace keyspace) {
        this.keyspace = keyspace;
    }

    /** The first key that may be returned; null: no bound. */
    public Scan from(byte[] key) {
        from = key;
        return this;
    }

    /** The end of the range, which is not returned; null: no bound. */
    public Scan to(byte[] key) {
        to = key;
        return this;
    }

    /** Only keys with this prefix. */
    public Scan prefix(byte[] prefix) {
        from = prefix;
        to = behind(prefix);
        return this;
    }

    /** From the last key to the first one. */
    public Scan reverse() {
        flags |= REVERSE;
        return this;
    }

    /** The most entries that are returned, and read: limits reading ahead. Cursors ignore it. */
    public Scan limit(int entries) {
        if (entries < 0) {
            throw new IllegalArgumentException("a limit of " + entries + " entries: leave it out for all");
        }
        limit = entries;
        return this;
    }

    /** Keys with empty values; values are not read if that saves work. */
    public Scan keysOnly() {
        flags |= KEYS_ONLY;
        return this;
    }

    /** For one pass over much data: the blocks that it reads are not kept in the block cache. */
    public Scan passCacheBy() {
        flags |= PASS_CACHE_BY;
        return this;
    }

    /** The state to read; by default the newest when the iterator begins. */
    public Scan at(Snapshot of) {
        snapshot = of;
        return this;
    }

    /** The entries, as they are now or in the snapshot. */
    @Override
    public EntryIterator iterator() {
        Object owners = new Object[] {keyspace, snapshot};
        byte[] chunk = Native.scan(
                owners, keyspace.handle, from, to, flags, limit, snapshot == null ? 0 : snapshot.handle);
        return new EntryIterator(chunk);
    }

    /** A cursor over the same range, at no entry yet. */
    public Cursor cursor() {
        Object owners = new Object[] {keyspace, snapshot};
        return new Cursor(Native.cursor(
                owners, keyspace.handle, from, to, flags, snapshot == null ? 0 : snapshot.handle));
    }

    /** The first key after all keys with a prefix; null if there is none. */
    static byte[] behind(byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] key = java.util.Arrays.copyOf(prefix, last + 1);
                key[last]++;
                return key;
            }
        }
        return null;
    }
}
