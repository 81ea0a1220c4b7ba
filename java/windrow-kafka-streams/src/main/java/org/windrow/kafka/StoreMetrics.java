package org.windrow.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.windrow.Stats;

/**
 * Metrics of a store, in Kafka's group {@code stream-state-metrics} and under the names that it has for RocksDB. The
 * caches, the memory and the background work are those of all stores of the instance: each store has the same figures.
 *
 * <p>Kafka removes them with the store's other metrics.
 *
 * <p>Owns: the names of Windrow's figures. Never does: measure.
 */
final class StoreMetrics {
    private final StreamsMetricsImpl metrics;
    private final String taskId;
    private final String scope;
    private final String store;
    private final Table table;
    private final Instance instance;

    private StoreMetrics(StreamsMetricsImpl metrics, String taskId, String scope, String store, Table table) {
        this.metrics = metrics;
        this.taskId = taskId;
        this.scope = scope;
        this.store = store;
        this.table = table;
        this.instance = table.instance();
    }

    static void register(StreamsMetricsImpl metrics, String taskId, String scope, String store, Table table) {
        StoreMetrics of = new StoreMetrics(metrics, taskId, scope, store, table);
        of.ofTheStore();
        of.ofMemory();
        of.ofWork();
    }

    private void ofTheStore() {
        total("bytes-written", "bytes written to the store", table.bytesWritten::sum);
        total("bytes-read", "bytes read from the store", table.bytesRead::sum);
        gauge("estimate-num-keys", "Estimated number of keys of the store", table::approximateCount);
        String keyspace = "keyspaces." + table.keyspaceName() + ".";
        gauge("live-sst-files-size", "Bytes of the store's tables", () -> tables(stats(), keyspace));
        gauge("total-sst-files-size", "Bytes of the store's tables", () -> tables(stats(), keyspace));
        gauge("estimate-pending-compaction-bytes", "Bytes by which the store's levels are over their capacities",
                () -> overCapacity(stats(), keyspace));
        gauge("cur-size-all-mem-tables", "Bytes of the store's memtables", () -> count(keyspace + "memtables_bytes"));
        gauge("size-all-mem-tables", "Bytes of the store's memtables", () -> count(keyspace + "memtables_bytes"));
    }

    /** The bytes of a keyspace's tables: the statistics have a row for each level. */
    private static long tables(Stats stats, String keyspace) {
        return stats.values().subMap(keyspace + "levels.", keyspace + "levels/").entrySet().stream()
                .filter(row -> row.getKey().endsWith(".bytes"))
                .mapToLong(row -> row.getValue().longValue())
                .sum();
    }

    private static long overCapacity(Stats stats, String keyspace) {
        long over = 0;
        for (int level = 0; stats.values().containsKey(keyspace + "capacities." + level + ".bytes"); level++) {
            long capacity = stats.count(keyspace + "capacities." + level + ".bytes");
            if (capacity > 0) {
                over += Math.max(0, stats.count(keyspace + "levels." + level + ".bytes") - capacity);
            }
        }
        return over;
    }

    private void ofMemory() {
        gauge("block-cache-capacity", "Memory budget of the instance in bytes", () -> count("memory.budget_bytes"));
        gauge("block-cache-usage", "Bytes of blocks that the instance has cached", () -> count("memory.cache_bytes"));
        gauge("block-cache-pinned-usage", "Bytes that readers of the instance hold",
                () -> count("memory.readers_bytes"));
        gauge("estimate-table-readers-mem", "Bytes of filters and indexes of the instance's open tables",
                () -> count("memory.tables_bytes"));
        gauge("block-cache-data-hit-ratio", "Ratio of the instance's block look-ups that its cache answered",
                () -> ratio("cache_hits", "cache_misses"));
        gauge("block-cache-filter-hit-ratio", "Ratio of the instance's filter look-ups that read nothing",
                () -> without("partitions_read", "filter_checks"));
        gauge("block-cache-index-hit-ratio", "Ratio of the instance's look-ups that read no partition of an index",
                () -> without("partitions_read", "gets"));
        gauge("memtable-hit-ratio", "Ratio of the instance's look-ups that a memtable answered", () -> {
            long hits = count("get_hits_memtable") + count("get_hits_frozen");
            return count("gets") == 0 ? 0.0 : (double) hits / count("gets");
        });
        gauge("number-open-files", "Tables that the instance holds open, and has in its tree", () ->
                sum("levels.", ".run_files") + sum("levels.", ".log_files"));
    }

