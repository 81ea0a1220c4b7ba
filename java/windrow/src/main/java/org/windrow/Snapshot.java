package org.windrow;

/**
 * One moment of all keyspaces, for {@link Keyspace#get(Snapshot, byte[])} and {@link Scan#at}. Merges keep the
 * entries that it sees until it is closed. It stays readable when its database is closed.
 */
public final class Snapshot extends Handle {
    Snapshot(long handle) {
        super(handle, Native::freeSnapshot);
    }
}
