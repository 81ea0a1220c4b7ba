package org.windrow.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A versioned store.
 *
 * <p>The latest version of a key is in a part of its own, under the key, with the time from which it is valid. An older
 * one is in the segment of the time at which it ends, and a delete in the segment of its own time: so a segment that
 * is older than the retention holds nothing that a read can ask for. The version valid at a time is the latest one if
 * that is old enough; else it is in the segment of that time or a later one.
 *
 * <p>Owns: the places of versions. Never does: keep one.
 */
final class WindrowVersionedStore extends AbstractStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(WindrowVersionedStore.class);

    /** The latest versions have the place of a segment before all others. */
    private static final long LATEST = Long.MIN_VALUE;

    private static final int START_BYTES = 8;
    private static final byte VALUE = 0;
    private static final byte DELETE = 1;

    private final long retention;
    private final Segments segments;
    private long streamTime = ConsumerRecord.NO_TIMESTAMP;
    private Sensor dropped;

    WindrowVersionedStore(String name, String metricsScope, long retention, long segmentInterval) {
        super(name, metricsScope);
        this.retention = retention;
        this.segments = new Segments(retention, segmentInterval);
    }

    @Override
    public void init(StateStoreContext stateStoreContext, StateStore root) {
        dropped = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(),
                stateStoreContext.taskId().toString(), ProcessorContextUtils.metricsImpl(stateStoreContext));
        super.init(stateStoreContext, root);
    }

    @Override
    void opened() {
        segments.open(table);
        segments.forget(LATEST);
    }

    /** A version: valid from {@code start} to before {@code end}; without a value, a delete. */
    private record Version(long start, long end, byte[] value) {
        VersionedRecord<byte[]> record() {
            return end == Long.MAX_VALUE ? new VersionedRecord<>(value, start) : new VersionedRecord<>(value, start, end);
        }
    }

    // ---- places of versions

    private static Bytes latestKey(Bytes key) {
        return Bytes.wrap(WindowedKeys.inSegment(LATEST, key.get()));
    }

    private static byte[] olderKey(long segment, Bytes key, long start) {
        byte[] bytes = Arrays.copyOf(key.get(), key.get().length + START_BYTES);
        Numbers.put(bytes, key.get().length, start ^ Long.MIN_VALUE);
        return WindowedKeys.inSegment(segment, bytes);
    }

    private Version latest(Bytes key) {
        byte[] stored = table.get(latestKey(key));
        return stored == null
                ? null
                : new Version(Numbers.number(stored, 0), Long.MAX_VALUE, Arrays.copyOfRange(stored, 8, stored.length));
    }

    private void putLatest(Bytes key, byte[] value, long start) {
        table.put(latestKey(key), value == null ? null : Numbers.concat(Numbers.bytes(start), value));
    }

    private void putOlder(Bytes key, Version version) {
        long segment = segmentOf(version);
        if (segment < segments.segment(streamTime - retention)) {
            return;
        }
        byte[] head = new byte[9];
        head[0] = version.value == null ? DELETE : VALUE;
        Numbers.put(head, 1, version.end);
        segments.add(segment);
        table.put(Bytes.wrap(olderKey(segment, key, version.start)),
                version.value == null ? head : Numbers.concat(head, version.value));
    }

    private void removeOlder(Bytes key, Version version) {
        table.put(Bytes.wrap(olderKey(segmentOf(version), key, version.start)), null);
    }

    private long segmentOf(Version version) {
        return segments.segment(version.value == null ? version.start : version.end);
    }

    /** The versions except the latest, in segments from that of a time on, by their start. */
    private List<Version> older(Bytes key, long from) {
        List<Version> versions = new ArrayList<>();
        for (long segment : segments.between(from, Long.MAX_VALUE, false)) {
            byte[] first = olderKey(segment, key, Long.MIN_VALUE);
            byte[] last = Numbers.after(olderKey(segment, key, Long.MAX_VALUE));
            try (TableIterator entries = table.range(first, last, false)) {
                while (entries.hasNext()) {
                    KeyValue<Bytes, byte[]> entry = entries.next();
                    byte[] inSegment = entry.key.get();
                    if (WindowedKeys.isOf(inSegment, key.get(), START_BYTES)) {
                        long start = Numbers.number(inSegment, inSegment.length - START_BYTES) ^ Long.MIN_VALUE;
                        byte[] stored = entry.value;
                        byte[] value = stored[0] == DELETE ? null : Arrays.copyOfRange(stored, 9, stored.length);
                        versions.add(new Version(start, Numbers.number(stored, 1), value));
                    }
                }
            }
        }
        versions.sort(Comparator.comparingLong(Version::start));
        return versions;
    }

    // ---- changes

    @Override
    public long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (position) {
            beforeChange();
            try {
                if (isLate(timestamp, "put")) {
                    return PUT_RETURN_CODE_NOT_PUT;
                }
                return change(key, value, timestamp);
            } finally {
                afterChange();
            }
        }
    }

    @Override
    public VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (position) {
            beforeChange();
            if (isLate(timestamp, "delete")) {
                return null;
            }
            VersionedRecord<byte[]> before = get(key, timestamp);
            change(key, null, timestamp);
            afterChange();
            return before;
        }
    }

    /** Late records are accepted as long as reads can ask for older versions. */
    private boolean isLate(long timestamp, String what) {
        if (timestamp >= streamTime - retention) {
            return false;
        }
        dropped.record(1.0, nowMs());
        LOG.warn("Skipping record for expired {}.", what);
        return true;
    }

    /** Adds a version. Returns the time at which it ends; -1 if it is still valid. */
    private long change(Bytes key, byte[] value, long timestamp) {
        streamTime = Math.max(streamTime, timestamp);
        segments.expire(streamTime);
        Version latest = latest(key);
        List<Version> older = latest != null && latest.start < timestamp ? List.of() : older(key, timestamp);
        Version next = latest != null && latest.start > timestamp ? latest : null;
        for (Version version : older) {
            if (version.start > timestamp && (next == null || version.start < next.start)) {
                next = version;
            }
        }
        for (Version version : older) {
            if (version.start == timestamp) {
                removeOlder(key, version);
            } else if (version.value != null && version.start < timestamp && timestamp < version.end) {
                removeOlder(key, version);
                putOlder(key, new Version(version.start, timestamp, version.value));
            }
        }
        if (next == null) {
            if (latest != null && latest.start < timestamp) {
                putOlder(key, new Version(latest.start, timestamp, latest.value));
            }
            putLatest(key, value, timestamp);
        }
        if (value == null) {
            putOlder(key, new Version(timestamp, Long.MAX_VALUE, null));
        } else if (next != null) {
            putOlder(key, new Version(timestamp, next.start, value));
        }
        return next == null ? PUT_RETURN_CODE_VALID_TO_UNDEFINED : next.start;
    }

    @Override
    boolean restore(ConsumerRecord<byte[], byte[]> record) {
        if (record.timestamp() < streamTime - retention) {
            return false;
        }
        change(Bytes.wrap(record.key()), record.value(), record.timestamp());
        return true;
    }

    // ---- reads

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        validateOpen();
        Version latest = latest(key);
        return latest == null ? null : latest.record();
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOfTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        validateOpen();
        Version latest = latest(key);
        if (latest != null && latest.start <= asOfTimestamp) {
            // It never expires.
            return latest.record();
        }
        if (asOfTimestamp < streamTime - retention) {
            LOG.warn("Returning null for expired get.");
            return null;
        }
        for (Version version : older(key, asOfTimestamp)) {
            if (version.value != null && version.start <= asOfTimestamp && asOfTimestamp < version.end) {
                return version.record();
            }
        }
        return null;
    }

    /** The versions that are valid at some time in a range of times. */
    VersionedRecordIterator<byte[]> get(Bytes key, long from, long to, ResultOrder order) {
        Objects.requireNonNull(key, "key cannot be null");
        validateOpen();
        List<VersionedRecord<byte[]>> found = new ArrayList<>();
        if (to >= streamTime - retention) {
            long oldest = Math.max(from, streamTime - retention);
            for (Version version : older(key, oldest)) {
                if (version.value != null && version.start <= to && version.end > from) {
                    found.add(version.record());
                }
            }
        }
        Version latest = latest(key);
        if (latest != null && latest.start <= to) {
            found.add(latest.record());
        }
        if (order != ResultOrder.ASCENDING) {
            Collections.reverse(found);
        }
        Iterator<VersionedRecord<byte[]>> versions = found.iterator();
        return new VersionedRecordIterator<>() {
            @Override
            public void close() {}

            @Override
            public boolean hasNext() {
                return versions.hasNext();
            }

            @Override
            public VersionedRecord<byte[]> next() {
                return versions.next();
            }
        };
    }

    @Override
    @SuppressWarnings("unchecked")
    public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery<?, ?> versions)) {
            return super.query(query, positionBound, config);
        }
        synchronized (position) {
            if (!StoreQueryUtils.isPermitted(position, positionBound, context.taskId().partition())) {
                return QueryResult.notUpToBound(position, positionBound, context.taskId().partition());
            }
            VersionedRecordIterator<byte[]> found = get((Bytes) versions.key(),
                    versions.fromTime().map(java.time.Instant::toEpochMilli).orElse(Long.MIN_VALUE),
                    versions.toTime().map(java.time.Instant::toEpochMilli).orElse(Long.MAX_VALUE),
                    versions.resultOrder());
            QueryResult<R> result = QueryResult.forResult((R) found);
            if (config.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + getClass());
            }
            result.setPosition(position.copy());
            return result;
        }
    }
}
