"""The calls of `windrow` for asyncio: each runs in a thread, since it may wait for a device or for merges.

    db = await aio.open("data")
    await db.put(b"apple", b"red")
    async for key, value in db.items(prefix=b"a"):
        ...
"""

import asyncio
from functools import partial

from . import _windrow
from ._transact import transact as _transact

_SCANS = {"items", "keys", "values"}
_AHEAD = 256


class Async:
    """An object of Windrow whose methods are awaited. Scans are asynchronous iterators."""

    def __init__(self, of):
        self._of = of

    @property
    def plain(self):
        """The object itself, whose calls block."""
        return self._of

    def __getattr__(self, name):
        found = getattr(self._of, name)
        if not callable(found):
            return found
        if name in _SCANS:
            return partial(_scan, found)

        async def call(*args, **words):
            args = [arg._of if isinstance(arg, Async) else arg for arg in args]
            return _wrapped(await asyncio.to_thread(found, *args, **words))

        return call

    async def __aenter__(self):
        await asyncio.to_thread(self._of.__enter__)
        return self

    async def __aexit__(self, *why):
        return await asyncio.to_thread(self._of.__exit__, *why)

    def __repr__(self):
        return f"Async({self._of!r})"


def _wrapped(result):
    kinds = (
        _windrow.Keyspace,
        _windrow.Batch,
        _windrow.Transaction,
        _windrow.Cursor,
        _windrow.Ingest,
        _windrow.Follower,
    )
    return Async(result) if isinstance(result, kinds) else result


def _some(entries, count):
    return [entry for _, entry in zip(range(count), entries)]


async def _scan(scan, *args, **words):
    entries = await asyncio.to_thread(scan, *args, **words)
    count = 1
    try:
        while some := await asyncio.to_thread(_some, entries, count):
            for entry in some:
                yield entry
            count = min(4 * count, _AHEAD)
    finally:
        entries.close()


async def open(path, **options):
    """The same as `windrow.open`."""
    return Async(await asyncio.to_thread(partial(_windrow.open, path, **options)))


async def transact(db, run, **options):
    """The same as `windrow.transact`, in a thread: `run` is a plain function."""
    return await asyncio.to_thread(partial(_transact, db.plain, run, **options))
