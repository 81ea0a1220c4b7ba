package org.windrow;

import java.time.Duration;

/**
 * Options of a transaction.
 *
 * @param pessimistic whether it locks the keys that it writes, and others wait for it: best if many write the same few
 *     keys
 * @param lockTimeout the time for which one call waits for the lock of a key
 * @param sync whether its commit is on the device when it returns
 */
public record TransactionOptions(boolean pessimistic, Duration lockTimeout, boolean sync) {
    /** Without locks: the commit checks for conflicts. */
    public static final TransactionOptions OPTIMISTIC = new TransactionOptions(false, Duration.ofSeconds(1), false);

    /** With locks. */
    public static final TransactionOptions PESSIMISTIC = new TransactionOptions(true, Duration.ofSeconds(1), false);
}
