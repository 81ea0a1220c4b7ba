package org.windrow;

import java.util.Arrays;

/** A key with its value. Two are equal if their bytes are. */
public record Entry(byte[] key, byte[] value) {
    @Override
    public boolean equals(Object other) {
        return other instanceof Entry entry && Arrays.equals(key, entry.key) && Arrays.equals(value, entry.value);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
    }

    @Override
    public String toString() {
        return Arrays.toString(key) + " = " + Arrays.toString(value);
    }
}
