"""A keyspace as a Python mapping."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from ._windrow import Keyspace


class Mapping(MutableMapping[bytes, bytes]):
    """A keyspace as a `MutableMapping` of bytes, in the order of its keys.

    `len` reads all keys; iterators show the moment at which they were made.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self.keyspace = keyspace

    def __getitem__(self, key: bytes) -> bytes:
        return self.keyspace[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.keyspace.put(key, value)

    def __delitem__(self, key: bytes) -> None:
        del self.keyspace[key]

    def __contains__(self, key: object) -> bool:
        return key in self.keyspace

    def __iter__(self) -> Iterator[bytes]:
        return self.keyspace.keys()

    def __reversed__(self) -> Iterator[bytes]:
        return self.keyspace.keys(reverse=True)

    def __len__(self) -> int:
        return self.keyspace.count()

    def __bool__(self) -> bool:
        return next(self.keyspace.keys(), None) is not None

    def clear(self) -> None:
        self.keyspace.clear()

    def __repr__(self) -> str:
        return f"Mapping({self.keyspace!r})"
