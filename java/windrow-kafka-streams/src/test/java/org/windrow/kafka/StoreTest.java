package org.windrow.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.windrow.kafka.Fixture.at;
import static org.windrow.kafka.Fixture.bytes;
import static org.windrow.kafka.Fixture.changelog;
import static org.windrow.kafka.Fixture.context;
import static org.windrow.kafka.Fixture.exactlyOnce;
import static org.windrow.kafka.Fixture.key;
import static org.windrow.kafka.Fixture.keys;
import static org.windrow.kafka.Fixture.text;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.serialization.UUIDSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The behaviour that Kafka's tests of RocksDB's store ask for, and that is not about RocksDB. */
class StoreTest {
    private static final String NAME = "store";
    private static final TopicPartition FIRST = new TopicPartition("first", 0);
    private static final TopicPartition SECOND = new TopicPartition("second", 0);

    @TempDir
    File dir;

    private InternalMockProcessorContext<Object, Object> context;
    private WindrowKeyValueStore store;

    @BeforeEach
    void setUp() {
        context = context(dir, new Properties());
        store = new WindrowKeyValueStore(NAME, "scope");
    }

    @AfterEach
    void tearDown() {
        store.close();
    }

    private void init() {
        store.init(context, store);
    }

    private String get(String key) {
        return text(store.get(key(key)));
    }

    private void put(String... keys) {
        for (String key : keys) {
            store.put(key(key), bytes("value of " + key));
        }
    }

    // ---- offsets, and the state after a close

    @Test
    void offsetsAreThereAfterACloseOfAnyKind() {
        init();
        assertNull(store.committedOffset(FIRST));
        put("a");
        store.commit(Map.of(FIRST, 100L, SECOND, 200L));
        put("b");
        store.close();
        init();
        assertEquals(100L, store.committedOffset(FIRST));
        assertEquals(200L, store.committedOffset(SECOND));
        assertEquals("value of a", get("a"));
        assertNull(get("b"), "it was not committed");
        Map<TopicPartition, Long> without = new HashMap<>();
        without.put(FIRST, null);
        store.commit(without);
        assertNull(store.committedOffset(FIRST));
        assertEquals(200L, store.committedOffset(SECOND));
        store.commit(Map.of());
        assertNull(store.committedOffset(SECOND));
        store.close();
        init();
        assertNull(store.committedOffset(FIRST));
        assertNull(store.committedOffset(SECOND));
        assertEquals("value of a", get("a"));
    }

    @Test
    void aStoreWithoutAnOffsetIsSoundWithExactlyOnce() {
        context = context(dir, exactlyOnce());
        init();
        assertEquals(OffsetCheckpoint.OFFSET_UNKNOWN, store.committedOffset(FIRST));
        store.commit(Map.of(FIRST, 7L));
        assertEquals(7L, store.committedOffset(FIRST));
        store.commit(Map.of());
        assertNull(store.committedOffset(FIRST));
    }

    @Test
    void restoringOverWhatIsThere() {
        init();
        put("existing");
        store.commit(Map.of());
        context.restore(NAME, List.of(KeyValue.pair(bytes("restored"), bytes("value"))));
        assertEquals("value", get("restored"));
        assertEquals("value of existing", get("existing"));
    }

    @Test
    void aDirectoryThatCannotBeUsedIsAnException() throws Exception {
        Files.writeString(new File(dir, "windrow.db").toPath(), "a file");
        assertThrows(ProcessorStateException.class, this::init);
        assertFalse(store.isOpen());
    }

    @Test
    void aWipedTaskHasAnEmptyStore() throws Exception {
        init();
        put("a");
        store.commit(Map.of(FIRST, 1L));
        store.close();
        Utils.delete(new File(dir, "windrow"));
        init();
        assertNull(get("a"));
        assertNull(store.committedOffset(FIRST));
        // The keyspace without a file was dropped by the open: there is one, of this store.
        assertEquals(1, store.table.instance().db().keyspaces().stream().filter(n -> n.startsWith("store/")).count());
    }

