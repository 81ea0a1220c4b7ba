package org.windrow.kafka;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;

/**
 * The common part of all stores: their table, and the times at which its changes are committed.
 *
 * <p>With at-least-once processing changes are committed when Kafka calls for it, or when they become too many. With
 * exactly-once processing Kafka makes no such call while a task runs. So the first write after a transaction's commit
 * ({@link TaskCommits}) commits the changes of that transaction, with the changelog's offset as of its end: the
 * producer was flushed for the commit, and nothing was sent to this changelog since.
 *
 * <p>Owns: the position, the steps of a commit and of restoring. Never does: know the form of a key.
 */
abstract class AbstractStore implements StateStore {
    /** The offset of a store with sound content and no offset: Kafka restores from the beginning, over it. */
    private static final long OFFSET_UNKNOWN = OffsetCheckpoint.OFFSET_UNKNOWN;

    /**
     * The time for which restored records may wait on the heap, for any interval of commits: with exactly-once
     * processing that interval is a tenth of a second, and would cut them into small tables. Their own offset is
     * written with them.
     */
    private static final long RESTORED_NS_MAX = 10_000_000_000L;

    final String name;
    private final String metricsScope;

    StateStoreContext context;
    /** The same object; null if the context is not Kafka's own. */
    InternalProcessorContext<?, ?> internalContext;

    Table table;
    Position position = Position.emptyPosition();
    private volatile boolean open;
    private boolean exactlyOnce;
    private boolean consistencyEnabled;
    private TaskCommits commits;
    /** The transaction that the changes belong to. */
    private long transaction;
    /** Whether the changes come from the changelog, and are committed. */
    private boolean isRestoring;
    private long restoredNs;
    private final Map<TopicPartition, Long> restored = new HashMap<>();

    AbstractStore(String name, String metricsScope) {
        this.name = Objects.requireNonNull(name, "the store's name is null");
        this.metricsScope = metricsScope;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext stateStoreContext, StateStore root) {
        context = stateStoreContext;
        internalContext = context instanceof InternalProcessorContext<?, ?> internal ? internal : null;
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        exactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee);
        consistencyEnabled = StreamsConfig.InternalConfig.getBoolean(
                context.appConfigs(), StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
        commits = exactlyOnce ? TaskCommits.of(context) : null;
        open();
        context.register(root, (RecordBatchingStateRestoreCallback) this::restore, () -> { });
    }

    private void open() {
        table = Table.open(context, name, exactlyOnce);
        position = table.position();
        StoreQueryUtils.maybeMigrateExistingPositionFile(context.stateDir(), name, position);
        isRestoring = false;
        restored.clear();
        opened();
        if (internalContext != null) {
            StoreMetrics.register(ProcessorContextUtils.metricsImpl(context), context.taskId().toString(), metricsScope,
                    name, table);
        }
        open = true;
    }

    /** Called when the table is open, to read the part of it that a store keeps on the heap. */
    void opened() {}

    // ---- changes

    /** Must be called before a change by a processor. */
    void beforeChange() {
        validateOpen();
        if (isRestoring) {
            commitRestored();
        }
        if (exactlyOnce && internalContext != null) {
            long now = commits.transaction(internalContext);
            if (now != transaction) {
                if (table.hasChanges()) {
                    table.commit(sentOffset(), position);
                }
                transaction = now;
            }
        }
        if (table.isFull()) {
            if (exactlyOnce) {
                table.spill();
            } else {
                table.writeOut();
            }
        }
    }

    /** Must be called after a change by a processor. */
    void afterChange() {
        StoreQueryUtils.updatePosition(position, context);
    }

    /** The changelog's offset as of the last commit, for the first write after it. */
    private Map<TopicPartition, Long> sentOffset() {
        String changelog = ProcessorContextUtils.changelogFor(context, name, Boolean.TRUE);
        if (changelog == null || !(context instanceof RecordCollector.Supplier supplier)) {
            return Map.of();
        }
        RecordCollector collector = supplier.recordCollector();
        Map<TopicPartition, Long> sent = collector == null ? null : collector.offsets();
        TopicPartition partition = new TopicPartition(changelog, context.taskId().partition());
        Long offset = sent == null ? null : sent.get(partition);
        return offset == null ? Map.of() : Map.of(partition, offset);
    }

    @Override
    public void commit(Map<TopicPartition, Long> changelogOffsets) {
        if (!open) {
            return;
        }
        synchronized (position) {
            if (isRestoring) {
                if (!changelogOffsets.isEmpty() && System.nanoTime() - restoredNs < RESTORED_NS_MAX) {
                    return;
                }
                commitRestored();
            }
            if (changelogOffsets.isEmpty()) {
                table.commitWithoutOffsets(position);
            } else {
                table.commit(changelogOffsets, position);
            }
        }
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        Long offset = table.offset(partition);
        return offset == null && table.isSound() ? Long.valueOf(OFFSET_UNKNOWN) : offset;
    }

    @Override
    @Deprecated
    public boolean managesOffsets() {
        return true;
    }

    /** The time for metrics. */
    long nowMs() {
        return internalContext == null ? System.currentTimeMillis() : internalContext.currentSystemTimeMs();
    }

    // ---- restoring

    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (!open) {
            open();
        }
        synchronized (position) {
            if (!isRestoring && table.hasChanges()) {
                // A task has committed before it becomes a standby.
                table.commit(Map.of(), position);
            }
            if (!isRestoring) {
                isRestoring = true;
                restoredNs = System.nanoTime();
            }
            beforeRestoring(records);
            for (ConsumerRecord<byte[], byte[]> record : records) {
                if (restore(record)) {
                    ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(
                            record, consistencyEnabled, position);
                }
                restored.put(new TopicPartition(record.topic(), record.partition()), record.offset());
            }
            if (table.isFull()) {
                commitRestored();
            }
        }
    }

    /** Called with a whole batch before its records are applied. */
    void beforeRestoring(Collection<ConsumerRecord<byte[], byte[]>> records) {}

    /** Applies one record of the changelog; returns whether it had an effect. */
    abstract boolean restore(ConsumerRecord<byte[], byte[]> record);

    private void commitRestored() {
        table.restore(restored, position);
        restored.clear();
        isRestoring = false;
    }

    // ---- the rest

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, positionBound, config, this, position, context);
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return open;
    }

    void validateOpen() {
        if (!open) {
            throw new InvalidStateStoreException("Store " + name + " is currently closed");
        }
    }

    @Override
    public void close() {
        if (!open) {
            return;
        }
        open = false;
        if (isRestoring) {
            // Else these records of the changelog would have to be fetched again.
            commitRestored();
        }
        table.close();
    }
}
