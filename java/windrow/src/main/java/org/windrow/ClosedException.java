package org.windrow;

/** What was used is closed, or was dropped. */
public class ClosedException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    ClosedException(String message, Throwable cause) {
        super(message, cause);
    }
}