    // ---- reads and writes

    @Test
    void putsOfMany() {
        init();
        at(context, 5);
        store.putAll(List.of(KeyValue.pair(key("1"), bytes("a")), KeyValue.pair(key("2"), bytes("b")),
                KeyValue.pair(key("2"), null)));
        assertEquals("a", get("1"));
        assertNull(get("2"));
        assertEquals(Position.emptyPosition().withComponent("input", 0, 5), store.getPosition());
        assertEquals("a", text(store.putIfAbsent(key("1"), bytes("x"))));
        assertNull(store.putIfAbsent(key("3"), bytes("c")));
        assertEquals("c", text(store.delete(key("3"))));
        assertNull(store.delete(key("3")));
        store.put(key("empty"), new byte[0]);
        assertEquals("", get("empty"));
        store.commit(Map.of());
        assertEquals("", get("empty"));
    }

    @Test
    void thePositionIsStoredWithTheData() {
        init();
        at(context, 1);
        put("a");
        at(context, 9);
        put("b");
        Position expected = Position.emptyPosition().withComponent("input", 0, 9);
        assertEquals(expected, store.getPosition());
        store.commit(Map.of(FIRST, 1L));
        at(context, 11);
        put("c");
        store.close();
        init();
        assertEquals(expected, store.getPosition());
    }

    @Test
    void aPositionFileOfBeforeIsTakenOver() {
        Position before = Position.emptyPosition().withComponent("topic", 0, 1);
        StoreQueryUtils.checkpointPosition(new OffsetCheckpoint(new File(dir, NAME + ".position")), before);
        init();
        assertEquals(before, store.getPosition());
    }

    @Test
    void prefixes() {
        init();
        put("key1", "key2", "kez", "prefix_1", "prefix_2", "k", "zz");
        for (int round = 0; round < 2; round++) {
            assertEquals(List.of("key1", "key2"), keys(store.prefixScan("key", new StringSerializer())));
            assertEquals(List.of("prefix_1", "prefix_2"), keys(store.prefixScan("prefix", new StringSerializer())));
            assertEquals(List.of(), keys(store.prefixScan("none", new StringSerializer())));
            assertEquals(7, keys(store.prefixScan("", new StringSerializer())).size());
            store.commit(Map.of());
        }
        store.put(Bytes.wrap(new byte[] {-1, -1}), bytes("end"));
        assertEquals(1, keys(store.prefixScan(new byte[] {-1}, new ByteArraySerializer())).size());
        UUID uuid = UUID.randomUUID();
        store.put(Bytes.wrap(new UUIDSerializer().serialize(null, uuid)), bytes("of a UUID"));
        String prefix = uuid.toString().substring(0, 4);
        assertEquals(List.of(uuid.toString()), keys(store.prefixScan(prefix, new StringSerializer())));
        assertThrows(NullPointerException.class, () -> store.prefixScan(null, new StringSerializer()));
    }

    @Test
    void nullsAreRefused() {
        init();
        assertThrows(NullPointerException.class, () -> store.put(null, bytes("a")));
        assertThrows(NullPointerException.class, () -> store.putAll(List.of(KeyValue.pair(null, bytes("a")))));
        assertThrows(NullPointerException.class, () -> store.get(null));
        assertThrows(NullPointerException.class, () -> store.delete(null));
        assertThrows(NullPointerException.class, () -> store.putIfAbsent(null, bytes("a")));
    }

