package org.windrow.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** All stores of a program on Windrow: {@code dsl.store.suppliers.class=org.windrow.kafka.WindrowDslStoreSuppliers}. */
public final class WindrowDslStoreSuppliers implements DslStoreSuppliers {
    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return switch (params.dslStoreFormat()) {
            case PLAIN -> WindrowStores.keyValueStore(params.name());
            case TIMESTAMPED -> WindrowStores.timestampedKeyValueStore(params.name());
            case HEADERS -> WindrowStores.timestampedKeyValueStoreWithHeaders(params.name());
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        DslStoreFormat format = params.dslStoreFormat();
        WindrowStores.Values values = switch (format == null ? DslStoreFormat.TIMESTAMPED : format) {
            case PLAIN -> WindrowStores.Values.PLAIN;
            case TIMESTAMPED -> WindrowStores.Values.TIMESTAMPED;
            case HEADERS -> WindrowStores.Values.WITH_HEADERS;
        };
        return WindrowStores.windows(params.name(), params.retentionPeriod(), params.windowSize(),
                params.retainDuplicates(), values, isOnClose(params.emitStrategy()));
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return WindrowStores.sessions(params.name(), params.retentionPeriod(),
                params.storeFormat() == DslStoreFormat.HEADERS, isOnClose(params.emitStrategy()));
    }

    private static boolean isOnClose(EmitStrategy strategy) {
        return strategy.type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
    }
}
