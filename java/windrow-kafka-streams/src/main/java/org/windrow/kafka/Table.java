package org.windrow.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.windrow.Batch;
import org.windrow.ClosedException;
import org.windrow.Entry;
import org.windrow.EntryIterator;
import org.windrow.Ingest;
import org.windrow.Keyspace;
import org.windrow.WindrowException;

/**
 * An ordered map of a store: a keyspace, and in front of it the uncommitted changes. They are written to the
 * database in one batch with the changelog's offset and the store's position: so the three never contradict each
 * other, whenever the process ends.
 *
 * <p>With exactly-once processing a change may be rolled back until its transaction is committed. If the changes become
 * too many for the heap, they are written, and in the same batch the earlier value of each key ({@code undo}). The
 * batch with the offset deletes those values; an open that finds some puts them back first. So an open never finds a
 * change of a transaction that may have been aborted, and never has to restore from the beginning because of one.
 *
 * <p>One thread writes and commits; any may read.
 *
 * <p>Owns: the changes, and their commits. Never does: know the form of a key.
 */
final class Table {
    /** The size of a batch that puts earlier values back. */
    private static final int STEP_BYTES = 1 << 20;

    /** Fewer changes than this are written through the log: an ingestion makes tables, and syncs them. */
    private static final int INGEST_MIN = 4096;

    private static final byte[] ABSENT = {0};

    private final String store;
    private final Instance instance;
    private final Keyspace keyspace;
    private final byte[] metaPrefix;
    private final Set<TableIterator> iterators = ConcurrentHashMap.newKeySet();
    private final List<byte[][]> rangeDeletes = new ArrayList<>();
    private final Map<TopicPartition, Long> offsets = new HashMap<>();

    private volatile Buffer buffer = new Buffer(false);
    private volatile boolean open = true;
    private boolean hasUndo;
    private boolean isSound;

    /** For the metrics. */
    final LongAdder bytesWritten = new LongAdder();

    final LongAdder bytesRead = new LongAdder();

    private Table(String store, Instance instance, Instance.Place place) {
        this.store = store;
        this.instance = instance;
        this.keyspace = place.keyspace();
        this.metaPrefix = Instance.metaPrefix(place.name());
    }

    /**
     * Opens the table of a store.
     *
     * @param transactional whether changes may be rolled back
     */
    static Table open(StateStoreContext context, String store, boolean transactional) {
        Instance instance = Instance.acquire(context);
        String keyspace = null;
        try {
            Instance.Place place = instance.place(context, store);
            keyspace = place.name();
            Table table = new Table(store, instance, place);
            if (place.isNew() && transactional) {
                // An empty table is sound: Kafka need not wipe it because it has no offset.
                instance.meta().put(table.metaKey("sound"), new byte[0]);
            }
            table.isSound = instance.meta().containsKey(table.metaKey("sound"));
            table.undo();
            table.readOffsets();
            return table;
        } catch (RuntimeException e) {
            instance.release(keyspace);
            throw e;
        }
    }

    // ---- reads

    byte[] get(Bytes key) {
        byte[] change = buffer.get(key);
        if (change != null) {
            return change == Buffer.DELETED ? null : change;
        }
        try {
            byte[] value = keyspace.get(key.get());
            if (value != null) {
                bytesRead.add(key.get().length + value.length);
            }
            return value;
        } catch (ClosedException e) {
            throw closed(e);
        }
    }

    /** The entries from one key to before another (null: no bound). */
    TableIterator range(byte[] from, byte[] to, boolean reverse) {
        Buffer changes = orderedBuffer();
        Iterator<Map.Entry<Bytes, byte[]>> over = Collections.emptyIterator();
        if (!changes.isEmpty()) {
            // Copied before the scan begins: a change that is committed in between is then in both, never in neither.
            NavigableMap<Bytes, byte[]> copy = new TreeMap<>(changes.range(from, to));
            over = (reverse ? copy.descendingMap() : copy).entrySet().iterator();
        }
        try {
            EntryIterator stored = reverse
                    ? keyspace.scan().from(from).to(to).reverse().iterator()
                    : keyspace.scan().from(from).to(to).iterator();
            TableIterator iterator = new TableIterator(store, stored, over, reverse, iterators::remove);
            iterators.add(iterator);
            if (!open) {
                // The table was closed in between, and does not know of this iterator.
                iterator.close();
            }
            return iterator;
        } catch (ClosedException e) {
            throw closed(e);
        }
    }

    private Buffer orderedBuffer() {
        Buffer changes = buffer;
        if (changes.isOrdered()) {
            return changes;
        }
        synchronized (this) {
            if (!buffer.isOrdered()) {
                buffer = buffer.ordered();
            }
            return buffer;
        }
    }

