package org.windrow.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.windrow.kafka.Fixture.bytes;
import static org.windrow.kafka.Fixture.context;
import static org.windrow.kafka.Fixture.exactlyOnce;
import static org.windrow.kafka.Fixture.key;
import static org.windrow.kafka.Fixture.keys;
import static org.windrow.kafka.Fixture.text;

import java.io.File;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The state after an unclean exit with exactly-once processing: that of a committed transaction, complete. */
class ExactlyOnceTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir
    File dir;

    private InternalMockProcessorContext<Object, Object> context;
    private WindrowKeyValueStore store;

    @BeforeEach
    void setUp() {
        begin(32 << 20);
    }

    private void begin(long bufferBytes) {
        Properties properties = exactlyOnce();
        properties.put(WindrowConfig.BUFFER, Long.toString(bufferBytes));
        context = context(dir, properties);
        context.setProcessorMetadata(new ProcessorMetadata());
        store = new WindrowKeyValueStore("store", "scope");
        store.init(context, store);
    }

    @AfterEach
    void tearDown() {
        store.close();
    }

    /** Does the same as a task after the commit of a transaction. */
    private void transactionCommitted() {
        context.processorMetadata().setNeedsCommit(false);
    }

    /** An exit at any moment: nothing is committed. */
    private void exit(long bufferBytes) {
        store.close();
        begin(bufferBytes);
    }

    private void put(String key, String value) {
        store.put(key(key), bytes(value));
    }

    private String get(String key) {
        return text(store.get(key(key)));
    }

    @Test
    void aTransactionIsCommittedByTheFirstWriteAfterIt() {
        put("a", "1");
        put("b", "1");
        assertTrue(context.processorMetadata().needsCommit(), "the mark that a commit takes back");
        transactionCommitted();
        put("a", "2");
        assertEquals("2", get("a"));
        exit(32 << 20);
        assertEquals("1", get("a"));
        assertEquals("1", get("b"));
        put("c", "3");
        exit(32 << 20);
        assertNull(get("c"));
        assertEquals("1", get("a"));
    }

    @Test
    void twoStoresOfATaskSeeTheSameTransaction() {
        WindrowKeyValueStore other = new WindrowKeyValueStore("other", "scope");
        other.init(context, other);
        put("a", "1");
        other.put(key("a"), bytes("1"));
        transactionCommitted();
        // The first one of them finds the mark gone, and sets it again; the other one finds the new transaction.
        put("a", "2");
        other.put(key("a"), bytes("2"));
        store.close();
        other.close();
        begin(32 << 20);
        other = new WindrowKeyValueStore("other", "scope");
        other.init(context, other);
        assertEquals("1", get("a"));
        assertEquals("1", text(other.get(key("a"))));
        other.close();
    }

    @Test
    void whatIsCommittedAtTheEndIsThere() {
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 5L));
        exit(32 << 20);
        assertEquals("1", get("a"));
        assertEquals(5L, store.committedOffset(CHANGELOG));
    }

    /** Transactions larger than the buffer, some of them rolled back, compared with a map. */
    @Test
    void largeTransactionsAreTakenBack() {
        long small = 20_000;
        exit(small);
        Random random = new Random(7);
        TreeMap<String, String> committed = new TreeMap<>();
        for (int transaction = 0; transaction < 30; transaction++) {
            TreeMap<String, String> after = new TreeMap<>(committed);
            for (int n = 0; n < 1000; n++) {
                String key = "%04d".formatted(random.nextInt(3000));
                String value = random.nextInt(5) == 0 ? null : "value" + transaction + "/" + n;
                put(key, value);
                if (value == null) {
                    after.remove(key);
                } else {
                    after.put(key, value);
                }
            }
            assertEquals(after.get(after.firstKey()), get(after.firstKey()));
            assertTrue(store.table.hasChanges());
            if (random.nextInt(3) == 0) {
                exit(small);
                assertEquals(committed.size(), keys(store.all()).size(), "transaction " + transaction);
                committed.forEach((key, value) -> assertEquals(value, get(key)));
            } else {
                transactionCommitted();
                put("next", "transaction");
                after.put("next", "transaction");
                committed = after;
                store.commit(Map.of(CHANGELOG, (long) transaction));
            }
        }
        assertTrue(store.table.instance().undo().first() == null, "nothing is left to be taken back");
    }
}
