package org.windrow.kafka;

import java.util.Map;
import java.util.TreeMap;

/**
 * The settings of a program's configuration besides {@code dsl.store.suppliers.class}; each has a default.
 *
 * <p>Owns: names and defaults. Never does: open anything.
 */
public final class WindrowConfig {
    /** Memory outside of the heap, for all stores of an instance together: bytes, or text such as {@code 512MiB}. */
    public static final String MEMORY = "windrow.memory.bytes";

    /** Memory on the heap for uncommitted changes, for all stores of an instance together: bytes. */
    public static final String BUFFER = "windrow.buffer.bytes";

    /** The prefix of Windrow's settings: {@code windrow.option.background_threads}. */
    public static final String OPTION = "windrow.option.";

    private static final String MEMORY_DEFAULT = "256MiB";
    private static final long BUFFER_DEFAULT_BYTES = 32 << 20;

    private final Map<String, String> settings = new TreeMap<>();
    private final long bufferBytes;

    WindrowConfig(Map<String, Object> configs) {
        settings.put("memory_bytes", text(configs.getOrDefault(MEMORY, MEMORY_DEFAULT)));
        // The file has no reader: the metrics have the same figures.
        settings.put("stats_period_ms", "0");
        configs.forEach((name, value) -> {
            if (name.startsWith(OPTION) && value != null) {
                settings.put(name.substring(OPTION.length()), text(value));
            }
        });
        bufferBytes = Long.parseLong(text(configs.getOrDefault(BUFFER, BUFFER_DEFAULT_BYTES)));
    }

    private static String text(Object value) {
        return value.toString().trim();
    }

    Map<String, String> settings() {
        return settings;
    }

    long bufferBytes() {
        return bufferBytes;
    }
}
