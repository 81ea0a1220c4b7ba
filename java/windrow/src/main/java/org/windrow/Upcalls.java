package org.windrow;

import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * The methods that the library calls, on the thread of a caller or on one of its own. It keeps an exception of them as
 * the cause of the exception that its own caller sees.
 *
 * <p>Owns: which exception an error is, and in which form answers go back. Never does: call the library.
 */
final class Upcalls {
    private static final System.Logger LOG = System.getLogger("org.windrow");

    private Upcalls() {}

    static Throwable failure(int kind, String message, Throwable cause) {
        return switch (kind) {
            case 0 -> new NullPointerException(message);
            case 2 -> new WindrowException(WindrowException.Kind.CORRUPTION, message, cause);
            case 3 -> new WindrowException(WindrowException.Kind.IO, message, cause);
            case 4 -> new WindrowException(WindrowException.Kind.NO_SPACE, message, cause);
            case 5 -> new IllegalArgumentException(message, cause);
            case 6 -> new WindrowException(WindrowException.Kind.NOT_SUPPORTED, message, cause);
            case 7 -> new ClosedException(message, cause);
            case 8 -> new WindrowException(WindrowException.Kind.READ_ONLY, message, cause);
            case 9 -> new WindrowException(WindrowException.Kind.BUSY, message, cause);
            case 10 -> new WindrowException(WindrowException.Kind.OUTCOME_UNKNOWN, message, cause);
            case 11 -> new ConflictException(message, cause);
            case 12 -> new WindrowException(WindrowException.Kind.MERGE_REFUSED, message, cause);
            default -> new WindrowException(WindrowException.Kind.INTERNAL, message, cause);
        };
    }

    static int compare(Object comparator, byte[] a, byte[] b) {
        return ((KeyComparator) comparator).compare(a, b);
    }

    static byte[] fullMerge(Object operator, byte[] key, byte[] base, byte[][] operands) {
        try {
            return ((MergeOperator) operator).fullMerge(key, base, List.of(operands));
        } catch (Throwable e) {
            throw noted("a merge operator", e);
        }
    }

    static byte[] partialMerge(Object operator, byte[] key, byte[][] operands) {
        try {
            return ((MergeOperator) operator).partialMerge(key, List.of(operands));
        } catch (Throwable e) {
            throw noted("a merge operator", e);
        }
    }

    /** Null: keep it; empty: drop it; else the new value behind one byte. */
    static byte[] filter(Object filter, int level, byte[] key, byte[] value) {
        byte[] given = value.clone();
        byte[] kept;
        try {
            kept = ((CompactionFilter) filter).filter(level, key, value);
        } catch (Throwable e) {
            note("a compaction filter", e);
            return null;
        }
        if (kept == null) {
            return new byte[0];
        }
        if (Arrays.equals(kept, given)) {
            return null;
        }
        byte[] changed = new byte[kept.length + 1];
        System.arraycopy(kept, 0, changed, 1, kept.length);
        return changed;
    }

    @SuppressWarnings("unchecked")
    static int event(Object listener, String event) {
        try {
            ((Consumer<String>) listener).accept(event);
        } catch (Throwable e) {
            note("a listener", e);
        }
        return 0;
    }

    /** Logs an exception: background work has no caller that could see it, and goes on without an answer. */
    private static void note(String what, Throwable thrown) {
        LOG.log(System.Logger.Level.WARNING, what + " threw", thrown);
    }

    private static RuntimeException noted(String what, Throwable thrown) {
        note(what, thrown);
        if (thrown instanceof Error error) {
            throw error;
        }
        // None of the interfaces declares another one.
        return (RuntimeException) thrown;
    }
}
