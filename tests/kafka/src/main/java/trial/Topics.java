package trial;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Topics of the trial: made, filled with words, and checked. */
final class Topics {
    private final String servers;

    Topics(String servers) {
        this.servers = servers;
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        return properties;
    }

    void make(int partitions, String... names) throws Exception {
        try (Admin admin = Admin.create(properties())) {
            List<NewTopic> topics = new ArrayList<>();
            for (String name : names) {
                topics.add(new NewTopic(name, partitions, (short) 1));
            }
            admin.createTopics(topics).all().get();
        }
    }

    /** The word of a record: one of {@code words} different ones, in an order without a pattern. */
    static String word(long n, long words) {
        long mixed = n * 0x9E3779B97F4A7C15L;
        mixed ^= mixed >>> 29;
        return "word-%08d".formatted(Long.remainderUnsigned(mixed * 0xBF58476D1CE4E5B9L, words));
    }

    /** Sends words, {@code perSecond} at most. */
    void fill(String topic, long records, long words, int valueBytes, long perSecond) {
        Properties properties = properties();
        properties.put(ProducerConfig.LINGER_MS_CONFIG, 20);
        properties.put(ProducerConfig.BATCH_SIZE_CONFIG, 1 << 17);
        properties.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4");
        byte[] value = new byte[valueBytes];
        new java.util.Random(1).nextBytes(value);
        try (KafkaProducer<String, byte[]> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new ByteArraySerializer())) {
            long begin = System.nanoTime();
            for (long n = 0; n < records; n++) {
                producer.send(new ProducerRecord<>(topic, word(n, words), value));
                if (n % 1000 == 0) {
                    pace(begin, n, perSecond);
                }
            }
        }
    }

    private static void pace(long beginNs, long sent, long perSecond) {
        long dueMs = sent * 1000 / perSecond - (System.nanoTime() - beginNs) / 1_000_000;
        if (dueMs > 0) {
            try {
                Thread.sleep(dueMs);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** What a topic of counts comes to. */
    record Sums(long records, long words, long sum, long wrong) {}

    /**
     * Reads committed records of counts until nothing comes any more. Each word's counts go up by one, from one on: that
     * is so if every record was counted exactly once, and {@code wrong} counts where it is not.
     */
    Sums read(String topic, long expected, long patienceMs) {
        Properties properties = properties();
        properties.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        properties.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
        Map<String, Long> counts = new HashMap<>();
        long records = 0;
        long wrong = 0;
        try (KafkaConsumer<String, Long> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (PartitionInfo info : consumer.partitionsFor(topic)) {
                partitions.add(new TopicPartition(topic, info.partition()));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long last = System.currentTimeMillis();
            while (System.currentTimeMillis() - last < patienceMs && records < expected) {
                ConsumerRecords<String, Long> polled = consumer.poll(java.time.Duration.ofMillis(200));
                for (ConsumerRecord<String, Long> record : polled) {
                    long before = counts.getOrDefault(record.key(), 0L);
                    wrong += record.value() == before + 1 ? 0 : 1;
                    counts.put(record.key(), Math.max(before, record.value()));
                    records++;
                }
                last = polled.isEmpty() ? last : System.currentTimeMillis();
            }
            // One more than there should be would come now.
            records += consumer.poll(java.time.Duration.ofMillis(2000)).count();
        }
        return new Sums(records, counts.size(), counts.values().stream().mapToLong(n -> n).sum(), wrong);
    }
}
