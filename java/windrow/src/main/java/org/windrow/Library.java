package org.windrow;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Loads the native library, which is in the jar. The system's loader takes only files, so the library is written to
 * one, which is removed as soon as it is loaded.
 *
 * <p>Owns: where the library comes from. Never does: call it.
 */
final class Library {
    /** The property with the path of a library to load instead of the jar's. */
    private static final String PATH = "org.windrow.library.path";

    private Library() {}

    static void load() {
        String given = System.getProperty(PATH);
        if (given != null) {
            System.load(Path.of(given).toAbsolutePath().toString());
            return;
        }
        String platform = System.getProperty("os.name") + "-" + System.getProperty("os.arch");
        String name = "native/" + platform + "/libwindrow_jvm.so";
        try (InputStream library = Library.class.getResourceAsStream(name)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("the jar of Windrow has no library for " + platform
                        + ": build one from source, and name it by -D" + PATH + "=FILE");
            }
            load(library);
        } catch (IOException e) {
            throw refused(e);
        }
    }

    private static void load(InputStream library) throws IOException {
        Path file = Files.createTempFile("windrow-", ".so");
        try {
            Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw refused(e);
        } finally {
            // A loaded library stays, with or without its file.
            Files.deleteIfExists(file);
        }
    }

    private static UnsatisfiedLinkError refused(Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError("the native library could not be loaded from "
                + System.getProperty("java.io.tmpdir") + " (" + cause.getMessage() + "): name a directory of a file"
                + " system that is not mounted noexec by -Djava.io.tmpdir, or a library by -D" + PATH);
        error.initCause(cause);
        return error;
    }
}
