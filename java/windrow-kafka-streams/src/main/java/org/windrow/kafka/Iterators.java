package org.windrow.kafka;

import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.slf4j.Logger;

/** Iterators over other iterators, and empty ones. */
final class Iterators {
    private Iterators() {}

    /** Kafka's own message: programs' tests, and its own, look for it in the log. */
    static void warnOfRange(Logger log) {
        log.warn("Returning empty iterator for fetch with invalid key range: from > to."
                + " This may be due to range arguments set in the wrong order,"
                + " or serdes that don't preserve ordering when lexicographically comparing the serialized bytes."
                + " Note that the built-in numerical serdes do not follow this for negative numbers");
    }

    static <K> KeyValueIterator<K, byte[]> none() {
        return new KeyValueIterator<>() {
            @Override
            public void close() {}

            @Override
            public K peekNextKey() {
                throw new NoSuchElementException("the iterator is empty");
            }

            @Override
            public boolean hasNext() {
                return false;
            }

            @Override
            public KeyValue<K, byte[]> next() {
                throw new NoSuchElementException("the iterator is empty");
            }
        };
    }

    /** The same entries with other keys. */
    private static class Mapped<K, V> implements KeyValueIterator<K, V> {
        private final KeyValueIterator<Bytes, V> entries;
        private final Function<byte[], K> key;

        Mapped(KeyValueIterator<Bytes, V> entries, Function<byte[], K> key) {
            this.entries = entries;
            this.key = key;
        }

        @Override
        public void close() {
            entries.close();
        }

        @Override
        public K peekNextKey() {
            return key.apply(entries.peekNextKey().get());
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<K, V> next() {
            KeyValue<Bytes, V> entry = entries.next();
            return KeyValue.pair(key.apply(entry.key.get()), entry.value);
        }
    }

    private static final class Windows extends Mapped<Long, byte[]> implements WindowStoreIterator<byte[]> {
        Windows(KeyValueIterator<Bytes, byte[]> entries, Function<byte[], Long> start) {
            super(entries, start);
        }
    }

    static KeyValueIterator<Windowed<Bytes>, byte[]> windowed(
            KeyValueIterator<Bytes, byte[]> entries, Function<byte[], Windowed<Bytes>> key) {
        return new Mapped<>(entries, key);
    }

    static WindowStoreIterator<byte[]> starts(KeyValueIterator<Bytes, byte[]> entries, Function<byte[], Long> start) {
        return new Windows(entries, start);
    }
}