    private void ofWork() {
        total("memtable-bytes-flushed", "bytes that the instance flushed", () -> count("work.flush.written_bytes"));
        total("bytes-read-compaction", "bytes that the instance's merges read", () -> count("work.merge.read_bytes"));
        total("bytes-written-compaction", "bytes that the instance's merges wrote",
                () -> count("work.merge.written_bytes"));
        times("memtable-flush-time", "a flush of the instance", "work.flush.");
        times("compaction-time", "a merge of the instance", "work.merge.");
        gauge("num-running-flushes", "Flushes of the instance that run", () -> count("work.flush.running"));
        gauge("num-running-compactions", "Merges of the instance that run", () -> count("work.merge.running"));
        gauge("write-stall-duration-total", "Milliseconds that writers of the instance waited for flushes and merges",
                this::stallMillis);
        gauge("write-stall-duration-avg", "Milliseconds of one such wait", () -> {
            long count = stalls(".count");
            return count == 0 ? 0.0 : (double) stallMillis() / count;
        });
        gauge("background-errors", "Errors for which the instance's writing was turned off, and damage that it met",
                () -> count("work.errors"));
        gauge("number-file-errors-total", "The same", () -> count("work.errors"));
    }

    private void times(String name, String what, String work) {
        gauge(name + "-avg", "Average time of " + what + " in ms", () -> {
            long count = count(work + "count");
            return count == 0 ? 0.0 : count(work + "total_us") / 1e3 / count;
        });
        gauge(name + "-min", "Shortest time of " + what + " in ms", () -> count(work + "min_us") / 1e3);
        gauge(name + "-max", "Longest time of " + what + " in ms", () -> count(work + "max_us") / 1e3);
    }

    private long stallMillis() {
        return stalls(".total_us") / 1000;
    }

    private long stalls(String figure) {
        return count("pauses.memtables_full" + figure) + count("pauses.level0_deep" + figure)
                + count("pauses.debt" + figure);
    }

    private Stats stats() {
        return instance.stats();
    }

    private long count(String name) {
        return stats().count(name);
    }

    private long sum(String prefix, String end) {
        return stats().values().entrySet().stream()
                .filter(row -> row.getKey().startsWith(prefix) && row.getKey().endsWith(end))
                .mapToLong(row -> row.getValue().longValue())
                .sum();
    }

    private double ratio(String hits, String misses) {
        long all = count(hits) + count(misses);
        return all == 0 ? 0.0 : (double) count(hits) / all;
    }

    private double without(String reads, String all) {
        return count(all) == 0 ? 0.0 : Math.max(0.0, 1.0 - (double) count(reads) / count(all));
    }

    private <T> void gauge(String name, String description, Supplier<T> value) {
        // Some of Kafka's own reporters read metrics of a store that was closed meanwhile.
        Gauge<Object> gauge = (config, now) -> {
            try {
                return value.get();
            } catch (RuntimeException e) {
                return 0L;
            }
        };
        metrics.addStoreLevelMutableMetric(taskId, scope, store, name, description, RecordingLevel.INFO, gauge);
    }

    private void total(String name, String what, Supplier<Long> value) {
        gauge(name + "-total", "Total number of " + what, value);
        Rate rate = new Rate(value);
        gauge(name + "-rate", "Average number per second of " + what, rate::get);
    }

    /** The growth of a total in a second, between two reads of the metric. */
    private static final class Rate {
        private static final long PERIOD_NS = 1_000_000_000L;

        private final Supplier<Long> total;
        private long before;
        private long beforeNs = System.nanoTime();
        private double rate;

        Rate(Supplier<Long> total) {
            this.total = total;
        }

        synchronized double get() {
            long now = System.nanoTime();
            if (now - beforeNs >= PERIOD_NS) {
                long value = total.get();
                rate = (value - before) * 1e9 / (now - beforeNs);
                before = value;
                beforeNs = now;
            }
            return rate;
        }
    }
}
