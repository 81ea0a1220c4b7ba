package trial;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.windrow.kafka.WindrowDslStoreSuppliers;

/** A word count: the program that is killed, restored and measured. */
final class WordCount {
    private final Properties properties = new Properties();
    private final Restored restored = new Restored();
    private final KafkaStreams streams;

    /**
     * @param stores how many counts there are of the same words, each with a store of its own; the first one goes to the
     *     output
     */
    WordCount(Map<String, String> options, int stores) {
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("servers"));
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, options.get("app"));
        properties.put(StreamsConfig.STATE_DIR_CONFIG, options.get("dir"));
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, options.getOrDefault("guarantee", "exactly_once_v2"));
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, options.getOrDefault("threads", "1"));
        properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, options.getOrDefault("standbys", "0"));
        // Every record reaches the store, and the output.
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, options.getOrDefault("cache", "0"));
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1500);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, switch (options.get("stores-on")) {
            case "windrow" -> WindrowDslStoreSuppliers.class;
            case "rocksdb" -> BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class;
            // As fast as a store can make the program.
            case "heap" -> BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class;
            default -> throw new IllegalArgumentException("no such stores: " + options.get("stores-on"));
        });
        options.forEach((name, value) -> {
            if (name.startsWith("windrow.")) {
                properties.put(name, value);
            }
        });
        StreamsBuilder builder = new StreamsBuilder();
        var words = builder.stream(options.get("input"), Consumed.with(Serdes.String(), Serdes.ByteArray())).groupByKey();
        for (int n = 0; n < stores; n++) {
            var counts = words.count(Materialized.as("counts-" + n)).toStream();
            if (n == 0) {
                counts.to(options.get("output"), Produced.with(Serdes.String(), Serdes.Long()));
            }
        }
        streams = new KafkaStreams(builder.build(), properties);
        streams.setGlobalStateRestoreListener(restored);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
    }

    /** How much was restored, and when the first one began and the last one ended. */
    private static final class Restored implements StateRestoreListener {
        private final AtomicLong records = new AtomicLong();
        private final Map<String, Long> begun = new ConcurrentHashMap<>();
        private volatile long firstNs;
        private volatile long lastNs;

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            firstNs = firstNs == 0 ? System.nanoTime() : firstNs;
            begun.put(store + partition, from);
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long restored) {
            records.addAndGet(restored);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            lastNs = System.nanoTime();
            System.out.println("restored " + partition + " from " + begun.get(store + partition) + ": " + total);
        }
    }

    /** Runs until somebody ends the process. */
    void run() throws InterruptedException {
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(30));
            ended.countDown();
        }));
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        ended.await();
    }

    /** Runs until all is counted; records a second, of the last nine tenths. */
    double measure(long records) throws InterruptedException {
        long begin = 0;
        long done = 0;
        long from = 0;
        streams.start();
        while (done < records) {
            Thread.sleep(50);
            done = processed();
            if (begin == 0 && done >= records / 10) {
                begin = System.nanoTime();
                from = done;
            }
        }
        double rate = (done - from) * 1e9 / (System.nanoTime() - begin);
        streams.close(Duration.ofSeconds(60));
        return rate;
    }

    private long processed() {
        return (long) streams.metrics().values().stream()
                .filter(metric -> metric.metricName().name().equals("process-total")
                        && metric.metricName().group().equals("stream-thread-metrics"))
                .mapToDouble(metric -> (double) metric.metricValue())
                .sum();
    }

    /** Starts without local state, and restores; records a second. */
    double restore() throws InterruptedException {
        streams.start();
        while (streams.state() != KafkaStreams.State.RUNNING) {
            Thread.sleep(20);
        }
        double rate = restored.records.get() * 1e9 / (restored.lastNs - restored.firstNs);
        streams.close(Duration.ofSeconds(60));
        return rate;
    }

    long restoredRecords() {
        return restored.records.get();
    }

    /** Anonymous memory of the process besides the heap, the most of it while the stores are filled, in MiB. */
    long memory(long records) throws Exception {
        streams.start();
        long most = 0;
        while (processed() < records) {
            Thread.sleep(100);
            most = Math.max(most, outsideBytes());
        }
        streams.close(Duration.ofSeconds(60));
        return most >> 20;
    }

    /** The heap is in memory as a whole: the process is started with a fixed one that is touched. */
    private static long outsideBytes() throws Exception {
        long anonymousKiB = 0;
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("RssAnon:")) {
                anonymousKiB = Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return anonymousKiB * 1024 - Runtime.getRuntime().totalMemory();
    }
}
