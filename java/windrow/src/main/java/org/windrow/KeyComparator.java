package org.windrow;

/**
 * An order of a keyspace's keys other than the bytewise one; registered by {@link Options#comparator}. Called from any
 * thread. The same name must mean the same order for as long as the keyspace lives.
 *
 * <p>One that throws ends the database's writing, since keys without an order cannot be kept: {@link Db#writeError}
 * has what it threw as its cause.
 */
@FunctionalInterface
public interface KeyComparator {
    /** Less than, equal to or more than 0; 0 for equal bytes alone. */
    int compare(byte[] a, byte[] b);
}