    @Test
    void rangesOverChangesAndWhatIsCommitted() {
        init();
        put("a", "c", "e", "g");
        store.commit(Map.of());
        put("b", "c", "d");
        store.delete(key("e"));
        store.delete(key("h"));
        assertEquals(List.of("a", "b", "c", "d", "g"), keys(store.all()));
        assertEquals(List.of("g", "d", "c", "b", "a"), keys(store.reverseAll()));
        assertEquals(List.of("b", "c", "d"), keys(store.range(key("b"), key("e"))));
        assertEquals(List.of("d", "c", "b"), keys(store.reverseRange(key("b"), key("e"))));
        assertEquals(List.of("a", "b"), keys(store.range(null, key("b"))));
        assertEquals(List.of("g"), keys(store.range(key("e"), null)));
        assertEquals(List.of(), keys(store.range(key("x"), key("b"))));
        try (KeyValueIterator<Bytes, byte[]> entries = store.all()) {
            assertEquals(key("a"), entries.peekNextKey());
            // It shows the moment at which it was begun.
            put("aa");
            store.commit(Map.of());
            store.delete(key("g"));
            assertEquals(5, keys(entries).size());
        }
        assertEquals(List.of("a", "aa", "b", "c", "d"), keys(store.all()));
        assertTrue(store.approximateNumEntries() > 0);
    }

