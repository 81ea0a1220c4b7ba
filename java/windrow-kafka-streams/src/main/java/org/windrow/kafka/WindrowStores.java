package org.windrow.kafka;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/**
 * Suppliers of stores, instead of those of {@link org.apache.kafka.streams.state.Stores}: for the builders there,
 * and for {@code Materialized.as}.
 */
public final class WindrowStores {
    /** The tag of metrics is this with "-state-id" appended. */
    static final String SCOPE = "windrow";

    private static final long SEGMENT_MIN_MS = 60_000;

    private WindrowStores() {}

    /**
     * Removes the database of a program's stores if no task has state any more: for after
     * {@code KafkaStreams.cleanUp()}, which removes the directories of tasks and calls no store. Without this call the
     * database stays as it is until the program is started again.
     *
     * @param configs those of the program: the application's id, and the state directory if it is not the default
     * @return whether there is no database any more; false if a store is open, or a task has state
     */
    public static boolean cleanUp(Properties configs) {
        Object application = configs.get(StreamsConfig.APPLICATION_ID_CONFIG);
        Objects.requireNonNull(application, StreamsConfig.APPLICATION_ID_CONFIG + " is not set");
        Object states = configs.getOrDefault(StreamsConfig.STATE_DIR_CONFIG,
                StreamsConfig.configDef().defaultValues().get(StreamsConfig.STATE_DIR_CONFIG));
        return Instance.cleanUp(Path.of(states.toString(), application.toString()));
    }

    /** The common part of the suppliers. */
    private static class Named<T> {
        private final String name;
        private final Supplier<T> store;

        Named(String name, Supplier<T> store) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.store = store;
        }

        public String name() {
            return name;
        }

        public T get() {
            return store.get();
        }

        public String metricsScope() {
            return SCOPE;
        }
    }

    private static class KeyValues extends Named<KeyValueStore<Bytes, byte[]>> implements KeyValueBytesStoreSupplier {
        KeyValues(String name, Supplier<KeyValueStore<Bytes, byte[]>> store) {
            super(name, store);
        }
    }

    /** A key-value store. */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return new KeyValues(name, () -> new WindrowKeyValueStore(name, SCOPE));
    }

    /** A key-value store whose values have a timestamp. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return new KeyValues(name, () -> new WindrowKeyValueStore.Timestamped(name, SCOPE));
    }

    /** A key-value store whose values have headers and a timestamp. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStoreWithHeaders(String name) {
        return new KeyValues(name, () -> new WindrowKeyValueStore.WithHeaders(name, SCOPE));
    }

    private static final class Versions extends KeyValues implements VersionedBytesStoreSupplier {
        private final long retentionMs;

        Versions(String name, long retentionMs, long intervalMs) {
            super(name, () -> new VersionedKeyValueToBytesStoreAdapter(
                    new WindrowVersionedStore(name, SCOPE, retentionMs, intervalMs)));
            this.retentionMs = retentionMs;
        }

        @Override
        public long historyRetentionMs() {
            return retentionMs;
        }
    }

    /** A versioned store. */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(String name, Duration historyRetention) {
        long retention = notNegative(historyRetention, "historyRetention");
        return new Versions(name, retention, Math.max(retention / 4, 1));
    }

    /** The kinds of values of window stores. */
    enum Values { PLAIN, TIMESTAMPED, WITH_HEADERS }

    private static final class Windows extends Named<WindowStore<Bytes, byte[]>> implements WindowBytesStoreSupplier {
        private final long retentionMs;
        private final long intervalMs;
        private final long sizeMs;
        private final boolean duplicates;

        Windows(String name, long retentionMs, long intervalMs, long sizeMs, boolean duplicates, Values values,
                boolean byTime) {
            super(name, () -> switch (values) {
                case PLAIN -> new WindrowWindowStore(name, SCOPE, retentionMs, intervalMs, sizeMs, duplicates, byTime);
                case TIMESTAMPED -> new WindrowWindowStore.Timestamped(
                        name, SCOPE, retentionMs, intervalMs, sizeMs, duplicates, byTime);
                case WITH_HEADERS -> new WindrowWindowStore.WithHeaders(
                        name, SCOPE, retentionMs, intervalMs, sizeMs, duplicates, byTime);
            });
            this.retentionMs = retentionMs;
            this.intervalMs = intervalMs;
            this.sizeMs = sizeMs;
            this.duplicates = duplicates;
        }

        @Override
        public long segmentIntervalMs() {
            return intervalMs;
        }

        @Override
        public long windowSize() {
            return sizeMs;
        }

        @Override
        public boolean retainDuplicates() {
            return duplicates;
        }

        @Override
        public long retentionPeriod() {
            return retentionMs;
        }
    }

    /** A window store. */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, retention, windowSize, retainDuplicates, Values.PLAIN, false);
    }

    /** A window store whose values have a timestamp. */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, retention, windowSize, retainDuplicates, Values.TIMESTAMPED, false);
    }

    /** A window store whose values have headers and a timestamp. */
    public static WindowBytesStoreSupplier timestampedWindowStoreWithHeaders(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, retention, windowSize, retainDuplicates, Values.WITH_HEADERS, false);
    }

    /**
     * @param byTime whether reads ask for all windows of a short time: segments are small then, since a scan of a time
     *     goes over its segments
     */
    static WindowBytesStoreSupplier windows(
            String name, Duration retention, Duration windowSize, boolean duplicates, Values values, boolean byTime) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = notNegative(retention, "retentionPeriod");
        long sizeMs = notNegative(windowSize, "windowSize");
        if (sizeMs > retentionMs) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                    + " must be no smaller than its window size. Got size=[" + sizeMs + "], retention=[" + retentionMs
                    + "]");
        }
        long interval = interval(retentionMs, byTime);
        return new Windows(name, retentionMs, byTime ? Math.max(interval, sizeMs) : interval, sizeMs, duplicates, values,
                byTime);
    }

    private static long interval(long retentionMs, boolean byTime) {
        return byTime ? Math.max(retentionMs / 64, 1_000) : Math.max(retentionMs / 2, SEGMENT_MIN_MS);
    }

    private static final class Sessions extends Named<SessionStore<Bytes, byte[]>> implements SessionBytesStoreSupplier {
        private final long retentionMs;
        private final long intervalMs;

        Sessions(String name, long retentionMs, long intervalMs, boolean headers, boolean byTime) {
            super(name, () -> headers
                    ? new WindrowSessionStore.WithHeaders(name, SCOPE, retentionMs, intervalMs, byTime)
                    : new WindrowSessionStore(name, SCOPE, retentionMs, intervalMs, byTime));
            this.retentionMs = retentionMs;
            this.intervalMs = intervalMs;
        }

        @Override
        public long segmentIntervalMs() {
            return intervalMs;
        }

        @Override
        public long retentionPeriod() {
            return retentionMs;
        }
    }

    /** A session store. */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        return sessions(name, retention, false, false);
    }

    /** A session store whose values have headers. */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(String name, Duration retention) {
        return sessions(name, retention, true, false);
    }

    static SessionBytesStoreSupplier sessions(String name, Duration retention, boolean headers, boolean byTime) {
        long retentionMs = notNegative(retention, "retentionPeriod");
        return new Sessions(name, retentionMs, interval(retentionMs, byTime), headers, byTime);
    }

    private static long notNegative(Duration duration, String what) {
        Objects.requireNonNull(duration, what + " cannot be null");
        if (duration.isNegative()) {
            throw new IllegalArgumentException(what + " cannot be negative");
        }
        return duration.toMillis();
    }
}
