package org.windrow.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;

/** Contexts, keys and values of tests. */
final class Fixture {
    private Fixture() {}

    static Bytes key(String text) {
        return Bytes.wrap(bytes(text));
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static Properties exactlyOnce() {
        Properties properties = new Properties();
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        return properties;
    }

    static InternalMockProcessorContext<Object, Object> context(File dir, Properties more) {
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.putAll(more);
        properties.putIfAbsent(WindrowConfig.MEMORY, "16MiB");
        return new InternalMockProcessorContext<>(dir, Serdes.String(), Serdes.String(), new MockRecordCollector(), null,
                new StreamsConfig(properties));
    }

    static void at(InternalMockProcessorContext<?, ?> context, long offset) {
        context.setRecordContext(new ProcessorRecordContext(0, offset, 0, "input", new RecordHeaders()));
    }

    static List<ConsumerRecord<byte[], byte[]>> changelog(int from, int to, String value) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int n = from; n < to; n++) {
            records.add(new ConsumerRecord<>("changelog", 0, n, bytes("%05d".formatted(n)), bytes(value)));
        }
        return records;
    }

    static List<String> keys(KeyValueIterator<Bytes, byte[]> entries) {
        List<String> keys = new ArrayList<>();
        try (entries) {
            while (entries.hasNext()) {
                KeyValue<Bytes, byte[]> entry = entries.next();
                keys.add(text(entry.key.get()));
            }
        }
        return keys;
    }
}
