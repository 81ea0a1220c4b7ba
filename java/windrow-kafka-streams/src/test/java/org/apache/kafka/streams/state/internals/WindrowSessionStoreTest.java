package org.apache.kafka.streams.state.internals;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.windrow.kafka.WindrowStores;

/** Kafka's tests of session stores. */
public class WindrowSessionStoreTest extends AbstractSessionBytesStoreTest {
    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retentionPeriod, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(WindrowStores.sessionStore("session-store", Duration.ofMillis(retentionPeriod)),
                keySerde, valueSerde).build();
    }

    /** The kind of store for the tests: retention is in segments, and sessions are found by time. */
    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }
}
