package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.windrow.kafka.WindrowStores;

/** Kafka's tests of key-value stores, with its record cache in front. */
public class WindrowCachedKeyValueStoreTest extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(WindrowStores.keyValueStore("cached-store"),
                (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde()).withCachingEnabled().build();
        store.init(context, store);
        return store;
    }
}
