package org.windrow;

/** Another writer changed data that a transaction read: run it again, as {@link Db#transact} does. */
public class ConflictException extends WindrowException {
    private static final long serialVersionUID = 1L;

    ConflictException(String message, Throwable cause) {
        super(Kind.CONFLICT, message, cause);
    }
}
