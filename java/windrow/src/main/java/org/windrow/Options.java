package org.windrow;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * How a database is opened. Settings go by their names, those of the page "Options"; the library knows them, and says
 * what is wrong with one when it opens.
 *
 * <p>Owns: the form in which the library gets them. Never does: know a setting.
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

    /** Memory of the database in all. */
    public Options memoryBytes(long bytes) {
        return set("memory_bytes", Long.toString(bytes));
    }

    /** Whether the database is made where there is none (default: yes). */
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

    /** Order and merge operator of the default keyspace, when the database is made, and settings of its own. */
    public Options defaultKeyspace(KeyspaceOptions options) {
        defaultKeyspace = options;
        return this;
    }

    /** Registers an order of keys. */
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

    /** Registers what is told of each event, in words, on the thread where it happens. */
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
