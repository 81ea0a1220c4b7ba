package org.windrow;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Options of an open. Settings have the names of the page "Options"; the library knows them, and reports a wrong one at
 * the open.
 *
 * <p>Owns: their encoding for the library. Never does: know a setting.
 */
public final class Options {
    private static final int CREATE_IF_MISSING = 1;
    private static final int ERROR_IF_EXISTS = 2;
    private static final int READ_ONLY = 4;

    private int flags = CREATE_IF_MISSING;
    private final List<String> settings = new ArrayList<>();
    private final List<String> names = new ArrayList<>();
    private final List<Object> components = new ArrayList<>();
    private KeyspaceOptions defaultKeyspace = new KeyspaceOptions();

    /** A setting by its name: {@code set("memory_bytes", "64MiB")}. */
    public Options set(String name, String value) {
        settings.add(name);
        settings.add(value);
        return this;
    }

    /** The memory budget of the database. */
    public Options memoryBytes(long bytes) {
        return set("memory_bytes", Long.toString(bytes));
    }

    /** Whether the database is made if there is none (default: yes). */
    public Options createIfMissing(boolean create) {
        return flag(CREATE_IF_MISSING, create);
    }

    /** Whether a database that exists is refused (default: no). */
    public Options errorIfExists(boolean refuse) {
        return flag(ERROR_IF_EXISTS, refuse);
    }

    /** Whether nothing in the directory is written or made (default: no). */
    public Options readOnly(boolean only) {
        return flag(READ_ONLY, only);
    }

    /** Comparator and merge operator of the default keyspace of a new database, and settings of its own. */
    public Options defaultKeyspace(KeyspaceOptions options) {
        defaultKeyspace = options;
        return this;
    }

    /** Registers a comparator. */
    public Options comparator(String name, KeyComparator comparator) {
        return component("comparator", name, comparator);
    }

    /** Registers a merge operator. */
    public Options mergeOperator(String name, MergeOperator operator) {
        return component("merge", name, operator);
    }

    /** Registers a filter for merges of a keyspace. */
    public Options compactionFilter(String keyspace, CompactionFilter filter) {
        return component("filter", keyspace, filter);
    }

    /** Registers a listener, which gets the text of each event on the thread where it happens. */
    public Options listener(Consumer<String> listener) {
        return component("listener", "", listener);
    }

    private Options flag(int bit, boolean on) {
        flags = on ? flags | bit : flags & ~bit;
        return this;
    }

    private Options component(String kind, String name, Object component) {
        if (component == null) {
            throw new NullPointerException("the " + kind + " is null");
        }
        names.add(kind);
        names.add(name);
        components.add(component);
        return this;
    }

    int flags() {
        return flags;
    }

    String[] settings() {
        return settings.toArray(new String[0]);
    }

    String[] keyspace() {
        return defaultKeyspace.words();
    }

    String[] names() {
        return names.toArray(new String[0]);
    }

    Object[] components() {
        return components.toArray();
    }
}
