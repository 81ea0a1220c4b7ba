package org.windrow;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * An ordered map from keys to values: a tree of its own in a database. Any number of threads may use it at once.
 *
 * <p>It keeps its database open until both are closed; but {@link Db#close} closes the database for all handles.
 */
public class Keyspace extends Handle {
    /** The result of {@link #get(ByteBuffer, ByteBuffer)} if there is no such key. */
    public static final int NOT_FOUND = -1;

    /** The keyspace's own time to live, or none. */
    static final long OWN_TTL = -1;

    private static final long TTL_NO_KEY = -2;

    Keyspace(long handle) {
        super(handle, Native::freeKeyspace);
    }

    // ---- reads

    /** The value of a key; null if there is none. */
    public byte[] get(byte[] key) {
        return Native.get(this, handle, key);
    }

    /** The value of a key as a snapshot sees it; null if there is none. */
    public byte[] get(Snapshot snapshot, byte[] key) {
        return Native.getAt(new Object[] {this, snapshot}, handle, snapshot.handle, key);
    }

    /**
     * Reads a value into a direct buffer, for a key in a direct buffer: nothing is allocated. The key is the bytes
     * between its buffer's position and limit. The value is put at the other buffer's position, whose limit is set
     * behind it. Of a value that is too long, the part that fits is read. No other thread may change the buffers
     * meanwhile.
     *
     * @return the length of the value, or {@link #NOT_FOUND}
     */
    public int get(ByteBuffer key, ByteBuffer value) {
        check(key);
        check(value);
        if (value.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        int length = Native.getDirect(this, handle, key, key.position(), key.remaining(), value, value.position(),
                value.remaining());
        if (length >= 0) {
            value.limit(value.position() + Math.min(length, value.remaining()));
        }
        return length;
    }

    /** If a buffer's memory was freed, as by an arena, this throws the buffer's own exception, before a read. */
    private static void check(ByteBuffer buffer) {
        if (buffer.hasRemaining()) {
            buffer.get(buffer.position());
        }
    }

    /** Whether the key is there. */
    public boolean containsKey(byte[] key) {
        return Native.contains(this, handle, key);
    }

    /** The values of some keys, null for absent ones. */
    public List<byte[]> getAll(List<byte[]> keys) {
        return Arrays.asList(Native.getAll(this, handle, 0, keys.toArray(new byte[0][])));
    }

    /** The values of some keys as a snapshot sees them. */
    public List<byte[]> getAll(Snapshot snapshot, List<byte[]> keys) {
        Object owners = new Object[] {this, snapshot};
        return Arrays.asList(Native.getAll(owners, handle, snapshot.handle, keys.toArray(new byte[0][])));
    }

    /** The first entry; null if there is none. */
    public Entry first() {
        return end(false, false);
    }

    /** The last entry; null if there is none. */
    public Entry last() {
        return end(true, false);
    }

    /** Removes and returns the first entry; null if there is none. */
    public Entry popFirst() {
        return end(false, true);
    }

    /** Removes and returns the last entry; null if there is none. */
    public Entry popLast() {
        return end(true, true);
    }

    private Entry end(boolean last, boolean pop) {
        byte[][] entry = Native.end(this, handle, last, pop);
        return entry == null ? null : new Entry(entry[0], entry[1]);
    }

    /** The time until a key expires: empty if it is absent, {@link Long#MAX_VALUE} seconds if it never expires. */
    public Optional<Duration> ttl(byte[] key) {
        long millis = Native.ttl(this, handle, key);
        if (millis == TTL_NO_KEY) {
            return Optional.empty();
        }
        return Optional.of(millis < 0 ? Duration.ofSeconds(Long.MAX_VALUE) : Duration.ofMillis(millis));
    }

    /** A scan, to be given a range and options; its iterator begins it. */
    public Scan scan() {
        return new Scan(this);
    }

    /** All entries whose keys have this prefix. */
    public EntryIterator prefix(byte[] prefix) {
        return scan().prefix(prefix).iterator();
    }

    /** All entries from one key to before another (null: no bound). */
    public EntryIterator range(byte[] from, byte[] to) {
        return scan().from(from).to(to).iterator();
    }

    /** A cursor over all entries, at no entry yet. */
    public Cursor cursor() {
        return scan().cursor();
    }

    /** The number of keys from one to before another (null: no bound), counted one by one. */
    public long count(byte[] from, byte[] to) {
        return Native.count(this, handle, from, to);
    }

    /** The approximate number of keys. */
    public long approximateCount() {
        return Native.approximateCount(this, handle);
    }

    /** The approximate bytes in tables and memtables of the keys from one to before another. */
    public long approximateBytes(byte[] from, byte[] to) {
        return Native.approximateBytes(this, handle, from, to);
    }

    // ---- writes

    /** Puts. The put survives the end of the process; for loss of power see {@link #synced}. */
    public void put(byte[] key, byte[] value) {
        Native.put(this, handle, key, value, OWN_TTL);
    }

    /** Puts with a time to live. */
    public void put(byte[] key, byte[] value, Duration ttl) {
        Native.put(this, handle, key, value, ttlMillis(ttl));
    }

    static long ttlMillis(Duration ttl) {
        if (ttl.isNegative()) {
            throw new IllegalArgumentException(ttl + " is no time to live: leave it out for ever");
        }
        return ttl.toMillis();
    }

    /** Puts the bytes between the positions and limits of two direct buffers, which it does not move. */
    public void put(ByteBuffer key, ByteBuffer value) {
        check(key);
        check(value);
        Native.putDirect(this, handle, key, key.position(), key.remaining(), value, value.position(),
                value.remaining());
    }

    /** Deletes a key, which need not be there. */
    public void delete(byte[] key) {
        Native.delete(this, handle, key);
    }

    /** Deletes all keys from one to before another, by one small write. */
    public void deleteRange(byte[] from, byte[] to) {
        Native.deleteRange(this, handle, from, to);
    }

    /** Adds an operand for the keyspace's merge operator. */
    public void merge(byte[] key, byte[] operand) {
        Native.merge(this, handle, key, operand);
    }

    /** Puts a value (null: deletes) if the key has the expected value (null: is absent); returns whether it did. */
    public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) {
        return Native.compareAndSet(this, handle, key, expected, value);
    }

    /** Puts if the key is absent; returns the value that is there, or null. */
    public byte[] putIfAbsent(byte[] key, byte[] value) {
        return Native.putIfAbsent(this, handle, key, value);
    }

    /** Deletes; returns the value before, or null. */
    public byte[] remove(byte[] key) {
        return Native.remove(this, handle, key);
    }

    /** Changes a value (null: none) atomically; the function is called again on conflict. Returns the new value. */
    public byte[] update(byte[] key, UnaryOperator<byte[]> change) {
        while (true) {
            byte[] before = get(key);
            byte[] after = change.apply(before == null ? null : before.clone());
            if (compareAndSet(key, before, after)) {
                return after;
            }
        }
    }

    /** Deletes everything. */
    public void clear() {
        Native.clear(this, handle);
    }

    /** An ingestion: takes sorted entries, and adds them all when it is finished; far faster than puts. */
    public Ingest ingest() {
        return new Ingest(this, Native.ingest(this, handle));
    }

    // ---- the keyspace

    /** A handle of the same keyspace whose writes are on the device when they return. */
    public Keyspace synced() {
        return new Keyspace(Native.synced(this, handle));
    }

    /** Its name. */
    public String name() {
        return Native.name(this, handle);
    }

    /** The policy that keeps its tree in shape, in full. */
    public String policy() {
        return Native.policy(this, handle);
    }

    /** Gives it another policy until the database is closed. */
    public void setPolicy(String policy) {
        Native.setPolicy(this, handle, Objects.requireNonNull(policy, "the policy is null"));
    }

    /** Stores settings with the keyspace, instead of all earlier ones, and applies them. */
    public void configure(KeyspaceOptions options) {
        Native.configure(this, handle, options.words());
    }

    /** Writes the memtables to tables. */
    public void flush() {
        Native.flushKeyspace(this, handle);
    }

    /** Merges the keys from one to before another (null: no bound), down to the last level. */
    public void compact(byte[] from, byte[] to) {
        Native.compactRange(this, handle, from, to);
    }
}
