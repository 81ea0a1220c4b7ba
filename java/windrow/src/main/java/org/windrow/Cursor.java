package org.windrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * A position among the entries of a keyspace, moved by hand. It shows the moment at which it was made, or that of the
 * last {@link #refresh}. For one thread at a time.
 */
public final class Cursor extends Handle {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int LENGTHS_BYTES = 8;

    /** Null if it is at no entry. */
    private byte[] entry;

    Cursor(long handle) {
        super(handle, Native::freeCursor);
    }

    private boolean move(int how, byte[] to) {
        entry = null;
        entry = Native.move(this, handle, how, to);
        return entry != null;
    }

    /** Moves to the first entry. Like all moves, it returns whether there is one. */
    public boolean seekFirst() {
        return move(0, null);
    }

    /** Moves to the last entry. */
    public boolean seekLast() {
        return move(1, null);
    }

    /** Moves to the first entry at a key or after it. */
    public boolean seek(byte[] to) {
        return move(2, to);
    }

    /** Moves to the last entry before a key. */
    public boolean seekBefore(byte[] to) {
        return move(3, to);
    }

    /** Moves to the next entry. */
    public boolean next() {
        return move(4, null);
    }

    /** Moves to the previous entry. */
    public boolean prev() {
        return move(5, null);
    }

    /** Moves to the newest state, at the same key or the one after it. */
    public boolean refresh() {
        return move(6, null);
    }

    /** Whether it is at an entry. */
    public boolean isValid() {
        return entry != null;
    }

    /** The key at its position. */
    public byte[] key() {
        return Arrays.copyOfRange(at(), LENGTHS_BYTES, LENGTHS_BYTES + keyLength());
    }

    /** The value at its position. */
    public byte[] value() {
        return Arrays.copyOfRange(at(), LENGTHS_BYTES + keyLength(), entry.length);
    }

    private int keyLength() {
        return (int) INT.get(entry, 0);
    }

    private byte[] at() {
        if (entry == null) {
            throw new IllegalStateException("the cursor is at no entry: seek first");
        }
        return entry;
    }

    @Override
    public void close() {
        entry = null;
        super.close();
    }
}
