package org.windrow.kafka;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.LongFunction;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The parts of a table by time: keys begin with the number of the segment of their time, so that a segment older than
 * the retention is deleted by one small write, whatever its size.
 *
 * <p>Owns: the set of segments, and scans over some of them. Never does: know the part of a key after the segment's
 * number.
 */
final class Segments {
    static final int NUMBER_BYTES = 8;

    private final long interval;
    private final long retention;
    private final NavigableSet<Long> live = new ConcurrentSkipListSet<>();
    private Table table;

    Segments(long retention, long interval) {
        this.retention = retention;
        this.interval = interval;
    }

    /** Finds the segments of a table, by one seek for each. */
    void open(Table of) {
        table = of;
        live.clear();
        byte[] from = null;
        while (true) {
            try (TableIterator entries = table.range(from, null, false)) {
                if (!entries.hasNext()) {
                    return;
                }
                long segment = number(entries.peekNextKey().get());
                live.add(segment);
                from = Numbers.behind(prefix(segment));
                if (from == null) {
                    return;
                }
            }
        }
    }

    long segment(long time) {
        return Math.floorDiv(time, interval);
    }

    /** The first of the keys of a segment: negative numbers come before others. */
    static byte[] prefix(long segment) {
        return Numbers.bytes(segment ^ Long.MIN_VALUE);
    }

    static long number(byte[] key) {
        return Numbers.number(key, 0) ^ Long.MIN_VALUE;
    }

    /** Drops segments that are older than the retention. */
    void expire(long time) {
        long first = segment(time - retention);
        while (!live.isEmpty() && live.first() < first) {
            long segment = live.first();
            table.deleteRange(prefix(segment), prefix(segment + 1));
            live.remove(segment);
        }
    }

    /** Notes that a segment has an entry. */
    void add(long segment) {
        live.add(segment);
    }

    /** Excludes a part of the table that is no segment of time. */
    void forget(long segment) {
        live.remove(segment);
    }

    boolean has(long segment) {
        return live.contains(segment);
    }

    /** The segments of a range of times. */
    List<Long> between(long from, long to, boolean reverse) {
        long first = segment(from);
        long last = segment(to);
        if (first > last) {
            return List.of();
        }
        NavigableSet<Long> segments = live.subSet(first, true, last, true);
        return new ArrayList<>(reverse ? segments.descendingSet() : segments);
    }

    /** A range of keys in one segment: from one to before another. */
    record Range(byte[] from, byte[] to) {}

    /** The entries of some segments; each is scanned when the one before is at its end. */
    KeyValueIterator<Bytes, byte[]> scan(
            List<Long> segments, LongFunction<Range> range, Predicate<byte[]> isWanted, boolean reverse) {
        return new Scan(segments.iterator(), range, isWanted, reverse);
    }

    private final class Scan implements KeyValueIterator<Bytes, byte[]> {
        private final Iterator<Long> segments;
        private final LongFunction<Range> range;
        private final Predicate<byte[]> isWanted;
        private final boolean reverse;
        private TableIterator entries;
        private KeyValue<Bytes, byte[]> next;
        private boolean closed;

        Scan(Iterator<Long> segments, LongFunction<Range> range, Predicate<byte[]> isWanted, boolean reverse) {
            this.segments = segments;
            this.range = range;
            this.isWanted = isWanted;
            this.reverse = reverse;
        }

        @Override
        public synchronized boolean hasNext() {
            if (!table.isOpen()) {
                close();
            }
            while (next == null && !closed) {
                try {
                    if (entries != null && entries.hasNext()) {
                        KeyValue<Bytes, byte[]> entry = entries.next();
                        next = isWanted.test(entry.key.get()) ? entry : null;
                    } else if (!goOn()) {
                        return false;
                    }
                } catch (InvalidStateStoreException e) {
                    // The store was closed: Kafka's window stores are at their end then.
                    close();
                }
            }
            return next != null;
        }

        private boolean goOn() {
            if (entries != null) {
                entries.close();
                entries = null;
            }
            while (segments.hasNext()) {
                long segment = segments.next();
                if (has(segment)) {
                    Range of = range.apply(segment);
                    entries = table.range(of.from(), of.to(), reverse);
                    return true;
                }
            }
            return false;
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
            closed = true;
            next = null;
            if (entries != null) {
                entries.close();
                entries = null;
            }
        }
    }
}
