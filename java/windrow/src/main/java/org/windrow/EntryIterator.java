package org.windrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Entries of a scan, as of the moment at which it was begun. For one thread at a time. It closes itself at its end.
 *
 * <p>The library returns entries in chunks, since a call costs more than an entry; a scan that ends in its first chunk
 * has nothing to close.
 *
 * <p>Owns: the position in a chunk. Never does: read further than the next chunk.
 */
public final class EntryIterator implements Iterator<Entry>, AutoCloseable {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private static final int NUMBER_BYTES = 8;
    private static final int LENGTHS_BYTES = 8;

    private byte[] chunk;
    /** 0 if no chunk follows. */
    private long scan;
    private int next = NUMBER_BYTES;
    private int key;
    private int keyLength;
    private int valueLength;
    private Cleaner.Cleanable cleanable;
    private volatile boolean closed;

    EntryIterator(byte[] chunk) {
        this.chunk = chunk;
        scan = (long) LONG.get(chunk, 0);
        if (scan != 0) {
            cleanable = Handle.whenForgotten(this, scan, Native::freeScan);
        }
    }

    /** Whether there is another entry. */
    @Override
    public boolean hasNext() {
        check();
        while (next == chunk.length) {
            if (scan == 0) {
                return false;
            }
            byte[] following = Native.scanOn(this, scan);
            chunk = following;
            next = NUMBER_BYTES;
            if ((long) LONG.get(following, 0) == 0) {
                scan = 0;
                cleanable.clean();
            }
        }
        return true;
    }

    private void check() {
        if (closed) {
            throw new ClosedException("the iterator is closed", null);
        }
    }

    /**
     * Goes to the next entry without making objects: {@link #key} and {@link #value}, or the buffers, return it until
     * the next move.
     *
     * @return whether there is one
     */
    public boolean advance() {
        if (!hasNext()) {
            return false;
        }
        keyLength = (int) INT.get(chunk, next);
        valueLength = (int) INT.get(chunk, next + 4);
        key = next + LENGTHS_BYTES;
        next = key + keyLength + valueLength;
        return true;
    }

    /** A copy of the key that {@link #advance} went to. */
    public byte[] key() {
        check();
        return Arrays.copyOfRange(chunk, key, key + keyLength);
    }

    /** A copy of its value. */
    public byte[] value() {
        check();
        return Arrays.copyOfRange(chunk, key + keyLength, key + keyLength + valueLength);
    }

    /** A view of the key, which stays valid. */
    public ByteBuffer keyBuffer() {
        check();
        return ByteBuffer.wrap(chunk, key, keyLength).slice().asReadOnlyBuffer();
    }

    /** A view of the value, which stays valid. */
    public ByteBuffer valueBuffer() {
        check();
        return ByteBuffer.wrap(chunk, key + keyLength, valueLength).slice().asReadOnlyBuffer();
    }

    /** The next entry's key, without going there. */
    public byte[] peekKey() {
        if (!hasNext()) {
            throw new NoSuchElementException("the scan is at its end");
        }
        int from = next + LENGTHS_BYTES;
        return Arrays.copyOfRange(chunk, from, from + (int) INT.get(chunk, next));
    }

    /** The next entry. */
    @Override
    public Entry next() {
        if (!advance()) {
            throw new NoSuchElementException("the scan is at its end");
        }
        return new Entry(key(), value());
    }

    /** Closes it. A second call does nothing. */
    @Override
    public void close() {
        closed = true;
        if (cleanable != null) {
            cleanable.clean();
        }
    }
}
