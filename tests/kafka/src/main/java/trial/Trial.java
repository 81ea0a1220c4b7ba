package trial;

import java.util.HashMap;
import java.util.Map;

/** The steps of the trial, one for each call: {@code make}, {@code fill}, {@code run}, {@code check}, and measurements. */
public final class Trial {
    private Trial() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < args.length; i++) {
            int at = args[i].indexOf('=');
            options.put(args[i].substring(0, at), args[i].substring(at + 1));
        }
        Topics topics = new Topics(options.get("servers"));
        long records = Long.parseLong(options.getOrDefault("records", "0"));
        int stores = Integer.parseInt(options.getOrDefault("stores", "1"));
        switch (args[0]) {
            case "make" -> topics.make(Integer.parseInt(options.getOrDefault("partitions", "4")),
                    options.get("topics").split(","));
            case "fill" -> topics.fill(options.get("topic"), records, Long.parseLong(options.get("words")),
                    Integer.parseInt(options.getOrDefault("value", "1")),
                    Long.parseLong(options.getOrDefault("rate", "10000000")));
            case "run" -> new WordCount(options, stores).run();
            case "check" -> check(topics, options, records);
            case "measure" -> System.out.printf("%.0f%n", new WordCount(options, stores).measure(records));
            case "restore" -> {
                WordCount program = new WordCount(options, stores);
                double rate = program.restore();
                System.out.printf("%.0f records/s, %d records%n", rate, program.restoredRecords());
            }
            case "memory" -> System.out.println(new WordCount(options, stores).memory(records));
            default -> throw new IllegalArgumentException("no such step: " + args[0]);
        }
    }

    private static void check(Topics topics, Map<String, String> options, long records) {
        long patience = Long.parseLong(options.getOrDefault("patience", "60")) * 1000;
        Topics.Sums sums = topics.read(options.get("topic"), records, patience);
        boolean exact = sums.records() == records && sums.sum() == records && sums.wrong() == 0;
        System.out.printf("%d records, %d words, sum %d, %d out of turn: %s%n", sums.records(), sums.words(), sums.sum(),
                sums.wrong(), exact ? "exact" : "NOT EXACT, " + records + " were sent");
        if (!exact) {
            System.exit(1);
        }
    }
}
