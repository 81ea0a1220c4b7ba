package org.windrow.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.apache.kafka.streams.state.internals.WrappedStateStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Programs of Kafka Streams whose stores are all Windrow's by one line of their configuration. */
class TopologyTest {
    @TempDir
    File dir;

    private Properties properties(String guarantee, boolean windrow) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "program");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:9092");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, new File(dir, windrow ? "windrow" : "rocksdb").getPath());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put(WindrowConfig.MEMORY, "16MiB");
        if (windrow) {
            properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, WindrowDslStoreSuppliers.class);
        }
        return properties;
    }

    private static KStream<String, String> input(StreamsBuilder builder) {
        return builder.stream("input", Consumed.with(Serdes.String(), Serdes.String()));
    }

    private static StateStore innermost(StateStore store) {
        StateStore inner = store;
        while (inner instanceof WrappedStateStore<?, ?, ?> wrapped) {
            inner = wrapped.wrapped();
        }
        return inner;
    }

    /** Some of Kafka's adapters do not return the store behind them. */
    private static void assertIsOf(boolean windrow, StateStore store) {
        StateStore inner = innermost(store);
        assertTrue(inner instanceof AbstractStore == windrow || StoreQueryUtils.isAdapter(inner)
                || inner.getClass().getSimpleName().endsWith("Adapter"), store.name() + " is a " + inner);
    }

    @ParameterizedTest
    @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
    void countsOfAProgramWhoseStateIsWiped(String guarantee) {
        StreamsBuilder builder = new StreamsBuilder();
        input(builder).groupByKey().count(Materialized.as("counts")).toStream()
                .to("output", Produced.with(Serdes.String(), Serdes.Long()));
        Properties properties = properties(guarantee, true);
        // The driver removes the state of its tasks when it is closed, as KafkaStreams.cleanUp does.
        for (int round = 1; round <= 2; round++) {
            try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties)) {
                assertIsOf(true, driver.getAllStateStores().get("counts"));
                TestInputTopic<String, String> in =
                        driver.createInputTopic("input", new StringSerializer(), new StringSerializer());
                for (int n = 0; n < 1000; n++) {
                    in.pipeInput("k" + n % 10, "v");
                }
                KeyValueStore<String, ValueAndTimestamp<Long>> counts = driver.getTimestampedKeyValueStore("counts");
                assertEquals(100L, counts.get("k3").value());
                TestOutputTopic<String, Long> out =
                        driver.createOutputTopic("output", new StringDeserializer(), new LongDeserializer());
                assertEquals(100L, out.readKeyValuesToMap().get("k7"));
                assertFalse(WindrowStores.cleanUp(properties));
            }
        }
        assertTrue(WindrowStores.cleanUp(properties));
        assertFalse(new File(dir, "windrow/program/windrow.db").exists());
    }

    private List<KeyValue<Object, Object>> outputs(
            StreamsBuilder builder, boolean windrow, Consumer<TestInputTopic<String, String>> pipe) {
        List<KeyValue<Object, Object>> outputs = new ArrayList<>();
        Properties properties = properties(StreamsConfig.AT_LEAST_ONCE, windrow);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties)) {
            driver.getAllStateStores().values().forEach(store -> assertIsOf(windrow, store));
            pipe.accept(driver.createInputTopic("input", new StringSerializer(), new StringSerializer()));
            driver.createOutputTopic("output", new StringDeserializer(), new StringDeserializer())
                    .readKeyValuesToList().forEach(kv -> outputs.add(KeyValue.pair(kv.key, kv.value)));
        }
        return outputs;
    }

    /** The same program on the built-in stores gives the same records in the same order. */
    private void sameAsBuiltIn(
            Consumer<StreamsBuilder> program, Consumer<TestInputTopic<String, String>> pipe) {
        List<List<KeyValue<Object, Object>>> both = new ArrayList<>();
        for (boolean windrow : new boolean[] {true, false}) {
            StreamsBuilder builder = new StreamsBuilder();
            program.accept(builder);
            both.add(outputs(builder, windrow, pipe));
        }
        assertTrue(both.get(0).size() > 10, "it says something");
        assertEquals(both.get(1), both.get(0));
    }

    private static void pipeMany(TestInputTopic<String, String> in) {
        for (int n = 0; n < 2000; n++) {
            // Some are late.
            in.pipeInput("k" + n % 7, "v" + n, Instant.ofEpochMilli(10_000 + n * 400L - (n % 11 == 0 ? 9000 : 0)));
        }
        // So slowly that the built-in stores still have the closing windows, too.
        for (int n = 0; n < 200; n++) {
            in.pipeInput("end", "v", Instant.ofEpochMilli(10_000 + 2000 * 400L + n * 1000L));
        }
    }

    private static <K> void text(KStream<Windowed<K>, Long> counts) {
        counts.map((window, count) -> KeyValue.pair(
                window.key() + "@" + window.window().start() + "-" + window.window().end(), String.valueOf(count)))
                .to("output", Produced.with(Serdes.String(), Serdes.String()));
    }

    @Test
    void windowsOnUpdate() {
        sameAsBuiltIn(builder -> text(input(builder).groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(20)))
                .count(Materialized.with(Serdes.String(), Serdes.Long())).toStream()), TopologyTest::pipeMany);
    }

    @Test
    void sessionsOnUpdate() {
        sameAsBuiltIn(builder -> text(input(builder).groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofSeconds(20)))
                .count(Materialized.with(Serdes.String(), Serdes.Long())).toStream()), TopologyTest::pipeMany);
    }

    private Map<Object, Object> ofClosed(Consumer<StreamsBuilder> program, boolean windrow) {
        StreamsBuilder builder = new StreamsBuilder();
        program.accept(builder);
        Map<Object, Object> last = new HashMap<>();
        for (KeyValue<Object, Object> output : outputs(builder, windrow, TopologyTest::pipeMany)) {
            assertNull(last.put(output.key, output.value), "a window comes once: " + output.key);
        }
        return last;
    }

    @Test
    void windowsOnClose() {
        Consumer<StreamsBuilder> program = builder -> text(input(builder).groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(20)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count(Materialized.with(Serdes.String(), Serdes.Long())).toStream());
        assertEquals(ofClosed(program, false), ofClosed(program, true));
    }

    @Test
    void sessionsOnClose() {
        Consumer<StreamsBuilder> program = builder -> text(input(builder).groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofSeconds(20)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count(Materialized.with(Serdes.String(), Serdes.Long())).toStream());
        assertEquals(ofClosed(program, false), ofClosed(program, true));
    }

    @Test
    void joinsOfStreams() {
        sameAsBuiltIn(builder -> {
            KStream<String, String> input = input(builder);
            KStream<String, String> even = input.filter((key, value) -> value.length() % 2 == 0);
            input.leftJoin(even, (left, right) -> left + "+" + right,
                    JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(3), Duration.ofSeconds(10)),
                    StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())).to("output");
        }, TopologyTest::pipeMany);
    }

    @Test
    void tablesAndVersions() {
        StreamsBuilder builder = new StreamsBuilder();
        var table = input(builder).toTable(Materialized.<String, String>as(
                WindrowStores.versionedKeyValueStore("versions", Duration.ofMinutes(5)))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
        builder.stream("other", Consumed.with(Serdes.String(), Serdes.String()))
                .join(table, (other, value) -> other + "=" + value).to("output");
        try (TopologyTestDriver driver =
                new TopologyTestDriver(builder.build(), properties(StreamsConfig.EXACTLY_ONCE_V2, true))) {
            var in = driver.createInputTopic("input", new StringSerializer(), new StringSerializer());
            var other = driver.createInputTopic("other", new StringSerializer(), new StringSerializer());
            in.pipeInput("k", "old", Instant.ofEpochMilli(1000));
            in.pipeInput("k", "new", Instant.ofEpochMilli(2000));
            other.pipeInput("k", "then", Instant.ofEpochMilli(1500));
            other.pipeInput("k", "now", Instant.ofEpochMilli(2500));
            var out = driver.createOutputTopic("output", new StringDeserializer(), new StringDeserializer());
            assertEquals(List.of("then=old", "now=new"), out.readValuesToList());
        }
    }

    @Test
    void interactiveQueries() {
        StreamsBuilder builder = new StreamsBuilder();
        input(builder).groupByKey(Grouped.as("g")).windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
                .count(Materialized.as("windows"));
        input(builder).groupByKey(Grouped.as("h")).windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(1)))
                .count(Materialized.as("sessions"));
        try (TopologyTestDriver driver =
                new TopologyTestDriver(builder.build(), properties(StreamsConfig.AT_LEAST_ONCE, true))) {
            var in = driver.createInputTopic("input", new StringSerializer(), new StringSerializer());
            for (int n = 0; n < 100; n++) {
                in.pipeInput(n % 2 == 0 ? "even" : "odd", "v", Instant.ofEpochMilli(n * 300L));
            }
            WindowStore<String, Long> windows = driver.getWindowStore("windows");
            List<Long> counts = new ArrayList<>();
            try (var found = windows.backwardFetch("even", Instant.EPOCH, Instant.ofEpochMilli(30_000))) {
                found.forEachRemaining(kv -> counts.add(kv.value));
            }
            assertEquals(List.of(16L, 17L, 17L), counts);
            SessionStore<String, Long> sessions = driver.getSessionStore("sessions");
            try (var found = sessions.fetch("odd")) {
                assertEquals(50L, found.next().value);
            }
            assertNotNull(windows.fetch("odd", 20_000));
        }
    }
}
