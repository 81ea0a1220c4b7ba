package org.windrow.kafka;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;

/**
 * Which transaction of Kafka's a task is in, with exactly-once processing.
 *
 * <p>A task that runs tells its stores nothing when a transaction was committed: {@code commit} is called at the end of
 * the task alone. But after each commit the task takes back the mark that its metadata needs one. So a store that is about
 * to write sets the mark, and where the mark is gone, a transaction has been committed since: everything that was
 * written before belongs to it, or to one before. The mark costs nothing else: offsets of all input partitions are
 * committed instead of those that moved.
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

    /** The number of the transaction that a write belongs to which comes now. For the task's thread. */
    long transaction(InternalProcessorContext<?, ?> context) {
        ProcessorMetadata metadata = context.processorMetadata();
        if (metadata != null && !metadata.needsCommit()) {
            metadata.setNeedsCommit(true);
            transaction++;
        }
        return transaction;
    }
}
