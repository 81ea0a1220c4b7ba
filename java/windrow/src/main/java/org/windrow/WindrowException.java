package org.windrow;

/** A failure of the library. The message says what happened, where, and what to do about it. */
public class WindrowException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Kinds of errors, by their remedy. */
    public enum Kind {
        /** Windrow contradicts itself, or your code that it called failed (the cause is the exception of that). */
        INTERNAL,
        /** Bytes on disk are not what was written: {@link Db#verify}, then {@link Db#repair} or a backup. */
        CORRUPTION,
        /** The operating system refused something. */
        IO,
        /** The device is full: make room and try again; {@link Db#resume} if writing is off. */
        NO_SPACE,
        /** The data needs something that this build does not have. */
        NOT_SUPPORTED,
        /** Writing is off: {@link Db#resume}, or opening it again, turns it on. */
        READ_ONLY,
        /** Another process or call holds it: try later. */
        BUSY,
        /** Whether the write took effect is not known until writing is on again. */
        OUTCOME_UNKNOWN,
        /** Another writer changed data that the transaction read: run it again. */
        CONFLICT,
        /** The merge operator does not take the value: put or delete the key. */
        MERGE_REFUSED
    }

    private final Kind kind;

    WindrowException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /** The kind. */
    public Kind kind() {
        return kind;
    }
}
