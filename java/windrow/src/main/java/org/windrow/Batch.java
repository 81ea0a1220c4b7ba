package org.windrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Operations on any keyspaces of a database that become visible, and durable, all or none: {@link Db#write}. A batch is
 * on Java's heap alone, and needs no close. For one thread at a time.
 *
 * <p>Owns: its encoding for the library. Never does: check a limit; the write does, and names the first one that is
 * exceeded.
 */
public final class Batch {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final byte[] NONE = new byte[0];

    static final int PUT = 0;
    static final int DELETE = 1;
    private static final int SINGLE_DELETE = 2;
    static final int MERGE = 3;
    static final int DELETE_RANGE = 4;
    static final int PUT_TTL = 5;
    private static final int MERGE_TTL = 6;
    private static final int DELETE_PREFIX = 7;
    private static final int NO_TTL = -1;

    private static final int HEAD_BYTES = 1 + 4 + 4 + 4;
    private static final int KEPT_BYTES = 1 << 20;

    private byte[] operations = new byte[256];
    private int length;
    private int count;
    private final List<Keyspace> keyspaces = new ArrayList<>();

    /** Adds a put. */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value) {
        return add(PUT, keyspace, key, value, NO_TTL);
    }

    /** Adds a put with a time to live. */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value, Duration ttl) {
        return add(PUT_TTL, keyspace, key, value, Keyspace.ttlMillis(ttl));
    }

    /** Adds a delete. */
    public Batch delete(Keyspace keyspace, byte[] key) {
        return add(DELETE, keyspace, key, NONE, NO_TTL);
    }

    /** Adds a delete of a key that was put only once since its last delete: it cancels exactly that put. */
    public Batch singleDelete(Keyspace keyspace, byte[] key) {
        return add(SINGLE_DELETE, keyspace, key, NONE, NO_TTL);
    }

    /** Adds a delete of all keys from one to before another. */
    public Batch deleteRange(Keyspace keyspace, byte[] from, byte[] to) {
        return add(DELETE_RANGE, keyspace, from, to, NO_TTL);
    }

    /** Adds a delete of all keys with a prefix. */
    public Batch deletePrefix(Keyspace keyspace, byte[] prefix) {
        return add(DELETE_PREFIX, keyspace, prefix, NONE, NO_TTL);
    }

    /** Adds an operand for the keyspace's merge operator. */
    public Batch merge(Keyspace keyspace, byte[] key, byte[] operand) {
        return add(MERGE, keyspace, key, operand, NO_TTL);
    }

    /** Adds an operand with a time to live. */
    public Batch merge(Keyspace keyspace, byte[] key, byte[] operand, Duration ttl) {
        return add(MERGE_TTL, keyspace, key, operand, Keyspace.ttlMillis(ttl));
    }

    private Batch add(int operation, Keyspace keyspace, byte[] key, byte[] value, long ttl) {
        Objects.requireNonNull(key, "the key is null");
        Objects.requireNonNull(value, "the value is null");
        int place = place(Objects.requireNonNull(keyspace, "the keyspace is null"));
        int head = HEAD_BYTES + (ttl == NO_TTL ? 0 : 8);
        reserve(Math.addExact(Math.addExact(head, key.length), value.length));
        int at = length;
        operations[at] = (byte) operation;
        INT.set(operations, at + 1, place);
        INT.set(operations, at + 5, key.length);
        INT.set(operations, at + 9, value.length);
        if (ttl != NO_TTL) {
            LONG.set(operations, at + HEAD_BYTES, ttl);
        }
        System.arraycopy(key, 0, operations, at + head, key.length);
        System.arraycopy(value, 0, operations, at + head + key.length, value.length);
        length = at + head + key.length + value.length;
        count++;
        return this;
    }

    /** A linear search: a batch has one keyspace or few. */
    private int place(Keyspace keyspace) {
        for (int i = keyspaces.size() - 1; i >= 0; i--) {
            if (keyspaces.get(i) == keyspace) {
                return i;
            }
        }
        keyspaces.add(keyspace);
        return keyspaces.size() - 1;
    }

    private void reserve(int bytes) {
        int needed = Math.addExact(length, bytes);
        if (needed > operations.length) {
            operations = Arrays.copyOf(operations, (int) Math.min(Integer.MAX_VALUE - 8, Math.max(needed, 2L * length)));
        }
    }

    /** The number of operations. */
    public int size() {
        return count;
    }

    /** The bytes of the operations. */
    public int byteSize() {
        return length;
    }

    /** Removes all operations, so that it can be filled again. */
    public void clear() {
        length = 0;
        count = 0;
        keyspaces.clear();
        if (operations.length > KEPT_BYTES) {
            operations = new byte[256];
        }
    }

    byte[] operations() {
        return operations;
    }

    /** The keyspaces' handles, in the order of the numbers in operations; {@link #owners} keeps them open. */
    long[] handles() {
        return keyspaces.stream().mapToLong(keyspace -> keyspace.handle).toArray();
    }

    Object owners(Db db) {
        return new Object[] {db, keyspaces};
    }
}
