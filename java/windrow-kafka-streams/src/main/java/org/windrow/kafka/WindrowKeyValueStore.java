package org.windrow.kafka;

import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A key-value store. A value is the caller's bytes: the timestamped store and the one with headers only tell Kafka that
 * timestamps, and headers, are in them.
 */
class WindrowKeyValueStore extends AbstractStore implements KeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(WindrowKeyValueStore.class);

    WindrowKeyValueStore(String name, String metricsScope) {
        super(name, metricsScope);
    }

    /** With a timestamp in each value. */
    static final class Timestamped extends WindrowKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name, String metricsScope) {
            super(name, metricsScope);
        }
    }

    /** With headers and a timestamp in each value. */
    static final class WithHeaders extends WindrowKeyValueStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name, String metricsScope) {
            super(name, metricsScope);
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (position) {
            beforeChange();
            table.put(key, value);
            afterChange();
        }
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        synchronized (position) {
            for (KeyValue<Bytes, byte[]> entry : entries) {
                Objects.requireNonNull(entry.key, "key cannot be null");
                beforeChange();
                table.put(entry.key, entry.value);
            }
            afterChange();
        }
    }

    @Override
    public byte[] delete(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        validateOpen();
        return table.get(key);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean reverse) {
        validateOpen();
        if (from != null && to != null && from.compareTo(to) > 0) {
            Iterators.warnOfRange(LOG);
            return Iterators.none();
        }
        return table.range(from == null ? null : from.get(), to == null ? null : Numbers.after(to.get()), reverse);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, true);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        validateOpen();
        byte[] from = serializer.serialize(null, prefix);
        return table.range(from, Numbers.behind(from), false);
    }

    @Override
    public long approximateNumEntries() {
        validateOpen();
        return table.approximateCount();
    }

    @Override
    boolean restore(ConsumerRecord<byte[], byte[]> record) {
        table.put(Bytes.wrap(record.key()), record.value());
        return true;
    }
}
