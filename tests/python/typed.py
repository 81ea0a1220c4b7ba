"""The package as a type checker sees it."""

import windrow

with windrow.open("data", memory_bytes="8MiB", preset="leveled") as db:
    value: bytes | None = db.get(b"a")
    certain: bytes = db.get(b"a", b"")
    users: windrow.Keyspace = db.keyspace("users", ttl=3.0)
    pairs: list[tuple[bytes, bytes]] = list(users.items(prefix=b"a", reverse=True))
    keys: list[bytes] = [key for key in db]
    with db.batch(sync=True) as batch:
        batch.put(users, bytearray(b"a"), memoryview(b"1"))
    with db.transaction() as tx:
        tx.put(users, b"a", tx.get(users, b"a", b""))
    count: int = db.transact(lambda tx: len(tx.items(db)))
    snapshot: windrow.Snapshot = db.snapshot()
    cursor: windrow.Cursor = db.cursor(snapshot=snapshot)
    key: bytes | None = cursor.key if cursor.first() else None
    with users.ingest() as ingest:
        ingest.put(b"a", b"1")
    follower: windrow.Follower = windrow.follow(db.path)
    seen: bytes | None = follower.db.get(b"a")
    view: dict[bytes, bytes] = dict(windrow.Mapping(db))
