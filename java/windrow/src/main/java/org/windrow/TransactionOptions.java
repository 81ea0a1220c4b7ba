package org.windrow;

import java.time.Duration;

/**
 * How a transaction is run.
 *
 * @param pessimistic whether keys that it writes are locked, and others wait for it: best where many write the same few
 *     keys
 * @param lockTimeout how long one call waits for the lock of a key
 * @param sync whether its commit is on the device when it returns
 */
public record TransactionOptions(boolean pessimistic, Duration lockTimeout, boolean sync) {
    /** Without locks: the commit finds out whether it conflicts. */
    public static final TransactionOptions OPTIMISTIC = new TransactionOptions(false, Duration.ofSeconds(1), false);

    /** With locks. */
    public static final TransactionOptions PESSIMISTIC = new TransactionOptions(true, Duration.ofSeconds(1), false);
}
