package org.windrow;

/** The object in use is closed, or was dropped. */
public class ClosedException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    ClosedException(String message, Throwable cause) {
        super(message, cause);
    }
}