    int openIterators() {
        return iterators.size();
    }

    /** The approximate number of entries. */
    long approximateCount() {
        try {
            return keyspace.approximateCount() + buffer.size();
        } catch (ClosedException e) {
            throw closed(e);
        }
    }

    private InvalidStateStoreException closed(ClosedException cause) {
        return new InvalidStateStoreException("The store " + store + " is closed", cause);
    }

    // ---- changes

    /** Changes a value; null deletes. */
    synchronized void put(Bytes key, byte[] value) {
        check();
        long more = buffer.put(key, value == null ? Buffer.DELETED : copyIfEmpty(value));
        instance.bufferBytes.addAndGet(more);
    }

    /** Returns the value, or a new object if it is the mark of a delete: an empty value is a value. */
    private static byte[] copyIfEmpty(byte[] value) {
        return value == Buffer.DELETED ? new byte[0] : value;
    }

    /** Deletes a range that is no longer read: it need not be put back. */
    synchronized void deleteRange(byte[] from, byte[] to) {
        check();
        instance.bufferBytes.addAndGet(buffer.removeRange(from, to));
        rangeDeletes.add(new byte[][] {from, to});
    }

    boolean isOpen() {
        return open;
    }

    private void check() {
        if (!open) {
            throw new InvalidStateStoreException("The store " + store + " is closed");
        }
    }

    boolean hasChanges() {
        return hasUndo || !buffer.isEmpty() || !rangeDeletes.isEmpty();
    }

    /** Whether the changes are too many for the heap. */
    boolean isFull() {
        return instance.isOver(buffer.bytes());
    }

    /** Writes changes that will not be rolled back, with offsets (null: removes it) and a position. */
    synchronized void commit(Map<TopicPartition, Long> changed, Position position) {
        check();
        offsets.putAll(changed);
        offsets.values().removeIf(offset -> offset == null);
        write(changed, position);
    }

    /** Writes changes, and removes all offsets. */
    synchronized void commitWithoutOffsets(Position position) {
        check();
        Map<TopicPartition, Long> none = new HashMap<>();
        offsets.keySet().forEach(partition -> none.put(partition, null));
        offsets.clear();
        isSound = false;
        write(none, position);
    }

    private void write(Map<TopicPartition, Long> changed, Position position) {
        Batch batch = new Batch();
        for (byte[][] range : rangeDeletes) {
            batch.deleteRange(keyspace, range[0], range[1]);
        }
        addChanges(batch);
        changed.forEach((partition, offset) -> {
            if (offset == null) {
                batch.delete(instance.meta(), offsetKey(partition));
            } else {
                batch.put(instance.meta(), offsetKey(partition), Numbers.bytes(offset));
            }
        });
        if (!isSound) {
            batch.delete(instance.meta(), metaKey("sound"));
        }
        addPosition(batch, position);
        if (hasUndo) {
            batch.deletePrefix(instance.undo(), metaPrefix);
        }
        write(batch);
        hasUndo = false;
        rangeDeletes.clear();
        clearBuffer();
    }

    private void addChanges(Batch batch) {
        buffer.changes().forEach((key, value) -> {
            if (value == Buffer.DELETED) {
                batch.delete(keyspace, key.get());
            } else {
                batch.put(keyspace, key.get(), value);
            }
        });
    }

    private void addPosition(Batch batch, Position position) {
        if (position == null || position.isEmpty()) {
            return;
        }
        ByteBuffer serialized;
        synchronized (position) {
            serialized = PositionSerde.serialize(position);
        }
        serialized.rewind();
        byte[] bytes = new byte[serialized.remaining()];
        serialized.get(bytes);
        batch.put(instance.meta(), metaKey("position"), bytes);
    }

    private void write(Batch batch) {
        try {
            instance.db().write(batch);
            bytesWritten.add(batch.byteSize());
        } catch (ClosedException e) {
            throw closed(e);
        } catch (WindrowException | IllegalArgumentException e) {
            throw new ProcessorStateException("Error writing to the store " + store + ": " + e.getMessage(), e);
        }
    }

    /** Called when the changes are in the database: a reader that finds none here finds them there. */
    private void clearBuffer() {
        instance.bufferBytes.addAndGet(-buffer.bytes());
        buffer = new Buffer(buffer.isOrdered());
    }

