package org.windrow;

import java.util.List;

/** The result of {@link Db#repair}: counts, and the problems that it found. */
public record RepairReport(
        boolean lostSomething,
        long tablesKept,
        long tablesSalvaged,
        long tablesLost,
        long entriesSalvaged,
        long batchesReplayed,
        List<String> problems) {
    static RepairReport of(String[] told) {
        return new RepairReport(!told[0].equals("0"), Long.parseLong(told[1]), Long.parseLong(told[2]),
                Long.parseLong(told[3]), Long.parseLong(told[4]), Long.parseLong(told[5]),
                List.of(told).subList(6, told.length));
    }
}
