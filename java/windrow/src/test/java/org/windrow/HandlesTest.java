package org.windrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.windrow.DbTest.b;
import static org.windrow.DbTest.s;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Handles that are closed, used after a close, used by many threads, or never closed. */
class HandlesTest {
    @TempDir
    Path dir;

    private Db open() {
        return Db.open(dir.resolve("db"), new Options().memoryBytes(16 << 20));
    }

    private static Map<String, Executable> callsOfKeyspace(Keyspace keyspace) {
        ByteBuffer direct = ByteBuffer.allocateDirect(8);
        Map<String, Executable> calls = new TreeMap<>();
        calls.put("get", () -> keyspace.get(b("a")));
        calls.put("getDirect", () -> keyspace.get(direct, direct));
        calls.put("getAll", () -> keyspace.getAll(List.of(b("a"))));
        calls.put("containsKey", () -> keyspace.containsKey(b("a")));
        calls.put("put", () -> keyspace.put(b("a"), b("")));
        calls.put("putDirect", () -> keyspace.put(direct, direct));
        calls.put("delete", () -> keyspace.delete(b("a")));
        calls.put("deleteRange", () -> keyspace.deleteRange(b("a"), b("b")));
        calls.put("merge", () -> keyspace.merge(b("a"), b("")));
        calls.put("compareAndSet", () -> keyspace.compareAndSet(b("a"), null, b("")));
        calls.put("putIfAbsent", () -> keyspace.putIfAbsent(b("a"), b("")));
        calls.put("remove", () -> keyspace.remove(b("a")));
        calls.put("clear", keyspace::clear);
        calls.put("first", keyspace::first);
        calls.put("popLast", keyspace::popLast);
        calls.put("ttl", () -> keyspace.ttl(b("a")));
        calls.put("count", () -> keyspace.count(null, null));
        calls.put("approximateCount", keyspace::approximateCount);
        calls.put("approximateBytes", () -> keyspace.approximateBytes(b("a"), b("b")));
        calls.put("scan", () -> keyspace.scan().iterator().hasNext());
        calls.put("cursor", () -> keyspace.cursor().seekFirst());
        calls.put("ingest", keyspace::ingest);
        calls.put("flush", keyspace::flush);
        calls.put("compact", () -> keyspace.compact(null, null));
        calls.put("setPolicy", () -> keyspace.setPolicy("leveled"));
        calls.put("configure", () -> keyspace.configure(new KeyspaceOptions()));
        return calls;
    }

    private static Map<String, Executable> callsOfDb(Db db, Keyspace other) {
        Map<String, Executable> calls = new TreeMap<>();
        calls.put("keyspace", () -> db.keyspace("x"));
        calls.put("findKeyspace", () -> db.findKeyspace("x"));
        calls.put("keyspaces", db::keyspaces);
        calls.put("dropKeyspace", () -> db.dropKeyspace("x"));
        calls.put("write", () -> db.write(new Batch().put(other, b("a"), b(""))));
        calls.put("snapshot", db::snapshot);
        calls.put("transaction", () -> db.transaction(TransactionOptions.OPTIMISTIC));
        calls.put("sync", db::sync);
        calls.put("flushAll", db::flush);
        calls.put("compactAll", db::compactAll);
        calls.put("waitIdle", db::waitIdle);
        calls.put("verify", db::verify);
        calls.put("resume", db::resume);
        calls.put("writeError", db::writeError);
        calls.put("stats", db::stats);
        calls.put("statsText", db::statsText);
        return calls;
    }

    private static void allClosed(String what, Map<String, Executable> calls) {
        calls.forEach((name, call) -> assertThrows(ClosedException.class, call, what + "." + name));
    }

