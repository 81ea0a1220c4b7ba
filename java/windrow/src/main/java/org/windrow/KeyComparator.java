package org.windrow;

/**
 * An order of a keyspace's keys other than the bytewise one; registered by {@link Options#comparator}. Called from any
 * thread. The same name must mean the same order for as long as the keyspace lives.
 *
 * <p>An exception of it ends the database's writing, since keys without an order cannot be kept: it is the cause of
 * {@link Db#writeError}.
 */
@FunctionalInterface
public interface KeyComparator {
    /** Less than, equal to or more than 0; 0 only for equal bytes. */
    int compare(byte[] a, byte[] b);
}
