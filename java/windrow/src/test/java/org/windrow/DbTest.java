package org.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The library as programs use it. */
class DbTest {
    @TempDir
    Path dir;

    private Db db;

    @BeforeEach
    void open() {
        db = Db.open(dir.resolve("db"), new Options().memoryBytes(16 << 20));
    }

    @AfterEach
    void close() {
        db.close();
    }

    static byte[] b(String text) {
        return text.getBytes(UTF_8);
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static List<String> keys(EntryIterator entries) {
        List<String> keys = new ArrayList<>();
        entries.forEachRemaining(entry -> keys.add(s(entry.key())));
        return keys;
    }

    @Test
    void keysAndValues() {
        db.put(b("a"), b("1"));
        assertEquals("1", s(db.get(b("a"))));
        assertNull(db.get(b("b")));
        db.put(b(""), b(""));
        assertArrayEquals(new byte[0], db.get(b("")));
        byte[] large = new byte[300_000];
        large[299_999] = 7;
        db.put(new byte[60_000], large);
        assertArrayEquals(large, db.get(new byte[60_000]));
        assertTrue(db.containsKey(b("a")) && !db.containsKey(b("b")));
        db.delete(b("a"));
        db.delete(b("a"));
        assertNull(db.get(b("a")));
        assertThrows(IllegalArgumentException.class, () -> db.put(new byte[70_000], b("")));
        String message = assertThrows(NullPointerException.class, () -> db.put(null, b(""))).getMessage();
        assertEquals("the key is null", message);
        assertThrows(NullPointerException.class, () -> db.put(b("a"), null));
        assertThrows(NullPointerException.class, () -> db.get(null));
        List<byte[]> all = db.getAll(List.of(b(""), b("b")));
        assertEquals(0, all.get(0).length);
        assertNull(all.get(1));
        assertThrows(NullPointerException.class, () -> db.getAll(Collections.singletonList(null)));
    }

    @Test
    void operationsOfOneStep() {
        assertTrue(db.compareAndSet(b("x"), null, b("1")));
        assertFalse(db.compareAndSet(b("x"), null, b("2")));
        assertNull(db.putIfAbsent(b("y"), b("2")));
        assertEquals("2", s(db.putIfAbsent(b("y"), b("3"))));
        assertEquals("1+", s(db.update(b("x"), value -> b(s(value) + "+"))));
        assertEquals(new Entry(b("x"), b("1+")), db.first());
        assertEquals("y", s(db.last().key()));
        assertEquals("x", s(db.popFirst().key()));
        assertEquals("2", s(db.remove(b("y"))));
        assertNull(db.popLast());
        assertNull(db.remove(b("y")));
        db.put(b("t"), b(""), Duration.ofSeconds(60));
        Duration left = db.ttl(b("t")).orElseThrow();
        assertTrue(left.compareTo(Duration.ofSeconds(50)) > 0 && left.compareTo(Duration.ofSeconds(60)) <= 0);
        db.put(b("u"), b(""));
        assertEquals(Long.MAX_VALUE, db.ttl(b("u")).orElseThrow().getSeconds());
        assertTrue(db.ttl(b("v")).isEmpty());
        assertThrows(IllegalArgumentException.class, () -> db.put(b("t"), b(""), Duration.ofSeconds(-1)));
        db.clear();
        assertNull(db.first());
    }

    @Test
    void directBuffers() {
        ByteBuffer key = ByteBuffer.allocateDirect(16).put(0, b("-key-")).position(1).limit(4);
        ByteBuffer value = ByteBuffer.allocateDirect(16).put(0, b("value")).limit(5);
        db.put(key, value);
        assertEquals("value", s(db.get(b("key"))));
        value.clear().position(2);
        assertEquals(5, db.get(key, value));
        assertEquals(7, value.limit());
        byte[] read = new byte[5];
        value.get(read);
        assertEquals("value", s(read));
        ByteBuffer small = ByteBuffer.allocateDirect(3);
        assertEquals(5, db.get(key, small));
        assertEquals(3, small.remaining());
        assertEquals(Keyspace.NOT_FOUND, db.get(key.duplicate().limit(3), value.clear()));
        assertThrows(IllegalArgumentException.class, () -> db.get(ByteBuffer.allocate(1), value));
        assertThrows(ReadOnlyBufferException.class, () -> db.get(key, value.asReadOnlyBuffer()));
        assertThrows(NullPointerException.class, () -> db.put(key, null));
    }

    @Test
    void scansGoBothWays() {
        for (int n = 0; n < 5000; n++) {
            db.put(b("%04d".formatted(n)), b("v" + n));
        }
        List<String> all = IntStream.range(0, 5000).mapToObj("%04d"::formatted).toList();
        assertEquals(all, keys(db.scan().iterator()));
        List<String> back = new ArrayList<>(all);
        Collections.reverse(back);
        assertEquals(back, keys(db.scan().reverse().passCacheBy().iterator()));
        assertEquals(List.of("0010", "0011"), keys(db.range(b("0010"), b("0012"))));
        assertEquals(10, keys(db.prefix(b("499"))).size());
        assertEquals(5000, db.count(null, null));
        assertEquals(1000, db.count(b("4"), null));
        assertTrue(db.approximateCount() > 0);
        for (int limit : new int[] {0, 1, 10, 1023, 1024, 1025, 4999, 5000, 9000}) {
            assertEquals(all.subList(0, Math.min(limit, 5000)), keys(db.scan().limit(limit).iterator()));
            assertEquals(back.subList(0, Math.min(limit, 5000)), keys(db.scan().reverse().limit(limit).iterator()));
        }
        assertThrows(IllegalArgumentException.class, () -> db.scan().limit(-1));
        for (Entry entry : db.scan().prefix(b("42")).keysOnly()) {
            assertEquals(0, entry.value().length);
        }
        db.put(new byte[] {-1, -1}, b("end"));
        assertEquals(1, keys(db.prefix(new byte[] {-1})).size());
        try (EntryIterator entries = db.scan().from(b("0100")).iterator()) {
            db.put(b("0100a"), b("later"));
            assertEquals("0100", s(entries.peekKey()));
            assertTrue(entries.advance());
            assertEquals("v100", s(entries.value()));
            assertEquals(ByteBuffer.wrap(b("0100")), entries.keyBuffer());
            assertEquals(ByteBuffer.wrap(b("v100")), entries.valueBuffer());
            assertEquals("0101", s(entries.next().key()));
        }
    }

    @Test
    void cursorsMoveByHand() {
        for (int n = 100; n < 300; n++) {
            db.put(b("" + n), b("v" + n));
        }
        try (Cursor cursor = db.scan().from(b("100")).to(b("200")).cursor()) {
            assertFalse(cursor.isValid());
            assertThrows(IllegalStateException.class, cursor::key);
            assertThrows(IllegalArgumentException.class, cursor::next);
            assertTrue(cursor.seekLast());
            assertEquals("199", s(cursor.key()));
            assertTrue(cursor.prev());
            assertEquals("v198", s(cursor.value()));
            assertTrue(cursor.seek(b("1500")));
            assertEquals("151", s(cursor.key()));
            assertTrue(cursor.seekBefore(b("1500")));
            assertEquals("150", s(cursor.key()));
            db.delete(b("150"));
            assertTrue(cursor.refresh());
            assertEquals("151", s(cursor.key()));
            assertFalse(cursor.seek(b("2")));
            assertTrue(cursor.seekFirst() && cursor.next());
        }
    }

    @Test
    void batchesAndSnapshots() {
        Keyspace users = db.keyspace("users", new KeyspaceOptions().ttl(Duration.ofHours(1)));
        Snapshot then = db.snapshot();
        Batch batch = new Batch();
        batch.put(users, b("u1"), b("ada")).put(db, b("a"), b("1"), Duration.ofSeconds(60)).delete(db, b("b"));
        batch.put(users, b("u2"), new byte[100_000]).singleDelete(users, b("u3"));
        assertEquals(5, batch.size());
        long first = db.write(batch, true);
        assertEquals("ada", s(users.get(b("u1"))));
        assertNull(users.get(then, b("u1")));
        assertNull(users.getAll(then, List.of(b("u1"))).get(0));
        assertEquals(List.of(), keys(db.scan().at(then).iterator()));
        then.close();
        batch.clear();
        batch.deletePrefix(users, b("u")).deleteRange(db, b("a"), b("b"));
        assertTrue(db.write(batch) > first);
        assertNull(users.first());
        assertNull(db.first());
        batch.clear();
        batch.put(db, b("a"), b("1")).put(db, new byte[70_000], b(""));
        assertThrows(IllegalArgumentException.class, () -> db.write(batch));
        assertNull(db.first());
        assertEquals(List.of("default", "users"), db.keyspaces());
        assertNull(db.findKeyspace("none"));
        assertNotNull(db.findKeyspace("users"));
        db.dropKeyspace("users");
        assertThrows(ClosedException.class, () -> users.get(b("u1")));
    }

    @Test
    void transactionsRunAgain() throws InterruptedException {
        db.put(b("n"), b("0"));
        List<Thread> threads = IntStream.range(0, 8).mapToObj(t -> new Thread(() -> {
            for (int i = 0; i < 50; i++) {
                db.transact(t % 2 == 0 ? TransactionOptions.OPTIMISTIC : TransactionOptions.PESSIMISTIC, tx -> {
                    int n = Integer.parseInt(s(tx.getForUpdate(db, b("n"))));
                    tx.put(db, b("n"), b("" + (n + 1)));
                    return n;
                });
            }
        })).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals("400", s(db.get(b("n"))));
        try (Transaction tx = db.transaction(TransactionOptions.OPTIMISTIC)) {
            tx.put(db, b("a"), b("1"), Duration.ofSeconds(60));
            tx.savepoint();
            tx.delete(db, b("n"));
            tx.rollbackToSavepoint();
            List<Entry> all = tx.scan(db, null, null, false, 9);
            assertEquals(List.of(new Entry(b("a"), b("1")), new Entry(b("n"), b("400"))), all);
            assertEquals(1, tx.scan(db, null, null, true, 1).size());
            assertThrows(IllegalArgumentException.class, tx::rollbackToSavepoint);
            tx.commit(true);
            assertThrows(ClosedException.class, () -> tx.get(db, b("a")));
        }
        assertThrows(ArithmeticException.class, () -> db.transact(tx -> {
            tx.put(db, b("a"), b("2"));
            return 1 / (tx.get(db, b("z")) == null ? 0 : 1);
        }));
        assertEquals("1", s(db.get(b("a"))));
        Transaction first = db.transaction(TransactionOptions.OPTIMISTIC);
        Transaction second = db.transaction(TransactionOptions.OPTIMISTIC);
        first.put(db, b("a"), s(first.get(db, b("a"))).isEmpty() ? b("") : b("3"));
        second.put(db, b("a"), s(second.get(db, b("a"))).isEmpty() ? b("") : b("4"));
        first.commit();
        assertThrows(ConflictException.class, second::commit);
    }

    @Test
    void ingestion() {
        try (Ingest ingest = db.ingest()) {
            for (int n = 0; n < 20_000; n++) {
                ingest.put(b("%06d".formatted(n)), b("value" + n));
            }
            ingest.put(b("1"), new byte[200_000]);
            assertNull(db.first());
            assertEquals(20_001, ingest.finish());
            assertThrows(ClosedException.class, () -> ingest.finish());
        }
        assertEquals("value777", s(db.get(b("000777"))));
        Ingest wrong = db.ingest();
        wrong.put(b("b"), b(""));
        wrong.put(b("a"), b(""));
        assertTrue(assertThrows(IllegalArgumentException.class, wrong::finish).getMessage().contains("ascending"));
        assertThrows(ClosedException.class, wrong::finish);
        assertEquals(20_001, db.count(null, null));
        db.ingest().close();
    }

    @Test
    void upkeep() {
        db.put(b("a"), new byte[1000]);
        db.synced().put(b("b"), new byte[1000]);
        db.sync();
        db.flush();
        db.compactAll();
        db.waitIdle();
        assertTrue(db.approximateBytes(b("a"), b("c")) > 0);
        assertEquals(List.of(), db.verify());
        assertNull(db.writeError());
        db.resume();
        Stats stats = db.stats();
        assertEquals(2, stats.count("user_operations") + stats.count("operations"));
        assertTrue(stats.values().containsKey("levels.0.bytes"), stats::toString);
        assertTrue(db.statsJson().startsWith("{") && db.statsText().length() > 100);
        assertEquals("default", db.name());
        db.setPolicy("leveled");
        assertTrue(db.policy().contains("leveled"));
        assertThrows(IllegalArgumentException.class, () -> db.setPolicy("level"));
        Keyspace archive = db.keyspace("archive", new KeyspaceOptions().compression("none").policy("leveled"));
        archive.configure(new KeyspaceOptions().ttl(Duration.ofSeconds(5)));
        archive.put(b("a"), b(""));
        assertTrue(archive.ttl(b("a")).orElseThrow().toSeconds() <= 5);
        archive.flush();
        archive.compact(null, null);
        db.checkpoint(dir.resolve("copy"));
        try (Db copy = Db.open(dir.resolve("copy"), new Options().memoryBytes(16 << 20).readOnly(true))) {
            assertEquals(1000, copy.get(b("a")).length);
            RuntimeException refused = assertThrows(RuntimeException.class, () -> copy.put(b("c"), b("")));
            assertEquals(WindrowException.Kind.READ_ONLY, ((WindrowException) refused).kind());
        }
        Db.destroy(dir.resolve("copy"));
        assertFalse(Files.exists(dir.resolve("copy")));
    }

    @Test
    void followers() {
        db.put(b("a"), b("1"));
        try (Follower follower = Follower.open(dir.resolve("db"), new Options().memoryBytes(16 << 20))) {
            try (Db seen = follower.db()) {
                assertEquals("1", s(seen.get(b("a"))));
            }
            db.put(b("a"), b("2"));
            assertTrue(follower.refresh());
            assertEquals("2", s(follower.db().get(b("a"))));
            follower.refreshEvery(Duration.ZERO);
        }
    }

    @Test
    void optionsAreChecked() {
        Path other = dir.resolve("other");
        String message = assertThrows(IllegalArgumentException.class,
                () -> Db.open(other, new Options().set("colour", "red"))).getMessage();
        assertTrue(message.contains("colour"), message);
        assertThrows(IllegalArgumentException.class, () -> Db.open(other, new Options().memoryBytes(1)));
        assertThrows(RuntimeException.class, () -> Db.open(other, new Options().createIfMissing(false)));
        assertThrows(RuntimeException.class, () -> Db.open(dir.resolve("db"), new Options().errorIfExists(true)));
        WindrowException busy = assertThrows(WindrowException.class, () -> Db.open(dir.resolve("db")));
        assertEquals(WindrowException.Kind.BUSY, busy.kind());
    }

    @Test
    void damageIsFoundAndRepaired() throws Exception {
        byte[] random = new byte[20_000];
        new Random(1).nextBytes(random);
        db.put(b("a"), random);
        db.flush();
        db.close();
        Path table;
        try (Stream<Path> files = Files.walk(dir.resolve("db"))) {
            table = files.filter(path -> path.toString().endsWith(".sst") && path.toFile().length() > 0)
                    .findFirst().orElseThrow();
        }
        try (RandomAccessFile file = new RandomAccessFile(table.toFile(), "rw")) {
            file.seek(5000);
            file.write(new byte[] {1, 2, 3, 4, 5, 6, 7});
        }
        try (Db damaged = Db.open(dir.resolve("db"), new Options().memoryBytes(16 << 20))) {
            assertFalse(damaged.verify().isEmpty());
            WindrowException read = assertThrows(WindrowException.class, () -> damaged.get(b("a")));
            assertEquals(WindrowException.Kind.CORRUPTION, read.kind());
        }
        RepairReport report = Db.repair(dir.resolve("db"), new Options().memoryBytes(16 << 20));
        assertTrue(report.lostSomething() && !report.problems().isEmpty(), report::toString);
    }

    /** Merges to the longest operand; "bad" fits nothing. */
    private static final class Longest implements MergeOperator {
        @Override
        public byte[] fullMerge(byte[] key, byte[] base, List<byte[]> operands) {
            byte[] longest = base == null ? new byte[0] : base;
            for (byte[] operand : operands) {
                if (s(operand).equals("bad")) {
                    throw new IllegalStateException("it is bad");
                }
                longest = operand.length > longest.length ? operand : longest;
            }
            return longest;
        }

        @Override
        public byte[] partialMerge(byte[] key, List<byte[]> operands) {
            return operands.stream().anyMatch(o -> s(o).equals("bad")) ? null : fullMerge(key, null, operands);
        }
    }

    @Test
    void codeOfJavaRunsInTheLibrary() {
        List<String> events = new CopyOnWriteArrayList<>();
        Options options = new Options().memoryBytes(16 << 20)
                .mergeOperator("longest", new Longest())
                .comparator("backwards", (x, y) -> java.util.Arrays.compareUnsigned(y, x))
                .compactionFilter("filtered", (level, key, value) -> switch (s(key)) {
                    case "drop" -> null;
                    case "change" -> b("changed");
                    case "throw" -> throw new IllegalStateException("of the filter");
                    default -> value;
                })
                .listener(event -> {
                    events.add(event);
                    throw new IllegalStateException("of the listener");
                });
        try (Db with = Db.open(dir.resolve("with"), options)) {
            Keyspace words = with.keyspace("words", new KeyspaceOptions().mergeOperator("longest"));
            words.merge(b("a"), b("xx"));
            with.write(new Batch().merge(words, b("a"), b("xxx")));
            words.flush();
            words.compact(null, null);
            words.merge(b("a"), b("x"));
            assertEquals("xxx", s(words.get(b("a"))));
            words.merge(b("a"), b("bad"));
            WindrowException refused = assertThrows(WindrowException.class, () -> words.get(b("a")));
            assertEquals(WindrowException.Kind.MERGE_REFUSED, refused.kind());
            assertEquals("it is bad", refused.getCause().getMessage());
            assertNull(assertThrows(IllegalArgumentException.class, () -> with.setPolicy("level")).getCause());

            Keyspace backwards = with.keyspace("backwards", new KeyspaceOptions().comparator("backwards"));
            for (String key : List.of("b", "c", "a")) {
                backwards.put(b(key), b(""));
            }
            assertEquals(List.of("c", "b", "a"), keys(backwards.scan().iterator()));

            Keyspace filtered = with.keyspace("filtered");
            for (String key : List.of("change", "drop", "keep", "throw")) {
                filtered.put(b(key), b("value"));
            }
            filtered.flush();
            filtered.compact(null, null);
            assertEquals(List.of("change", "keep", "throw"), keys(filtered.scan().iterator()));
            assertEquals("changed", s(filtered.get(b("change"))));
            assertEquals("value", s(filtered.get(b("keep"))));
            assertFalse(events.isEmpty());
        }
        assertThrows(NullPointerException.class, () -> options.mergeOperator("none", null));
    }

    @Test
    void anExceptionOfAComparatorIsKept() {
        RuntimeException thrown = new IllegalStateException("of the comparator");
        boolean[] throwing = {false};
        Options options = new Options().memoryBytes(16 << 20).comparator("failing", (x, y) -> {
            if (throwing[0]) {
                throw thrown;
            }
            return java.util.Arrays.compareUnsigned(x, y);
        });
        Db with = Db.open(dir.resolve("with"), options);
        Keyspace keyspace = with.keyspace("failing", new KeyspaceOptions().comparator("failing"));
        keyspace.put(b("a"), b(""));
        keyspace.put(b("b"), b(""));
        throwing[0] = true;
        RuntimeException raised = assertThrows(RuntimeException.class, () -> keyspace.put(b("c"), b("")));
        assertSame(thrown, raised.getCause());
        throwing[0] = false;
        assertSame(thrown, with.writeError().getCause());
        WindrowException closing = assertThrows(WindrowException.class, with::close);
        assertEquals(WindrowException.Kind.READ_ONLY, closing.kind());
        try (Db again = Db.open(dir.resolve("with"), options)) {
            assertEquals("a", s(again.keyspace("failing").first().key()));
        }
    }

    @Test
    void aPanicIsAnException() {
        for (int i = 0; i < 3; i++) {
            WindrowException panic = assertThrows(WindrowException.class, db::panic);
            assertEquals(WindrowException.Kind.INTERNAL, panic.kind());
            assertTrue(panic.getMessage().contains("it was asked for"), panic.getMessage());
        }
        db.put(b("a"), b("1"));
        assertEquals("1", s(db.get(b("a"))));
    }
}
