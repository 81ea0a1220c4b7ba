package org.windrow.kafka;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;

/**
 * The current Kafka transaction of a task, with exactly-once processing.
 *
 * <p>A running task does not tell its stores that a transaction was committed: {@code commit} is called only at the end
 * of the task. But after each commit the task clears the mark that its metadata needs one. So a store sets the mark
 * before it writes. If it finds the mark gone, a transaction has been committed since: all earlier writes belong to it,
 * or to one before. The only cost of the mark: the offsets of all input partitions are committed, not only those that
 * moved.
 *
 * <p>Owns: the number of the transaction, for all stores of a task. Never does: commit.
 */
final class TaskCommits {
    private static final Map<StateStoreContext, TaskCommits> OF_TASKS = Collections.synchronizedMap(new WeakHashMap<>());

    private long transaction;

    private TaskCommits() {}

    static TaskCommits of(StateStoreContext context) {
        return OF_TASKS.computeIfAbsent(context, any -> new TaskCommits());
    }

    /** The number of the transaction of the next write. For the task's thread. */
    long transaction(InternalProcessorContext<?, ?> context) {
        ProcessorMetadata metadata = context.processorMetadata();
        if (metadata != null && !metadata.needsCommit()) {
            metadata.setNeedsCommit(true);
            transaction++;
        }
        return transaction;
    }
}
