package org.windrow;

import java.util.List;

/**
 * Combines operands with the value that they apply to; registered by {@link Options#mergeOperator}. Called from any
 * thread, and must depend on its arguments alone: the same operands are combined again by every read until a merge
 * in the background has written the result.
 *
 * <p>Null or an exception means that the operands do not fit: reads throw {@link WindrowException} of the kind
 * {@code MERGE_REFUSED}, with that exception as the cause, and nothing is lost.
 */
@FunctionalInterface
public interface MergeOperator {
    /** The key's value: operands, oldest first, applied to a base (null: the key was absent). */
    byte[] fullMerge(byte[] key, byte[] base, List<byte[]> operands);

    /** One operand with the effect of these one after the other; null: keep them all. */
    default byte[] partialMerge(byte[] key, List<byte[]> operands) {
        return null;
    }
}