    @Test
    void whatIsClosedRaises() {
        Db db = Db.open(dir.resolve("db"), new Options().memoryBytes(16 << 20)
                .defaultKeyspace(new KeyspaceOptions().mergeOperator("append")));
        Keyspace users = db.keyspace("users", new KeyspaceOptions().mergeOperator("append"));
        Keyspace apart = db.keyspace("apart");
        apart.close();
        apart.close();
        allClosed("a closed keyspace", callsOfKeyspace(apart));
        assertThrows(ClosedException.class, () -> db.write(new Batch().put(apart, b("a"), b(""))));
        Snapshot snapshot = db.snapshot();
        snapshot.close();
        assertThrows(ClosedException.class, () -> users.get(snapshot, b("a")));
        assertThrows(ClosedException.class, () -> users.scan().at(snapshot).iterator());
        Transaction transaction = db.transaction(TransactionOptions.OPTIMISTIC);
        transaction.close();
        assertThrows(ClosedException.class, () -> transaction.put(users, b("a"), b("")));
        assertThrows(ClosedException.class, transaction::commit);
        assertThrows(ClosedException.class, transaction::savepoint);
        Ingest ingest = users.ingest();
        ingest.put(b("a"), b(""));
        ingest.close();
        assertThrows(ClosedException.class, ingest::finish);
        Cursor cursor = users.cursor();
        cursor.close();
        assertThrows(ClosedException.class, cursor::seekFirst);
        EntryIterator entries = users.scan().iterator();
        entries.close();
        entries.close();
        assertThrows(ClosedException.class, entries::hasNext);
        assertThrows(ClosedException.class, entries::key);

        Transaction running = db.transaction(TransactionOptions.OPTIMISTIC);
        running.put(users, b("a"), b(""));
        Ingest going = users.ingest();
        db.close();
        db.close();
        allClosed("a closed database", callsOfDb(db, users));
        allClosed("its default keyspace", callsOfKeyspace(db));
        allClosed("a keyspace of it", callsOfKeyspace(users));
        assertThrows(ClosedException.class, running::commit);
        assertThrows(ClosedException.class, going::finish);
        try (Db again = open()) {
            assertNull(again.keyspace("users").get(b("a")));
        }
    }

    @Test
    void aDatabaseOfAnotherIsRefused() {
        try (Db db = open(); Db other = Db.open(dir.resolve("other"), new Options().memoryBytes(16 << 20))) {
            Snapshot snapshot = other.snapshot();
            assertThrows(IllegalArgumentException.class, () -> db.get(snapshot, b("a")));
            assertThrows(IllegalArgumentException.class, () -> db.scan().at(snapshot).iterator().hasNext());
            assertThrows(IllegalArgumentException.class, () -> db.write(new Batch().put(other, b("a"), b(""))));
        }
    }

    @Test
    void whatReadsGoesOnWhenItsDatabaseIsClosed() {
        Db db = open();
        for (int n = 0; n < 5000; n++) {
            db.put(b("%04d".formatted(n)), b("value" + n));
        }
        EntryIterator entries = db.scan().iterator();
        Cursor cursor = db.cursor();
        cursor.seek(b("0042"));
        db.close();
        int count = 0;
        while (entries.advance()) {
            count++;
        }
        assertEquals(5000, count);
        assertTrue(cursor.next());
        assertEquals("0043", s(cursor.key()));
        cursor.close();
    }

