package org.windrow.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.utils.Bytes;

/**
 * Changes of a store that are not in the database yet. One thread writes, others read.
 *
 * <p>It has no order until the first scan: most stores are read and written key by key, and a hash map is several times
 * faster for that than an ordered one. After a store's first scan its buffers are ordered.
 *
 * <p>Owns: the changes and their size. Never does: know the database.
 */
final class Buffer {
    /** The value that marks a deleted key. Compared by identity. */
    static final byte[] DELETED = new byte[0];

    /** The approximate size of an entry on the heap, without its bytes. */
    private static final int ENTRY_BYTES = 96;

    private static final Comparator<Bytes> ORDER = (a, b) -> Arrays.compareUnsigned(a.get(), b.get());

    private final ConcurrentMap<Bytes, byte[]> changes;
    private long bytes;

    Buffer(boolean ordered) {
        changes = ordered ? new ConcurrentSkipListMap<>(ORDER) : new ConcurrentHashMap<>();
    }

    /** The same changes, in order. */
    Buffer ordered() {
        Buffer ordered = new Buffer(true);
        ordered.changes.putAll(changes);
        ordered.bytes = bytes;
        return ordered;
    }

    boolean isOrdered() {
        return changes instanceof NavigableMap;
    }

    boolean isEmpty() {
        return changes.isEmpty();
    }

    /** The approximate size in bytes. */
    long bytes() {
        return bytes;
    }

    int size() {
        return changes.size();
    }

    /** The value, {@link #DELETED}, or null if the key was not changed. */
    byte[] get(Bytes key) {
        return changes.get(key);
    }

    /** Changes a value; returns the change of the size in bytes. */
    long put(Bytes key, byte[] value) {
        byte[] before = changes.put(key, value);
        long more = before == null ? ENTRY_BYTES + key.get().length + value.length : value.length - before.length;
        bytes += more;
        return more;
    }

    /** Removes the changes of a range; returns the change of the size in bytes, which is never above zero. */
    long removeRange(byte[] from, byte[] to) {
        long before = bytes;
        Map<Bytes, byte[]> range = isOrdered() ? range(from, to) : changes;
        range.entrySet().removeIf(change -> {
            byte[] key = change.getKey().get();
            boolean isIn = Arrays.compareUnsigned(from, key) <= 0 && (to == null || Arrays.compareUnsigned(key, to) < 0);
            if (isIn) {
                bytes -= ENTRY_BYTES + key.length + change.getValue().length;
            }
            return isIn;
        });
        return bytes - before;
    }

    Map<Bytes, byte[]> changes() {
        return changes;
    }

    /** All changes in order, whether it has one or not: a store that was restored keeps its hash map. */
    List<Map.Entry<Bytes, byte[]>> sorted() {
        List<Map.Entry<Bytes, byte[]>> sorted = new ArrayList<>(changes.entrySet());
        if (!isOrdered()) {
            sorted.sort(Map.Entry.comparingByKey(ORDER));
        }
        return sorted;
    }

    /** The changes from one key to before another (null: no bound), in order: it must have one. */
    NavigableMap<Bytes, byte[]> range(byte[] from, byte[] to) {
        NavigableMap<Bytes, byte[]> all = (NavigableMap<Bytes, byte[]>) changes;
        if (from == null && to == null) {
            return all;
        }
        if (to == null) {
            return all.tailMap(Bytes.wrap(from), true);
        }
        if (from == null) {
            return all.headMap(Bytes.wrap(to), false);
        }
        return all.subMap(Bytes.wrap(from), true, Bytes.wrap(to), false);
    }
}
