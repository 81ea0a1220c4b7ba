package org.windrow.kafka;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.utils.Bytes;

/**
 * Changes of a store that are not in the database yet. One thread writes, others read.
 *
 * <p>It has no order until somebody scans: most stores are read and written key by key, and a hash is several times
 * faster than an order then. A store that was scanned once has an order from there on.
 *
 * <p>Owns: the changes and their size. Never does: know the database.
 */
final class Buffer {
    /** In the place of a value: the key is deleted. Compared by identity. */
    static final byte[] DELETED = new byte[0];

    /** About as much as an entry takes on the heap besides its bytes. */
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

    /** Bytes that it takes, about. */
    long bytes() {
        return bytes;
    }

    int size() {
        return changes.size();
    }

    /** The value, {@link #DELETED}, or null where nothing was changed. */
    byte[] get(Bytes key) {
        return changes.get(key);
    }

    /** Changes a value; by how many bytes the size did. */
    long put(Bytes key, byte[] value) {
        byte[] before = changes.put(key, value);
        long more = before == null ? ENTRY_BYTES + key.get().length + value.length : value.length - before.length;
        bytes += more;
        return more;
    }

    /** Forgets the changes of a range; by how many bytes the size grew, which is not above zero. */
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
