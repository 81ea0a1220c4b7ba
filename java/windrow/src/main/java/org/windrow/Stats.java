package org.windrow;

import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;

/** Counters of a database since it was opened, and its sizes, by names such as {@code levels.0.bytes}. */
public final class Stats {
    private final SortedMap<String, Number> values = new TreeMap<>();

    Stats(String[] rows) {
        for (int i = 0; i < rows.length; i += 2) {
            String number = rows[i + 1];
            boolean isWhole = number.chars().allMatch(c -> c == '-' || Character.isDigit(c));
            values.put(rows[i], isWhole ? (Number) Long.parseLong(number) : (Number) Double.parseDouble(number));
        }
    }

    /** All of them. */
    public SortedMap<String, Number> values() {
        return Collections.unmodifiableSortedMap(values);
    }

    /** One of them; 0 if there is none of that name, as for a level that does not exist yet. */
    public long count(String name) {
        Number value = values.get(name);
        return value == null ? 0 : value.longValue();
    }

    @Override
    public String toString() {
        return values.toString();
    }
}
