package org.windrow;

/**
 * Looks at the values that merges in the background write; registered by {@link Options#compactionFilter}. Called from
 * any thread. One that throws keeps the entry.
 */
@FunctionalInterface
public interface CompactionFilter {
    /** The value as it is to keep the entry, another one to change it, null to drop it. */
    byte[] filter(int level, byte[] key, byte[] value);
}