    /** Writes changes that may still be rolled back, with the earlier values. */
    synchronized void spill() {
        check();
        List<byte[]> keys = new ArrayList<>();
        buffer.changes().keySet().forEach(key -> keys.add(key.get()));
        List<byte[]> undoKeys = keys.stream().map(key -> Numbers.concat(metaPrefix, key)).toList();
        Batch batch = new Batch();
        try {
            List<byte[]> before = keyspace.getAll(keys);
            List<byte[]> known = instance.undo().getAll(undoKeys);
            for (int i = 0; i < keys.size(); i++) {
                // Only at the transaction's first write is it the value from before the transaction.
                if (known.get(i) == null) {
                    byte[] value = before.get(i);
                    batch.put(instance.undo(), undoKeys.get(i), value == null ? ABSENT : Numbers.concat(new byte[] {1}, value));
                }
            }
        } catch (ClosedException e) {
            throw closed(e);
        }
        addChanges(batch);
        write(batch);
        hasUndo = true;
        clearBuffer();
    }

    /** Writes changes that are final for any offset, without an offset. */
    synchronized void writeOut() {
        check();
        Batch batch = new Batch();
        addChanges(batch);
        write(batch);
        clearBuffer();
    }

    /** Puts back the changes of a transaction that is not known to be committed. */
    private void undo() {
        while (true) {
            Batch batch = new Batch();
            try (EntryIterator entries = instance.undo().prefix(metaPrefix)) {
                while (batch.byteSize() < STEP_BYTES && entries.hasNext()) {
                    Entry entry = entries.next();
                    byte[] key = java.util.Arrays.copyOfRange(entry.key(), metaPrefix.length, entry.key().length);
                    if (entry.value()[0] == 0) {
                        batch.delete(keyspace, key);
                    } else {
                        byte[] value = java.util.Arrays.copyOfRange(entry.value(), 1, entry.value().length);
                        batch.put(keyspace, key, value);
                    }
                    batch.delete(instance.undo(), entry.key());
                }
            }
            if (batch.size() == 0) {
                return;
            }
            write(batch);
        }
    }

    // ---- restoring

    /**
     * Adds many final changes. If they are many, the puts are ingested as tables, sorted; then the rest is written,
     * with the offset.
     */
    synchronized void restore(Map<TopicPartition, Long> restored, Position position) {
        check();
        Buffer changes = buffer;
        if (changes.size() >= INGEST_MIN && rangeDeletes.isEmpty()) {
            try (Ingest ingest = keyspace.ingest()) {
                for (Map.Entry<Bytes, byte[]> change : changes.sorted()) {
                    byte[] key = change.getKey().get();
                    byte[] value = change.getValue();
                    if (value != Buffer.DELETED) {
                        ingest.put(key, value);
                        bytesWritten.add(key.length + value.length);
                    }
                }
                ingest.finish();
            } catch (ClosedException e) {
                throw closed(e);
            } catch (WindrowException | IllegalArgumentException e) {
                throw new ProcessorStateException("Error restoring the store " + store + ": " + e.getMessage(), e);
            }
            changes.changes().values().removeIf(value -> value != Buffer.DELETED);
        }
        commit(restored, position);
    }

    // ---- offsets and position

    Long offset(TopicPartition partition) {
        synchronized (this) {
            return offsets.get(partition);
        }
    }

    /** Whether the content is the state of a committed transaction, with an offset or without. */
    boolean isSound() {
        return isSound;
    }

    Position position() {
        byte[] stored = instance.meta().get(metaKey("position"));
        return stored == null ? Position.emptyPosition() : PositionSerde.deserialize(ByteBuffer.wrap(stored));
    }

    private byte[] metaKey(String name) {
        return Numbers.concat(metaPrefix, name.getBytes(UTF_8));
    }

    private byte[] offsetKey(TopicPartition partition) {
        return metaKey("offset/" + partition.partition() + "/" + partition.topic());
    }

    private void readOffsets() {
        byte[] prefix = metaKey("offset/");
        for (Entry entry : instance.meta().scan().prefix(prefix)) {
            String name = new String(entry.key(), prefix.length, entry.key().length - prefix.length, UTF_8);
            int slash = name.indexOf('/');
            TopicPartition partition =
                    new TopicPartition(name.substring(slash + 1), Integer.parseInt(name.substring(0, slash)));
            offsets.put(partition, Numbers.number(entry.value(), 0));
        }
    }

    Instance instance() {
        return instance;
    }

    String keyspaceName() {
        return new String(metaPrefix, 0, metaPrefix.length - 1, UTF_8);
    }

    /** Closes its iterators, then the table. Uncommitted changes are dropped. */
    void close() {
        synchronized (this) {
            if (!open) {
                return;
            }
            open = false;
            List.copyOf(iterators).forEach(TableIterator::close);
            instance.bufferBytes.addAndGet(-buffer.bytes());
            buffer = new Buffer(false);
            keyspace.close();
        }
        instance.release(keyspaceName());
    }
}
