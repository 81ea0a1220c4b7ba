package org.windrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Takes entries in ascending order of their keys, and adds them to a keyspace at once. Closed without
 * {@link #finish}, it leaves nothing. For one thread at a time.
 *
 * <p>Entries go to the library in chunks: an exception may be about an earlier entry. After one, nothing of the
 * ingestion is added.
 */
public final class Ingest extends Handle {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int CHUNK_BYTES = 64 << 10;

    private final Keyspace keyspace;
    private byte[] chunk = new byte[CHUNK_BYTES];
    private int length;

    Ingest(Keyspace keyspace, long handle) {
        super(handle, Native::freeIngest);
        this.keyspace = keyspace;
    }

    /** Adds an entry; its key must be greater than the keys before. */
    public void put(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "the key is null");
        Objects.requireNonNull(value, "the value is null");
        int bytes = Math.addExact(Math.addExact(8, key.length), value.length);
        if (bytes > chunk.length - length) {
            send();
            if (bytes > chunk.length) {
                chunk = new byte[bytes];
            }
        }
        INT.set(chunk, length, key.length);
        INT.set(chunk, length + 4, value.length);
        System.arraycopy(key, 0, chunk, length + 8, key.length);
        System.arraycopy(value, 0, chunk, length + 8 + key.length, value.length);
        length += bytes;
    }

    private void send() {
        int sent = length;
        length = 0;
        Native.ingestOn(new Object[] {this, keyspace}, handle, chunk, sent);
    }

    /**
     * Makes all of it durable and visible, at one moment, and closes it.
     *
     * @return the number of entries
     */
    public long finish() {
        try (this) {
            send();
            return Native.ingestFinish(this, handle);
        }
    }
}
