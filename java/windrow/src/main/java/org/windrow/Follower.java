package org.windrow;

import java.nio.file.Path;
import java.time.Duration;

/** A read-only view of a database that another process has open, as of its last refresh. */
public final class Follower extends Handle {
    private Follower(long handle) {
        super(handle, Native::freeFollower);
    }

    /** Follows the database in a directory. */
    public static Follower open(Path path, Options options) {
        return new Follower(Native.follow(path.toString(), options.flags(), options.settings(), options.keyspace(),
                options.names(), options.components()));
    }

    /** The database as of the last refresh, for reading; the result does not change later. */
    public Db db() {
        return new Db(Native.followed(this, handle));
    }

    /** Reads the writes since the last refresh; returns whether there were any. */
    public boolean refresh() {
        return Native.refresh(this, handle);
    }

    /** Refreshes in the background at this interval; zero stops it. */
    public void refreshEvery(Duration interval) {
        Native.refreshEvery(this, handle, interval.toMillis());
    }
}
