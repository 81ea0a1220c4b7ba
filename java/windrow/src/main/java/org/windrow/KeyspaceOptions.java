package org.windrow;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** How a keyspace is made, and what it has of its own where a database has one setting for all. */
public final class KeyspaceOptions {
    private final List<String> words = new ArrayList<>();

    /** Its order, by the name of {@link Options#comparator}; when it is made. */
    public KeyspaceOptions comparator(String name) {
        return add("comparator", name);
    }

    /** Its merge operator, by the name of {@link Options#mergeOperator} or a built-in one; when it is made. */
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

    /** How long what is put is there for, where the put does not say. */
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
