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
 * <p>It keeps its database open until both are closed, but for {@link Db#close}, which closes it for all.
 */
public class Keyspace extends Handle {
    /** {@link #get(ByteBuffer, ByteBuffer)} where there is no such key. */
    public static final int NOT_FOUND = -1;

    /** The keyspace's own time to live, or none. */
    static final long OWN_TTL = -1;

    private static final long TTL_NO_KEY = -2;

    Keyspace(long handle) {
        super(handle, Native::freeKeyspace);
    }

    // ---- reads

    /** The value of a key; null where there is none. */
    public byte[] get(byte[] key) {
        return Native.get(this, handle, key);
    }

    /** The value of a key as a snapshot sees it; null where there is none. */
    public byte[] get(Snapshot snapshot, byte[] key) {
        return Native.getAt(new Object[] {this, snapshot}, handle, snapshot.handle, key);
    }

    /**
     * Reads a value into a direct buffer, for a key in a direct buffer: nothing is allocated. What is between the
     * key's position and its limit is the key. The value is at the other's position, whose limit is set behind it.
     * Where it is longer than there is room, that much is read. No other thread may change the buffers meanwhile.
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

    /** A buffer whose memory is freed, as that of an arena, raises what it raises here, and is not read. */
    private static void check(ByteBuffer buffer) {
        if (buffer.hasRemaining()) {
            buffer.get(buffer.position());
        }
    }

    /** Whether there is such a key. */
    public boolean containsKey(byte[] key) {
        return Native.contains(this, handle, key);
    }

    /** The values of some keys, null where there is none. */
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

    /** Takes the first entry out; null if there is none. */
    public Entry popFirst() {
        return end(false, true);
    }

    /** Takes the last entry out; null if there is none. */
    public Entry popLast() {
        return end(true, true);
    }

    private Entry end(boolean last, boolean pop) {
        byte[][] entry = Native.end(this, handle, last, pop);
        return entry == null ? null : new Entry(entry[0], entry[1]);
    }

    /** How long a key is there for: empty if there is none, {@link Long#MAX_VALUE} seconds if it never expires. */
    public Optional<Duration> ttl(byte[] key) {
        long millis = Native.ttl(this, handle, key);
        if (millis == TTL_NO_KEY) {
            return Optional.empty();
        }
        return Optional.of(millis < 0 ? Duration.ofSeconds(Long.MAX_VALUE) : Duration.ofMillis(millis));
    }

    /** Says what is scanned; its iterator begins. */
    public Scan scan() {
        return new Scan(this);
    }

    /** All entries whose keys begin so. */
    public EntryIterator prefix(byte[] prefix) {
        return scan().prefix(prefix).iterator();
    }

    /** All entries from one key to before another (null: no bound). */
    public EntryIterator range(byte[] from, byte[] to) {
        return scan().from(from).to(to).iterator();
    }

    /** A cursor over all entries, at none yet. */
    public Cursor cursor() {
        return scan().cursor();
    }

    /** How many keys there are from one to before another (null: no bound), counted one by one. */
    public long count(byte[] from, byte[] to) {
        return Native.count(this, handle, from, to);
    }

    /** About how many keys there are. */
    public long approximateCount() {
        return Native.approximateCount(this, handle);
    }

    /** About how many bytes of tables and memtables the keys from one to before another take. */
    public long approximateBytes(byte[] from, byte[] to) {
        return Native.approximateBytes(this, handle, from, to);
    }

    // ---- writes

    /** Puts. It survives the end of the process; of the machine: see {@link #synced}. */
    public void put(byte[] key, byte[] value) {
        Native.put(this, handle, key, value, OWN_TTL);
    }

    /** Puts for a time. */
    public void put(byte[] key, byte[] value, Duration ttl) {
        Native.put(this, handle, key, value, ttlMillis(ttl));
    }

    static long ttlMillis(Duration ttl) {
        if (ttl.isNegative()) {
            throw new IllegalArgumentException(ttl + " is no time to live: leave it out for ever");
        }
        return ttl.toMillis();
    }

    /** Puts what is between the positions of two direct buffers and their limits, which stay as they are. */
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

    /** Puts a value, or deletes (null), if the key has another one, or none (null). Whether it has. */
    public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) {
        return Native.compareAndSet(this, handle, key, expected, value);
    }

    /** Puts where there is nothing; what there is, or null. */
    public byte[] putIfAbsent(byte[] key, byte[] value) {
        return Native.putIfAbsent(this, handle, key, value);
    }

    /** Deletes; what was there, or null. */
    public byte[] remove(byte[] key) {
        return Native.remove(this, handle, key);
    }

    /** Changes a value (null: none) in one step; called again where others changed it meanwhile. The new value. */
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

    /** Takes sorted entries, and adds them at once when it is finished: far faster than puts. */
    public Ingest ingest() {
        return new Ingest(this, Native.ingest(this, handle));
    }

    // ---- the keyspace

    /** The same keyspace, by a handle whose writes are on the device when they return. */
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

    /** Stores settings with the keyspace, in the place of all that it had, and applies them. */
    public void configure(KeyspaceOptions options) {
        Native.configure(this, handle, options.words());
    }

    /** Writes what is in memory to tables. */
    public void flush() {
        Native.flushKeyspace(this, handle);
    }

    /** Merges the keys from one to before another (null: no bound), down to the last level. */
    public void compact(byte[] from, byte[] to) {
        Native.compactRange(this, handle, from, to);
    }
}
