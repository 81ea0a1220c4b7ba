package org.windrow;

/**
 * Sees the values that background merges write; registered by {@link Options#compactionFilter}. Called from any
 * thread. If it throws, the entry is kept.
 */
@FunctionalInterface
public interface CompactionFilter {
    /** Returns the same value to keep the entry, another one to change it, null to drop it. */
    byte[] filter(int level, byte[] key, byte[] value);
}
