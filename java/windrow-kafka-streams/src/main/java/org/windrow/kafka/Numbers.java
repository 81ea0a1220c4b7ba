package org.windrow.kafka;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Numbers in keys and values, in the order of their bytes; and successors of keys. */
final class Numbers {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

    private Numbers() {}

    static byte[] bytes(long number) {
        byte[] bytes = new byte[8];
        put(bytes, 0, number);
        return bytes;
    }

    static void put(byte[] bytes, int at, long number) {
        LONG.set(bytes, at, number);
    }

    static void putInt(byte[] bytes, int at, int number) {
        INT.set(bytes, at, number);
    }

    static long number(byte[] bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    static int intNumber(byte[] bytes, int at) {
        return (int) INT.get(bytes, at);
    }

    static byte[] concat(byte[] a, byte[] b) {
        byte[] both = Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, both, a.length, b.length);
        return both;
    }

    /** The first key after this one; null for null. */
    static byte[] after(byte[] key) {
        return key == null ? null : Arrays.copyOf(key, key.length + 1);
    }

    /** The first key after all keys with a prefix; null if there is none. */
    static byte[] behind(byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] key = Arrays.copyOf(prefix, last + 1);
                key[last]++;
                return key;
            }
        }
        return null;
    }
}