    /** Runs the same work in several threads, each {@code times} times; returns their exceptions. */
    private static Queue<Throwable> inThreads(int threads, int times, Consumer<Integer> run) throws Exception {
        Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
        CountDownLatch ready = new CountDownLatch(threads);
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            Thread thread = new Thread(() -> {
                ready.countDown();
                for (int i = 0; i < times; i++) {
                    try {
                        ready.await();
                        run.accept(i);
                    } catch (Throwable e) {
                        thrown.add(e);
                    }
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        return thrown;
    }

    @Test
    void threadsCloseWhatOthersUse() throws Exception {
        for (int round = 0; round < 20; round++) {
            Db db = open();
            Keyspace users = db.keyspace("users");
            for (int n = 0; n < 500; n++) {
                users.put(b("%03d".formatted(n)), new byte[200]);
            }
            AtomicLong calls = new AtomicLong();
            int closing = 100 + round;
            Queue<Throwable> thrown = inThreads(4, 200, i -> {
                if (calls.incrementAndGet() == closing) {
                    db.close();
                }
                users.put(b("k" + i), b("v"));
                users.get(b("001"));
                try (EntryIterator entries = users.scan().iterator()) {
                    while (entries.advance()) {
                        entries.value();
                    }
                }
                try (Snapshot snapshot = db.snapshot()) {
                    users.get(snapshot, b("001"));
                }
                db.transact(tx -> {
                    tx.put(users, b("n"), b(""));
                    return null;
                });
                db.write(new Batch().put(users, b("x"), b("y")));
            });
            thrown.forEach(e -> assertTrue(e instanceof ClosedException, e::toString));
            assertFalse(thrown.isEmpty());
            db.close();
        }
    }

    @Test
    void oneIteratorInManyThreadsRaises() throws Exception {
        try (Db db = open()) {
            for (int n = 0; n < 20_000; n++) {
                db.put(b("%05d".formatted(n)), new byte[100]);
            }
            for (int round = 0; round < 10; round++) {
                EntryIterator entries = db.scan().iterator();
                Cursor cursor = db.cursor();
                Transaction transaction = db.transaction(TransactionOptions.OPTIMISTIC);
                int closing = 40 + round;
                Queue<Throwable> thrown = inThreads(4, 100, i -> {
                    if (i == closing) {
                        entries.close();
                        cursor.close();
                        transaction.close();
                    }
                    if (cursor.seek(b("%05d".formatted(i * 100)))) {
                        cursor.next();
                    }
                    transaction.put(db, b("x"), b(""));
                    transaction.scan(db, b("00010"), b("00020"), false, 9);
                    for (int n = 0; n < 100 && entries.hasNext(); n++) {
                        entries.next();
                    }
                });
                assertFalse(thrown.isEmpty());
                thrown.forEach(e -> assertTrue(e instanceof RuntimeException, e::toString));
            }
            db.put(b("a"), b("1"));
            assertEquals("1", s(db.get(b("a"))));
        }
    }

    @Test
    void whatIsForgottenIsClosed() throws Exception {
        forget();
        for (int i = 0; i < 200; i++) {
            System.gc();
            Thread.sleep(20);
            try (Db again = open()) {
                assertNotNull(again.get(b("a")));
                return;
            } catch (WindrowException e) {
                assertEquals(WindrowException.Kind.BUSY, e.kind());
            }
        }
        throw new AssertionError("the database is open after four seconds");
    }

    private void forget() {
        Db db = open();
        for (int n = 0; n < 1000; n++) {
            db.put(b("a" + n), new byte[100]);
        }
        db.put(b("a"), b("1"));
        db.snapshot();
        db.cursor().seekFirst();
        db.scan().iterator().next();
        db.transaction(TransactionOptions.OPTIMISTIC).put(db, b("b"), b(""));
        db.ingest().put(b("c"), b(""));
        db.keyspace("users");
    }

    @Test
    void whatIsUsedIsNotForgotten() {
        try (Db db = open()) {
            db.keyspace("users").put(b("a"), b("1"));
            for (int i = 0; i < 2000; i++) {
                // The keyspace has no other owner: only the call itself keeps it.
                assertEquals("1", s(db.keyspace("users").get(b("a"))));
                if (i % 100 == 0) {
                    System.gc();
                }
            }
        }
    }

    @Test
    void forgottenHandlesLeaveSnapshotsNone() throws Exception {
        try (Db db = open()) {
            for (int i = 0; i < 2000; i++) {
                db.snapshot();
            }
            for (int i = 0; i < 200 && db.stats().count("readers_open") > 0; i++) {
                System.gc();
                Thread.sleep(20);
            }
            assertEquals(0, db.stats().count("readers_open"));
        }
    }
}
