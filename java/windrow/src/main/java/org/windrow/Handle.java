package org.windrow;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/**
 * An object of the library that must be closed. One that is not is closed some time after it was collected; until then
 * it holds its memory and files.
 *
 * <p>Owns: the number, and its end. Never does: check whether it is closed; the library does, on every call.
 */
abstract class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    final long handle;
    private final Cleaner.Cleanable cleanable;

    Handle(long handle, LongConsumer free) {
        this.handle = handle;
        this.cleanable = whenForgotten(this, handle, free);
    }

    /** Frees a handle once: when {@code clean} is called, or after the owner was collected. */
    static Cleaner.Cleanable whenForgotten(Object owner, long handle, LongConsumer free) {
        // Not a lambda in the caller: it would keep the owner alive.
        return CLEANER.register(owner, () -> free.accept(handle));
    }

    /** Closes it. A second call does nothing; other calls throw {@link ClosedException} from then on. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
