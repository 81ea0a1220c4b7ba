package org.windrow.kafka;

import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A window store. In the changelog, and after the segment's number here, a key is the program's key, the window's start
 * and a number that distinguishes duplicates.
 */
class WindrowWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(WindrowWindowStore.class);
    private static final int NUMBERS_BYTES = 8 + 4;

    private final long windowSize;
    private final boolean retainDuplicates;
    private int duplicate;

    WindrowWindowStore(
            String name,
            String metricsScope,
            long retention,
            long segmentInterval,
            long windowSize,
            boolean retainDuplicates,
            boolean byTime) {
        super(name, metricsScope, retention, segmentInterval, byTime);
        this.windowSize = windowSize;
        this.retainDuplicates = retainDuplicates;
    }

    /** With a timestamp in each value. */
    static final class Timestamped extends WindrowWindowStore implements TimestampedBytesStore {
        Timestamped(String name, String scope, long retention, long interval, long windowSize, boolean retainDuplicates,
                boolean byTime) {
            super(name, scope, retention, interval, windowSize, retainDuplicates, byTime);
        }
    }

    /** With headers and a timestamp in each value. */
    static final class WithHeaders extends WindrowWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name, String scope, long retention, long interval, long windowSize, boolean retainDuplicates,
                boolean byTime) {
            super(name, scope, retention, interval, windowSize, retainDuplicates, byTime);
        }
    }

    private static byte[] binary(Bytes key, long start, int duplicate) {
        byte[] bytes = Arrays.copyOf(key.get(), key.get().length + NUMBERS_BYTES);
        Numbers.put(bytes, key.get().length, start);
        Numbers.putInt(bytes, key.get().length + 8, duplicate);
        return bytes;
    }

    @Override
    long time(byte[] key) {
        return start(key);
    }

    private static long start(byte[] key) {
        return Numbers.number(key, key.length - NUMBERS_BYTES);
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStartTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        if (retainDuplicates) {
            if (value == null) {
                // A delete could not say which of several it means.
                return;
            }
            duplicate = (duplicate + 1) & Integer.MAX_VALUE;
        }
        putBytes(binary(key, windowStartTimestamp, duplicate), value);
    }

    @Override
    public byte[] fetch(Bytes key, long time) {
        Objects.requireNonNull(key, "key cannot be null");
        return getBytes(binary(key, time, duplicate));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo) {
        return Iterators.starts(scanOf(key, timeFrom, timeTo, false), WindrowWindowStore::start);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long timeFrom, long timeTo) {
        return Iterators.starts(scanOf(key, timeFrom, timeTo, true), WindrowWindowStore::start);
    }

    private KeyValueIterator<Bytes, byte[]> scanOf(Bytes key, long timeFrom, long timeTo, boolean reverse) {
        Objects.requireNonNull(key, "key cannot be null");
        long from = firstTime(timeFrom);
        if (!isOpen() || timeTo < from) {
            return Iterators.none();
        }
        byte[] first = binary(key, Math.max(0, from), 0);
        byte[] last = binary(key, timeTo, Integer.MAX_VALUE);
        return segments.scan(
                segments.between(from, timeTo, reverse),
                segment -> new Segments.Range(WindowedKeys.inSegment(segment, first),
                        Numbers.after(WindowedKeys.inSegment(segment, last))),
                inSegment -> WindowedKeys.isOf(inSegment, key.get(), NUMBERS_BYTES),
                reverse);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return scan(keyFrom, keyTo, timeFrom, timeTo, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return scan(keyFrom, keyTo, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return scan(null, null, timeFrom, timeTo, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long timeFrom, long timeTo) {
        return scan(null, null, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return scan(null, null, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return scan(null, null, 0, Long.MAX_VALUE, true);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> scan(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo, boolean reverse) {
        if (isBackwards(keyFrom, keyTo)) {
            Iterators.warnOfRange(LOG);
            return Iterators.none();
        }
        long from = firstTime(timeFrom);
        if (!isOpen() || timeTo < from) {
            return Iterators.none();
        }
        KeyValueIterator<Bytes, byte[]> entries = segments.scan(
                segments.between(from, timeTo, reverse),
                segment -> WindowedKeys.range(segment, keyFrom, keyTo, NUMBERS_BYTES),
                inSegment -> {
                    long start = start(inSegment);
                    return from <= start && start <= timeTo
                            && WindowedKeys.isBetween(inSegment, keyFrom, keyTo, NUMBERS_BYTES);
                },
                reverse);
        return Iterators.windowed(entries, this::window);
    }

    private Windowed<Bytes> window(byte[] inSegment) {
        long start = start(inSegment);
        long end = start + windowSize;
        // A window at the end of time ends there.
        return new Windowed<>(Bytes.wrap(WindowedKeys.key(inSegment, NUMBERS_BYTES)),
                new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }
}
