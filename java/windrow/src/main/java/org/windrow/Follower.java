package org.windrow;

import java.nio.file.Path;
import java.time.Duration;

/** A database that another process has open, at a moment of its own. */
public final class Follower extends Handle {
    private Follower(long handle) {
        super(handle, Native::freeFollower);
    }

    /** Follows the database in a directory. */
    public static Follower open(Path path, Options options) {
        return new Follower(Native.follow(path.toString(), options.flags(), options.settings(), options.keyspace(),
                options.names(), options.components()));
    }

    /** The database as of the last refresh, for reading; it stays as it is. */
    public Db db() {
        return new Db(Native.followed(this, handle));
    }

    /** Reads what was written since. Whether something was. */
    public boolean refresh() {
        return Native.refresh(this, handle);
    }

    /** Refreshes in the background every so often; zero: not any more. */
    public void refreshEvery(Duration interval) {
        Native.refreshEvery(this, handle, interval.toMillis());
    }
}
