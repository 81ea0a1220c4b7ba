package org.windrow.kafka;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.windrow.ClosedException;
import org.windrow.EntryIterator;

/**
 * The entries of a table and the changes over them, in one order. Several threads may use it; they take turns by a
 * lock: a task's thread may close the store while another thread reads.
 *
 * <p>Owns: the merge of the two. Never does: see writes made after it was begun.
 */
final class TableIterator implements KeyValueIterator<Bytes, byte[]> {
    private final String store;
    private final EntryIterator stored;
    private final Iterator<Map.Entry<Bytes, byte[]>> changes;
    private final boolean reverse;
    private final Consumer<TableIterator> onClose;

    private byte[] storedKey;
    private Map.Entry<Bytes, byte[]> change;
    private KeyValue<Bytes, byte[]> next;
    private boolean closed;

    TableIterator(
            String store,
            EntryIterator stored,
            Iterator<Map.Entry<Bytes, byte[]>> changes,
            boolean reverse,
            Consumer<TableIterator> onClose) {
        this.store = store;
        this.stored = stored;
        this.changes = changes;
        this.reverse = reverse;
        this.onClose = onClose;
    }

    @Override
    public synchronized boolean hasNext() {
        if (closed) {
            throw new InvalidStateStoreException("An iterator of the store " + store + " is used after it was closed");
        }
        if (next == null) {
            next = read();
        }
        return next != null;
    }

    private KeyValue<Bytes, byte[]> read() {
        while (true) {
            advance();
            if (storedKey == null && change == null) {
                return null;
            }
            int order = change == null ? -1 : storedKey == null ? 1 : compare(storedKey, change.getKey().get());
            if (order < 0) {
                KeyValue<Bytes, byte[]> entry = KeyValue.pair(Bytes.wrap(storedKey), stored.value());
                storedKey = null;
                return entry;
            }
            Map.Entry<Bytes, byte[]> over = change;
            change = null;
            if (order == 0) {
                storedKey = null;
            }
            if (over.getValue() != Buffer.DELETED) {
                return KeyValue.pair(over.getKey(), over.getValue());
            }
        }
    }

    private void advance() {
        try {
            if (storedKey == null && stored.advance()) {
                storedKey = stored.key();
            }
        } catch (ClosedException e) {
            throw new InvalidStateStoreException("The database of the store " + store + " is closed", e);
        }
        if (change == null && changes.hasNext()) {
            change = changes.next();
        }
    }

    private int compare(byte[] a, byte[] b) {
        int order = Arrays.compareUnsigned(a, b);
        return reverse ? -order : order;
    }

    @Override
    public synchronized Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException("the iterator is at its end");
        }
        return next.key;
    }

    @Override
    public synchronized KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the iterator is at its end");
        }
        KeyValue<Bytes, byte[]> entry = next;
        next = null;
        return entry;
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            stored.close();
            onClose.accept(this);
        }
    }
}
