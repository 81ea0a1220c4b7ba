package org.windrow;

/** What the library could not do. The message says what happened, where, and what to do about it. */
public class WindrowException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Kinds of errors, by what can be done about them. */
    public enum Kind {
        /** Windrow contradicts itself, or code of yours that it called failed (the cause is what that threw). */
        INTERNAL,
        /** Bytes on disk are not what was written: {@link Db#verify}, then {@link Db#repair} or a backup. */
        CORRUPTION,
        /** The operating system refused something. */
        IO,
        /** The device is full: make room and try again; {@link Db#resume} where writing is off. */
        NO_SPACE,
        /** The data needs something that this build does not have. */
        NOT_SUPPORTED,
        /** Writing is off: {@link Db#resume}, or opening it again, turns it on. */
        READ_ONLY,
        /** Somebody else holds it: try later. */
        BUSY,
        /** Whether the write is there is not known until writing is on again. */
        OUTCOME_UNKNOWN,
        /** Somebody has written what the transaction read: run it again. */
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
