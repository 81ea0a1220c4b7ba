package bench;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;

/** Puts, gets and scans of a million records with keys of 16 bytes and values of 100, by one thread. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
@Fork(value = 2, jvmArgs = {"-Xmx1g", "-XX:+UseSerialGC"})
public class StoreBench {
    private static final int RECORDS = 1_000_000;
    private static final int SCANNED = 100;
    private static final int SCANNED_LONG = 100_000;

    @Param({"windrow", "rocksdb"})
    public String store;

    private Store db;
    private Path dir;
    private final Random random = new Random(1);
    private final byte[] value = new byte[100];
    private final ByteBuffer directKey = ByteBuffer.allocateDirect(16);
    private final ByteBuffer directValue = ByteBuffer.allocateDirect(256);
    private long next;

    @Setup(Level.Trial)
    public void load() throws Exception {
        dir = Files.createTempDirectory(Path.of(System.getProperty("bench.dir", "/tmp")), "bench");
        db = Store.open(store, dir.resolve("db"));
        for (int n = 0; n < RECORDS; n++) {
            // Half of it is random: neither is to compress to nothing.
            random.nextBytes(value);
            java.util.Arrays.fill(value, 50, 100, (byte) 'x');
            db.put(key(n), value.clone());
        }
        db.settle();
    }

    @TearDown(Level.Trial)
    public void remove() throws Exception {
        db.close();
        try (Stream<Path> files = Files.walk(dir)) {
            files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
    }

    /** Numbers without a pattern in their order. */
    private static byte[] key(long n) {
        long mixed = n * 0x9E3779B97F4A7C15L;
        ByteBuffer key = ByteBuffer.allocate(16).putLong(mixed ^ mixed >>> 29).putLong(n);
        return key.array();
    }

    private byte[] anyKey() {
        return key(random.nextInt(RECORDS));
    }

    /** Of keys that are there and of new ones. */
    @Benchmark
    public void put() throws Exception {
        db.put(key(RECORDS / 2 + next++ % (2L * RECORDS)), value);
    }

    @Benchmark
    public byte[] get() throws Exception {
        return db.get(anyKey());
    }

    @Benchmark
    public int getDirect() throws Exception {
        directKey.clear().put(anyKey()).flip();
        directValue.clear();
        return db.get(directKey, directValue);
    }

    /** An absent key. */
    @Benchmark
    public byte[] getAbsent() throws Exception {
        byte[] key = anyKey();
        key[15] ^= 0x55;
        key[8] = 7;
        return db.get(key);
    }

    /** Entries, of scans of a hundred from any key on. */
    @Benchmark
    @OperationsPerInvocation(SCANNED)
    public int iterate(Blackhole sink) throws Exception {
        return db.scan(anyKey(), SCANNED, sink);
    }

    /** Entries, of scans of a hundred thousand. */
    @Benchmark
    @OperationsPerInvocation(SCANNED_LONG)
    public int iterateLong(Blackhole sink) throws Exception {
        return db.scan(new byte[] {(byte) random.nextInt(200)}, SCANNED_LONG, sink);
    }
}
