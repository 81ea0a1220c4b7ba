"""Everything, again and again, for so many seconds: resident memory and descriptors must not grow."""

import gc
import os
import shutil
import sys
import tempfile
import threading
import time

import windrow


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def longest(key, base, operands):
    return max(operands + ([base] if base is not None else []), key=len)


def once(path, n):
    options = dict(memory_bytes="16MiB", merge_operators={"longest": longest})
    with windrow.open(path, **options) as db:
        users = db.keyspace("users", merge_operator="longest")
        for at in range(2000):
            key = b"%d" % (at * 7919 % 5000)
            db.put(key, b"x" * 200)
            users.merge(key, b"y" * (at % 50))
        with db.batch() as batch:
            for at in range(500):
                batch.put(users, b"b%d" % at, b"z")
        db.transact(lambda tx: tx.put(db, b"n", b"%d" % n))
        snapshot = db.snapshot()
        [*db.items(snapshot=snapshot, reverse=True)], [*users.keys(prefix=b"b")]
        cursor = db.cursor()
        cursor.last()
        try:
            db.put("text", b"")
        except TypeError:
            pass
        follower = windrow.follow(path, merge_operators={"longest": longest})
        follower.refresh()
        threads = [threading.Thread(target=lambda: [db.get(b"%d" % at) for at in range(300)]) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        db.stats()


def main(seconds):
    directory = tempfile.mkdtemp()
    begin, rounds, early = time.monotonic(), 0, None
    try:
        while time.monotonic() - begin < seconds:
            once(os.path.join(directory, "db"), rounds)
            rounds += 1
            gc.collect()
            if early is None and time.monotonic() - begin > seconds / 4:
                early = resident(), len(os.listdir("/proc/self/fd"))
        late = resident(), len(os.listdir("/proc/self/fd"))
    finally:
        shutil.rmtree(directory)
    print(f"{rounds} rounds in {seconds} s: {early[0] >> 20} MiB and {early[1]} descriptors after a quarter, "
          f"{late[0] >> 20} MiB and {late[1]} at the end")
    assert late[1] <= early[1] and late[0] < early[0] * 1.1 + (4 << 20), "it grows"


main(float(sys.argv[1]))
