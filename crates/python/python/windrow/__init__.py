"""Windrow: an embedded, ordered key-value store.

    with windrow.open("data") as db:
        db[b"apple"] = b"red"
        for key, value in db.items(prefix=b"a"):
            print(key, value)

Keys and values are bytes-like. `windrow.plyvel` has the interface of plyvel.
"""

from ._mapping import Mapping
from ._transact import transact
from ._windrow import (
    Batch,
    Cursor,
    Db,
    Entries,
    Follower,
    Ingest,
    Keyspace,
    Snapshot,
    Transaction,
    __version__,
    destroy,
    follow,
    open,
    repair,
)
from .errors import (
    BusyError,
    ClosedError,
    ConflictError,
    CorruptionError,
    Error,
    InternalError,
    InvalidArgumentError,
    IoError,
    MergeRefusedError,
    NoSpaceError,
    NotSupportedError,
    OutcomeUnknownError,
    ReadOnlyError,
)

__all__ = [
    "Batch",
    "BusyError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Cursor",
    "Db",
    "Entries",
    "Error",
    "Follower",
    "Ingest",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Keyspace",
    "Mapping",
    "MergeRefusedError",
    "NoSpaceError",
    "NotSupportedError",
    "OutcomeUnknownError",
    "ReadOnlyError",
    "Snapshot",
    "Transaction",
    "__version__",
    "destroy",
    "follow",
    "open",
    "repair",
    "transact",
]
