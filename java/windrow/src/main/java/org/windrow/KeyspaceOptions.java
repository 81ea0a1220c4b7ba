package org.windrow;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Options of a new keyspace, and settings of its own in place of the database's. */
public final class KeyspaceOptions {
    private final List<String> words = new ArrayList<>();

    /** Its comparator, by the name of {@link Options#comparator}; only when it is made. */
    public KeyspaceOptions comparator(String name) {
        return add("comparator", name);
    }

    /** Its merge operator, by the name of {@link Options#mergeOperator} or a built-in one; only when it is made. */
    public KeyspaceOptions mergeOperator(String name) {
        return add("merge_operator", name);
    }

    /** The policy that keeps its tree in shape. */
    public KeyspaceOptions policy(String policy) {
        return add("policy", policy);
    }

    /** Codecs of its levels. */
    public KeyspaceOptions compression(String codecs) {
        return add("compression", codecs);
    }

    /** The time to live of puts that have none of their own. */
    public KeyspaceOptions ttl(Duration ttl) {
        return add("ttl_ms", Long.toString(ttl.toMillis()));
    }

    private KeyspaceOptions add(String name, String value) {
        words.add(name);
        words.add(value);
        return this;
    }

    String[] words() {
        return words.toArray(new String[0]);
    }
}
