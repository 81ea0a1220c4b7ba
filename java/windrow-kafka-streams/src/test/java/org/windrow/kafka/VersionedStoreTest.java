package org.windrow.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.windrow.kafka.Fixture.bytes;
import static org.windrow.kafka.Fixture.context;
import static org.windrow.kafka.Fixture.key;
import static org.windrow.kafka.Fixture.text;

import java.io.File;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.internals.RocksDbVersionedKeyValueBytesStoreSupplier;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Versioned stores: by example, compared with a map of versions, and with Kafka's own store. */
class VersionedStoreTest {
    private static final long RETENTION = 300;

    @TempDir
    File dir;

    private InternalMockProcessorContext<Object, Object> context;
    private WindrowVersionedStore store;

    @BeforeEach
    void setUp() {
        context = context(dir, new Properties());
        store = new WindrowVersionedStore("versions", "scope", RETENTION, RETENTION / 4);
        store.init(context, store);
    }

    @AfterEach
    void tearDown() {
        store.close();
    }

    private long put(String value, long time) {
        return store.put(key("k"), bytes(value), time);
    }

    private String at(long time) {
        return shown(store.get(key("k"), time));
    }

    private static String shown(VersionedRecord<byte[]> record) {
        return record == null
                ? null
                : text(record.value()) + "@" + record.timestamp() + "-" + record.validTo().map(Object::toString).orElse("");
    }

    @Test
    void versions() {
        assertNull(store.get(key("k")));
        assertEquals(-1, put("a", 10));
        assertEquals(-1, put("b", 20));
        assertEquals(20, put("c", 15));
        assertEquals(10, put("d", 5));
        assertEquals("b@20-", at(Long.MAX_VALUE));
        assertEquals("b@20-", at(20));
        assertEquals("c@15-20", at(19));
        assertEquals("a@10-15", at(14));
        assertEquals("d@5-10", at(9));
        assertNull(at(4));
        assertEquals(20, put("c2", 15));
        assertEquals("c2@15-20", at(16));
        assertEquals(-1, put("b2", 20));
        assertEquals("b2@20-", at(20));
        assertEquals("b2", text(store.get(key("k")).value()));
        assertNull(store.get(key("kk")));
        store.put(key("kk"), bytes("other"), 12);
        assertEquals("a@10-15", at(12));
    }

    @Test
    void deletes() {
        put("a", 10);
        assertEquals("a", text(store.delete(key("k"), 20).value()));
        assertNull(store.get(key("k")));
        assertNull(at(20));
        assertEquals("a@10-20", at(19));
        assertEquals(20, put("b", 15));
        assertEquals("b@15-20", at(19));
        assertEquals(-1, put("c", 30));
        assertNull(at(29));
        assertEquals("c@30-", at(30));
        assertEquals(30, put("d", 25));
        assertNull(at(24));
        assertEquals("d@25-30", at(29));
        assertEquals(15, put(null, 12));
        assertEquals("a@10-12", at(11));
        assertNull(at(13));
        assertNull(store.delete(key("none"), 40));
        put("", 50);
        assertArrayEquals(new byte[0], store.get(key("k")).value());
    }

    @Test
    void whatIsOldExpires() {
        put("a", 10);
        put("b", 20);
        store.put(key("other"), bytes("x"), 20 + RETENTION);
        assertEquals("b@20-", at(20), "the latest version never expires");
        put("c", 21 + RETENTION);
        assertNull(at(15));
        assertEquals(Long.MIN_VALUE, put("late", 20));
        assertNull(store.delete(key("k"), 20));
        store.put(key("other"), bytes("x"), 20 + 3 * RETENTION);
        put("d", 21 + 3 * RETENTION);
        assertNull(at(22));
        store.commit(Map.of());
        assertEquals(2, store.table.approximateCount() - 2, "two latest versions, and one older of each");
    }

