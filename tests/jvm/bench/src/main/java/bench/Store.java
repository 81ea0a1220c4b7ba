package bench;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.openjdk.jmh.infra.Blackhole;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;
import org.windrow.Db;
import org.windrow.EntryIterator;

/** The calls that are measured, on one store or the other. */
interface Store extends AutoCloseable {
    /** Memory of each: Windrow's as a whole, RocksDB's in its write buffers and its cache. */
    long MEMORY_BYTES = 256 << 20;

    void put(byte[] key, byte[] value) throws Exception;

    byte[] get(byte[] key) throws Exception;

    /** Into a direct buffer, for a key in a direct buffer. */
    int get(ByteBuffer key, ByteBuffer value) throws Exception;

    /** Entries from a key on, keys and values as arrays. */
    int scan(byte[] from, int entries, Blackhole sink) throws Exception;

    /** What is in memory goes to tables, and is merged. */
    void settle() throws Exception;

    static Store open(String name, Path path) throws Exception {
        return name.equals("windrow") ? new OnWindrow(path) : new OnRocksDb(path);
    }

    /** Windrow with its defaults. */
    final class OnWindrow implements Store {
        private final Db db;

        OnWindrow(Path path) {
            db = Db.open(path, new org.windrow.Options().memoryBytes(MEMORY_BYTES));
        }

        @Override
        public void put(byte[] key, byte[] value) {
            db.put(key, value);
        }

        @Override
        public byte[] get(byte[] key) {
            return db.get(key);
        }

        @Override
        public int get(ByteBuffer key, ByteBuffer value) {
            return db.get(key, value);
        }

        @Override
        public int scan(byte[] from, int entries, Blackhole sink) {
            int count = 0;
            try (EntryIterator found = db.scan().from(from).limit(entries).iterator()) {
                while (count < entries && found.advance()) {
                    sink.consume(found.key());
                    sink.consume(found.value());
                    count++;
                }
            }
            return count;
        }

        @Override
        public void settle() {
            db.flush();
            db.waitIdle();
        }

        @Override
        public void close() {
            db.close();
        }
    }

    /** RocksDB with as much memory, a filter, and the codec that Windrow has by default; its log is on, as Windrow's is. */
    final class OnRocksDb implements Store {
        private final Options options = new Options();
        private final LRUCache cache = new LRUCache(MEMORY_BYTES / 2);
        private final BloomFilter filter = new BloomFilter(10);
        private final WriteOptions write = new WriteOptions();
        private final ReadOptions read = new ReadOptions();
        private final RocksDB db;

        OnRocksDb(Path path) throws RocksDBException {
            BlockBasedTableConfig tables = new BlockBasedTableConfig()
                    .setBlockCache(cache).setFilterPolicy(filter).setCacheIndexAndFilterBlocks(true);
            options.setCreateIfMissing(true).setWriteBufferSize(MEMORY_BYTES / 4).setMaxWriteBufferNumber(2)
                    .setCompressionType(CompressionType.LZ4_COMPRESSION).setTableFormatConfig(tables)
                    .setIncreaseParallelism(2);
            db = RocksDB.open(options, path.toString());
        }

        @Override
        public void put(byte[] key, byte[] value) throws RocksDBException {
            db.put(write, key, value);
        }

        @Override
        public byte[] get(byte[] key) throws RocksDBException {
            return db.get(read, key);
        }

        @Override
        public int get(ByteBuffer key, ByteBuffer value) throws RocksDBException {
            return db.get(read, key, value);
        }

        @Override
        public int scan(byte[] from, int entries, Blackhole sink) {
            int count = 0;
            try (RocksIterator found = db.newIterator(read)) {
                for (found.seek(from); count < entries && found.isValid(); found.next()) {
                    sink.consume(found.key());
                    sink.consume(found.value());
                    count++;
                }
            }
            return count;
        }

        @Override
        public void settle() throws RocksDBException, InterruptedException {
            try (org.rocksdb.FlushOptions flush = new org.rocksdb.FlushOptions().setWaitForFlush(true)) {
                db.flush(flush);
            }
            while (db.getLongProperty("rocksdb.compaction-pending") > 0
                    || db.getLongProperty("rocksdb.num-running-compactions") > 0) {
                Thread.sleep(50);
            }
        }

        @Override
        public void close() {
            db.close();
            read.close();
            write.close();
            options.close();
            filter.close();
            cache.close();
        }
    }
}