    @Test
    void openIteratorsAreClosedBeforeTheStore() {
        init();
        put("1", "2");
        store.commit(Map.of());
        KeyValueIterator<Bytes, byte[]> first = store.all();
        KeyValueIterator<Bytes, byte[]> second = store.prefixScan("1", new StringSerializer());
        assertTrue(first.hasNext() && second.hasNext());
        assertEquals(2, store.table.openIterators());
        Table table = store.table;
        store.close();
        assertEquals(0, table.openIterators());
        assertThrows(InvalidStateStoreException.class, first::hasNext);
        assertThrows(InvalidStateStoreException.class, first::next);
        assertThrows(InvalidStateStoreException.class, second::peekNextKey);
        first.close();
        assertThrows(InvalidStateStoreException.class, () -> store.get(key("1")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(key("1"), bytes("a")));
        assertThrows(InvalidStateStoreException.class, store::all);
        assertThrows(InvalidStateStoreException.class, store::approximateNumEntries);
        store.close();
        assertFalse(store.isOpen());
    }

    // ---- restoring

    @Test
    void restoringDeletesAndPutsBack() {
        init();
        context.restore(NAME, List.of(KeyValue.pair(bytes("1"), bytes("a")), KeyValue.pair(bytes("2"), bytes("b")),
                KeyValue.pair(bytes("3"), bytes("c")), KeyValue.pair(bytes("1"), null)));
        assertEquals(List.of("2", "3"), keys(store.all()));
        context.restore(NAME, List.of(KeyValue.pair(bytes("1"), bytes("d")), KeyValue.pair(bytes("3"), null)));
        assertEquals("d", get("1"));
        assertEquals(List.of("1", "2"), keys(store.all()));
        context.restore(NAME, List.of(KeyValue.pair(bytes("2"), null), KeyValue.pair(bytes("1"), bytes("e"))));
        assertEquals("e", get("1"));
        put("4");
        assertEquals(List.of("1", "4"), keys(store.all()));
    }

    @Test
    void restoringManyIngests() {
        Properties small = new Properties();
        small.put(WindrowConfig.BUFFER, "1000000");
        context = context(dir, small);
        init();
        for (int n = 0; n < 50; n++) {
            context.restoreWithHeaders(NAME, changelog(n * 1000, (n + 1) * 1000, "value" + n));
        }
        assertTrue(store.table.instance().bufferBytes.get() < 2_000_000);
        assertEquals("value7", get("07123"));
        assertTrue(store.table.instance().db().stats().count("work.flush.count") < 50);
        context.restoreWithHeaders(NAME, changelog(7000, 8000, null));
        assertEquals(49_000, keys(store.all()).size());
        store.close();
        // Without a commit: restored records are written with their offset.
        init();
        assertEquals(7999L, store.committedOffset(new TopicPartition("changelog", 0)));
        assertEquals(49_000, keys(store.all()).size());
    }

    private static ConsumerRecord<byte[], byte[]> withPosition(String key, String value, String topic, long offset) {
        RecordHeaders headers = new RecordHeaders();
        headers.add(ChangelogRecordDeserializationHelper.CHANGELOG_VERSION_HEADER_RECORD_CONSISTENCY);
        Position position = Position.emptyPosition().withComponent(topic, 0, offset);
        headers.add(ChangelogRecordDeserializationHelper.CHANGELOG_POSITION_HEADER_KEY,
                PositionSerde.serialize(position).array());
        return new ConsumerRecord<>("", 0, 0L, 0L, TimestampType.CREATE_TIME, -1, -1, bytes(key), bytes(value), headers,
                java.util.Optional.empty());
    }

    @Test
    void restoringTakesThePositionOver() {
        Properties consistent = new Properties();
        consistent.put(StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, true);
        context = context(dir, consistent);
        init();
        context.restoreWithHeaders(NAME, List.of(withPosition("1", "a", "A", 1), withPosition("2", "b", "B", 2),
                withPosition("3", "c", "A", 3), withPosition("1", null, "A", 4)));
        assertNull(get("1"));
        assertEquals("b", get("2"));
        assertEquals(Position.emptyPosition().withComponent("A", 0, 4).withComponent("B", 0, 2), store.getPosition());
        context.restore(NAME, List.of(KeyValue.pair(bytes("4"), bytes("no headers"))));
        assertEquals("no headers", get("4"));
    }

    // ---- queries and metrics

    @Test
    void queries() {
        init();
        at(context, 3);
        put("a", "b", "c");
        RangeQuery<Bytes, byte[]> query = RangeQuery.<Bytes, byte[]>withRange(key("b"), key("c")).withDescendingKeys();
        var found = store.query(query, PositionBound.unbounded(), new QueryConfig(true));
        assertTrue(found.isSuccess());
        assertEquals(List.of("c", "b"), keys(found.getResult()));
        assertEquals(store.getPosition(), found.getPosition());
        Position later = Position.emptyPosition().withComponent("input", 0, 4);
        assertTrue(store.query(query, PositionBound.at(later), new QueryConfig(false)).isFailure());
    }

    @Test
    void metricsHaveTheNamesThatKafkaHas() {
        init();
        put("a", "b");
        store.commit(Map.of());
        get("a");
        Map<String, Object> values = new HashMap<>();
        for (MetricName name : context.metrics().metrics().keySet()) {
            if (name.group().equals("stream-state-metrics") && name.tags().containsKey("scope-state-id")) {
                assertEquals(NAME, name.tags().get("scope-state-id"));
                values.put(name.name(), context.metrics().metrics().get(name).metricValue());
            }
        }
        List<String> names = List.of("bytes-written-total", "bytes-written-rate", "bytes-read-total",
                "memtable-bytes-flushed-total", "memtable-flush-time-avg", "memtable-flush-time-max", "memtable-hit-ratio",
                "write-stall-duration-total", "write-stall-duration-avg", "block-cache-data-hit-ratio",
                "block-cache-index-hit-ratio", "block-cache-filter-hit-ratio", "bytes-read-compaction-total",
                "bytes-written-compaction-total", "compaction-time-avg", "compaction-time-min", "compaction-time-max",
                "number-open-files", "number-file-errors-total", "estimate-num-keys", "block-cache-capacity",
                "block-cache-usage", "block-cache-pinned-usage", "estimate-pending-compaction-bytes",
                "live-sst-files-size", "total-sst-files-size", "num-running-compactions", "num-running-flushes",
                "background-errors", "size-all-mem-tables", "cur-size-all-mem-tables", "estimate-table-readers-mem");
        for (String name : names) {
            assertNotNull(values.get(name), name + " in " + values);
        }
        assertTrue((long) values.get("bytes-written-total") > 0, values::toString);
        assertTrue((long) values.get("bytes-read-total") > 0, values::toString);
        assertEquals(16L << 20, values.get("block-cache-capacity"));
        assertTrue((long) values.get("cur-size-all-mem-tables") > 0, values::toString);
    }

    @Test
    void storesOfAnInstanceShareADatabase() {
        init();
        WindrowKeyValueStore other = new WindrowKeyValueStore("other", "scope");
        other.init(context, other);
        assertEquals(store.table.instance().db(), other.table.instance().db());
        put("a");
        assertNull(other.get(key("a")));
        store.commit(Map.of(FIRST, 1L));
        assertNull(other.committedOffset(FIRST));
        store.close();
        other.put(key("b"), bytes("1"));
        other.commit(Map.of());
        other.close();
        init();
        assertEquals("value of a", get("a"));
        assertNull(get("b"));
    }

    @Test
    void tasksThatHaveGoneAreForgottenWhenANewOneComes() throws Exception {
        Properties program = new Properties();
        program.put(StreamsConfig.APPLICATION_ID_CONFIG, "program");
        File tasks = new File(dir, "program");
        List<WindrowKeyValueStore> stores = new ArrayList<>();
        for (String task : List.of("0_0", "0_1", "0_2")) {
            if (task.equals("0_2")) {
                // The second task has left. The first one is at work, whatever happens to its directory.
                stores.get(1).close();
                Utils.delete(new File(tasks, "0_1"));
                Utils.delete(new File(tasks, "0_0"));
            }
            InternalMockProcessorContext<?, ?> of = context(new File(tasks, task), program);
            WindrowKeyValueStore store = new WindrowKeyValueStore(NAME, "scope");
            store.init(of, store);
            store.put(key("a"), bytes("of " + task));
            store.commit(Map.of(FIRST, 1L));
            stores.add(store);
        }
        List<String> keyspaces = stores.get(0).table.instance().db().keyspaces();
        assertEquals(2, keyspaces.stream().filter(name -> name.startsWith("store/")).count(), keyspaces::toString);
        assertEquals("of 0_0", text(stores.get(0).get(key("a"))));
        assertEquals("of 0_2", text(stores.get(2).get(key("a"))));
        stores.forEach(WindrowKeyValueStore::close);
    }

    @Test
    void theDatabaseIsRemovedOnceNoTaskHasState() throws Exception {
        Properties program = new Properties();
        program.put(StreamsConfig.APPLICATION_ID_CONFIG, "program");
        program.put(StreamsConfig.STATE_DIR_CONFIG, dir.getPath());
        File tasks = new File(dir, "program");
        context = context(new File(tasks, "0_0"), program);
        init();
        put("a");
        store.commit(Map.of(FIRST, 1L));
        assertFalse(WindrowStores.cleanUp(program), "a store is open");
        store.close();
        assertFalse(WindrowStores.cleanUp(program), "a task has state");
        init();
        assertEquals("value of a", get("a"));
        store.close();
        Utils.delete(new File(tasks, "0_0"));
        // A file of Kafka's that its own cleanUp leaves.
        Files.writeString(new File(tasks, ".lock").toPath(), "");
        assertTrue(WindrowStores.cleanUp(program));
        assertEquals(List.of(".lock"), List.of(tasks.list()));
        assertTrue(new File(tasks, ".lock").delete());
        assertTrue(WindrowStores.cleanUp(program), "there is none");
        assertFalse(tasks.exists());
    }

    // ---- many changes

    @Test
    void manyChangesAreWrittenBeforeTheyAreCommitted() {
        Properties small = new Properties();
        small.put(WindrowConfig.BUFFER, "100000");
        context = context(dir, small);
        init();
        List<String> expected = new ArrayList<>();
        for (int n = 0; n < 20_000; n++) {
            String key = "%05d".formatted(n);
            put(key);
            expected.add(key);
        }
        assertTrue(store.table.instance().bufferBytes.get() < 200_000);
        assertEquals(expected, keys(store.all()));
        byte[] large = new byte[1 << 20];
        Arrays.fill(large, (byte) 7);
        store.put(key("large"), large);
        store.commit(Map.of(FIRST, 1L));
        assertEquals(1 << 20, store.get(key("large")).length);
    }
}
