package org.apache.kafka.streams.state.internals;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.windrow.kafka.WindrowStores;

/** Kafka's tests of window stores. */
public class WindrowWindowStoreTest extends AbstractWindowBytesStoreTest {
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retentionPeriod, long windowSize, boolean retainDuplicates, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(WindrowStores.windowStore("window-store", Duration.ofMillis(retentionPeriod),
                Duration.ofMillis(windowSize), retainDuplicates), keySerde, valueSerde).build();
    }
}