    /** The map of versions: from a key's times to its values. */
    @Test
    void randomVersionsNextToAMap() {
        Random random = new Random(3);
        Map<String, TreeMap<Long, String>> model = new TreeMap<>();
        long now = 0;
        for (int n = 0; n < 5000; n++) {
            now += random.nextInt(3);
            String name = "k" + random.nextInt(4);
            long time = Math.max(0, now - random.nextInt(60));
            String value = random.nextInt(4) == 0 ? null : "v" + n;
            TreeMap<Long, String> versions = model.computeIfAbsent(name, any -> new TreeMap<>());
            Long next = versions.higherKey(time);
            assertEquals(next == null ? -1 : next, store.put(key(name), bytes(value), time));
            versions.put(time, value);
            long asked = Math.max(0, now - random.nextInt((int) RETENTION));
            Map.Entry<Long, String> found = versions.floorEntry(asked);
            VersionedRecord<byte[]> record = store.get(key(name), asked);
            assertEquals(found == null ? null : found.getValue(), record == null ? null : text(record.value()),
                    name + " at " + asked + " of " + versions);
            if (n % 500 == 0) {
                store.commit(Map.of());
            }
        }
    }

    /** The answers of both at each step, restored records included. */
    @Test
    void theSameAsKafkasOwnStore() {
        VersionedKeyValueStore<Bytes, byte[]> theirs = Stores.versionedKeyValueStoreBuilder(
                new RocksDbVersionedKeyValueBytesStoreSupplier("theirs", RETENTION, RETENTION / 3),
                Serdes.Bytes(), Serdes.ByteArray()).withLoggingDisabled().build();
        theirs.init(context(new File(dir, "theirs"), new Properties()), theirs);
        VersionedKeyValueStore<Bytes, byte[]> ours = Stores.versionedKeyValueStoreBuilder(
                WindrowStores.versionedKeyValueStore("ours", Duration.ofMillis(RETENTION)),
                Serdes.Bytes(), Serdes.ByteArray()).withLoggingDisabled().build();
        ours.init(context, ours);
        Random random = new Random(5);
        long now = 1000;
        for (int n = 0; n < 4000; n++) {
            now += random.nextInt(4);
            Bytes key = key("k" + random.nextInt(3));
            long time = now - random.nextInt(2 * (int) RETENTION);
            byte[] value = random.nextInt(4) == 0 ? null : bytes("v" + n);
            if (random.nextInt(5) == 0) {
                assertEquals(shown(theirs.delete(key, time)), shown(ours.delete(key, time)), "delete " + n);
            } else {
                assertEquals(theirs.put(key, value, time), ours.put(key, value, time), "put " + n);
            }
            long asked = now - random.nextInt(2 * (int) RETENTION);
            assertEquals(shown(theirs.get(key, asked)), shown(ours.get(key, asked)), "get " + n + " at " + asked + " of " + now);
            assertEquals(shown(theirs.get(key)), shown(ours.get(key)), "latest " + n);
        }
        theirs.close();
        ours.close();
    }

    @Test
    void queriesOfManyVersions() {
        put("a", 10);
        put("b", 20);
        put(null, 30);
        put("c", 40);
        MultiVersionedKeyQuery<Bytes, byte[]> query = MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key("k"));
        assertEquals(List.of("c", "b", "a"), found(query));
        assertEquals(List.of("a", "b", "c"), found(query.withAscendingTimestamps()));
        assertEquals(List.of("b"), found(query.fromTime(Instant.ofEpochMilli(20)).toTime(Instant.ofEpochMilli(35))));
        assertEquals(List.of("b", "a"), found(query.fromTime(Instant.ofEpochMilli(19)).toTime(Instant.ofEpochMilli(29))));
        assertEquals(ResultOrder.ANY, query.resultOrder());
    }

    private List<String> found(MultiVersionedKeyQuery<Bytes, byte[]> query) {
        List<String> values = new ArrayList<>();
        try (VersionedRecordIterator<byte[]> records =
                store.query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult()) {
            while (records.hasNext()) {
                values.add(text(records.next().value()));
            }
        }
        return values;
    }

    @Test
    void restoring() {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long[] times = {10, 30, 20, 40, 20};
        String[] values = {"a", "c", "b", null, "b2"};
        for (int n = 0; n < times.length; n++) {
            records.add(new ConsumerRecord<>("changelog", 0, n, times[n], TimestampType.CREATE_TIME, -1, -1, bytes("k"),
                    bytes(values[n]), new RecordHeaders(), java.util.Optional.empty()));
        }
        context.restoreWithHeaders("versions", records);
        assertNull(store.get(key("k")));
        assertEquals("c@30-40", at(39));
        assertEquals("b2@20-30", at(29));
        assertEquals("a@10-20", at(19));
        put("d", 50);
        assertTrue(store.isOpen());
        store.close();
        assertFalse(store.isOpen());
        store.init(context, store);
        assertEquals("c@30-40", at(39));
    }
}
