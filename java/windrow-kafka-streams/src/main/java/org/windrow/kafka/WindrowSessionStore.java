package org.windrow.kafka;

import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session store. In the changelog, and after the segment's number here, a key is the program's key, the session's end
 * and its start.
 */
class WindrowSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(WindrowSessionStore.class);
    private static final int NUMBERS_BYTES = 8 + 8;

    WindrowSessionStore(String name, String metricsScope, long retention, long segmentInterval, boolean byTime) {
        super(name, metricsScope, retention, segmentInterval, byTime);
    }

    /** With headers in each value. */
    static final class WithHeaders extends WindrowSessionStore implements HeadersBytesStore {
        WithHeaders(String name, String metricsScope, long retention, long segmentInterval, boolean byTime) {
            super(name, metricsScope, retention, segmentInterval, byTime);
        }
    }

    private static byte[] binary(Bytes key, long start, long end) {
        byte[] bytes = Arrays.copyOf(key.get(), key.get().length + NUMBERS_BYTES);
        Numbers.put(bytes, key.get().length, end);
        Numbers.put(bytes, key.get().length + 8, start);
        return bytes;
    }

    private static byte[] binary(Windowed<Bytes> session) {
        Objects.requireNonNull(session, "sessionKey can't be null");
        Objects.requireNonNull(session.key(), "sessionKey.key() can't be null");
        return binary(session.key(), session.window().start(), session.window().end());
    }

    @Override
    long time(byte[] key) {
        return end(key);
    }

    private static long end(byte[] key) {
        return Numbers.number(key, key.length - 16);
    }

    private static long start(byte[] key) {
        return Numbers.number(key, key.length - 8);
    }

    @Override
    public void put(Windowed<Bytes> sessionKey, byte[] aggregate) {
        putBytes(binary(sessionKey), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> sessionKey) {
        removeBytes(binary(sessionKey));
    }

    @Override
    public byte[] fetchSession(Bytes key, long sessionStartTime, long sessionEndTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return getBytes(binary(key, sessionStartTime, sessionEndTime));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        return findOf(key, earliestSessionEndTime, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        return findOf(key, earliestSessionEndTime, latestSessionStartTime, true);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> findOf(Bytes key, long earliestEnd, long latestStart, boolean reverse) {
        Objects.requireNonNull(key, "key cannot be null");
        if (!isOpen()) {
            return Iterators.none();
        }
        long from = firstTime(earliestEnd);
        byte[] first = binary(key, 0, Math.max(0, from));
        byte[] last = binary(key, Long.MAX_VALUE, Long.MAX_VALUE);
        KeyValueIterator<Bytes, byte[]> entries = segments.scan(
                segments.between(from, Long.MAX_VALUE, reverse),
                segment -> new Segments.Range(WindowedKeys.inSegment(segment, first),
                        Numbers.after(WindowedKeys.inSegment(segment, last))),
                inSegment -> start(inSegment) <= latestStart
                        && WindowedKeys.isOf(inSegment, key.get(), NUMBERS_BYTES),
                reverse);
        return Iterators.windowed(entries, WindrowSessionStore::session);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, firstTime(earliestSessionEndTime), Long.MAX_VALUE, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, firstTime(earliestSessionEndTime), Long.MAX_VALUE, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            long earliestSessionEndTime, long latestSessionEndTime) {
        // Reads ask so for sessions that have just closed: those are as old as the retention.
        return find(null, null, earliestSessionEndTime, latestSessionEndTime, Long.MAX_VALUE, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes keyFrom, Bytes keyTo, long from, long latestEnd, long latestStart, boolean reverse) {
        if (isBackwards(keyFrom, keyTo)) {
            Iterators.warnOfRange(LOG);
            return Iterators.none();
        }
        if (!isOpen()) {
            return Iterators.none();
        }
        KeyValueIterator<Bytes, byte[]> entries = segments.scan(
                segments.between(from, latestEnd, reverse),
                segment -> WindowedKeys.range(segment, keyFrom, keyTo, NUMBERS_BYTES),
                inSegment -> {
                    long end = end(inSegment);
                    return from <= end && end <= latestEnd && start(inSegment) <= latestStart
                            && WindowedKeys.isBetween(inSegment, keyFrom, keyTo, NUMBERS_BYTES);
                },
                reverse);
        return Iterators.windowed(entries, WindrowSessionStore::session);
    }

    private static Windowed<Bytes> session(byte[] inSegment) {
        return new Windowed<>(Bytes.wrap(WindowedKeys.key(inSegment, NUMBERS_BYTES)),
                new SessionWindow(start(inSegment), end(inSegment)));
    }
}
