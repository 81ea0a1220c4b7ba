package org.windrow.kafka;

import java.util.Collection;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;

/**
 * The common part of window and session stores: entries have a time, and are deleted when it is older than the
 * retention.
 *
 * <p>Owns: the greatest time in the stream so far. Never does: know where in a key the time is.
 */
abstract class SegmentedStore extends AbstractStore {
    final long retention;
    final Segments segments;
    private final boolean byTime;
    private long streamTime = ConsumerRecord.NO_TIMESTAMP;
    /** The stream's time, by which entries expire. */
    private long expiryTime = ConsumerRecord.NO_TIMESTAMP;
    private Sensor dropped;

    /**
     * @param byTime whether the program asks for the windows that a record closes after that record is in the store: so
     *     entries that a record makes expire do so with the next record
     */
    SegmentedStore(String name, String metricsScope, long retention, long segmentInterval, boolean byTime) {
        super(name, metricsScope);
        this.retention = retention;
        this.byTime = byTime;
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
    }

    /** The time in a key of Kafka's form. */
    abstract long time(byte[] key);

    /** The first time that has not expired. */
    long firstTime(long from) {
        return Math.max(from, expiryTime - retention + 1);
    }

    private void observe(long time) {
        long before = streamTime;
        streamTime = Math.max(streamTime, time);
        expiryTime = byTime ? before : streamTime;
    }

    void putBytes(byte[] key, byte[] value) {
        long time = time(key);
        synchronized (position) {
            beforeChange();
            observe(time);
            segments.expire(expiryTime);
            if (segments.segment(time) < segments.segment(streamTime - retention)) {
                dropped.record(1.0, nowMs());
                return;
            }
            change(key, value, time);
            afterChange();
        }
    }

    /** Deletes an entry; one that has expired is gone already. */
    void removeBytes(byte[] key) {
        long time = time(key);
        synchronized (position) {
            beforeChange();
            observe(time);
            if (segments.has(segments.segment(time))) {
                change(key, null, time);
                afterChange();
            }
        }
    }

    private void change(byte[] key, byte[] value, long time) {
        long segment = segments.segment(time);
        if (value != null) {
            segments.add(segment);
        }
        table.put(Bytes.wrap(WindowedKeys.inSegment(segment, key)), value);
    }

    byte[] getBytes(byte[] key) {
        long time = time(key);
        if (!isOpen() || time < firstTime(Long.MIN_VALUE)) {
            return null;
        }
        long segment = segments.segment(time);
        return segments.has(segment) ? table.get(Bytes.wrap(WindowedKeys.inSegment(segment, key))) : null;
    }

    @Override
    void beforeRestoring(Collection<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            observe(time(record.key()));
        }
        segments.expire(expiryTime);
    }

    @Override
    boolean restore(ConsumerRecord<byte[], byte[]> record) {
        long time = time(record.key());
        if (segments.segment(time) < segments.segment(streamTime - retention)) {
            return false;
        }
        change(record.key(), record.value(), time);
        return true;
    }

    static boolean isBackwards(Bytes from, Bytes to) {
        return from != null && to != null && from.compareTo(to) > 0;
    }
}
