"""plyvel's interface on Windrow: `import windrow.plyvel as plyvel`.

Differences: a database is Windrow's and not LevelDB's (`windrow load --from leveldb` reads those), filters are
Windrow's, whichever are asked for, Snappy is LZ4, a write buffer and a cache become one budget of memory, and keys have
65,535 bytes at most.
"""

import os
import threading
import weakref

from . import _windrow, errors

__all__ = ["DB", "CorruptionError", "Error", "IOError", "IteratorInvalidError", "destroy_db", "repair_db"]
__leveldb_version__ = "1.23"
__version__ = "1.5.1"

_WRITE_BUFFER_BYTES = 4 << 20
_CACHE_BYTES = 8 << 20
_MEMORY_BYTES_MIN = 32 << 20


class Error(Exception):
    """Any failure."""


class IOError(Error, OSError):
    """The operating system refused something."""


class CorruptionError(Error):
    """Bytes on disk are not what was written."""


class IteratorInvalidError(Error):
    """A raw iterator is at no entry."""


def _raised(error):
    """Returns plyvel's exception for one of Windrow's."""
    if isinstance(error, errors.ClosedError):
        return RuntimeError("Database is closed")
    if isinstance(error, OSError):
        return IOError(str(error))
    if isinstance(error, errors.CorruptionError):
        return CorruptionError(str(error))
    return Error(str(error))


class _translated:
    """A block whose errors become plyvel's."""

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if isinstance(error, errors.Error):
            raise _raised(error) from error


_translating = _translated()


def _path(name):
    if isinstance(name, bytes):
        return os.fsdecode(name)
    if not isinstance(name, str):
        raise TypeError("'name' arg must be a byte string or a unicode string")
    return name


def _number(value, what, default):
    if value is None:
        return default
    if not isinstance(value, int):
        raise TypeError(f"{what} is a number, not {type(value).__name__}")
    return value


def _is_bytes(value, what):
    if not isinstance(value, bytes):
        raise TypeError(f"{what} is a byte string, not {type(value).__name__}")
    return value


def _options(
    *,
    create_if_missing=False,
    error_if_exists=False,
    paranoid_checks=None,
    write_buffer_size=None,
    max_open_files=None,
    lru_cache_size=None,
    block_size=None,
    block_restart_interval=None,
    max_file_size=None,
    compression="snappy",
    bloom_filter_bits=0,
    comparator=None,
    comparator_name=None,
):
    buffer = _number(write_buffer_size, "write_buffer_size", _WRITE_BUFFER_BYTES)
    cache = _number(lru_cache_size, "lru_cache_size", _CACHE_BYTES)
    for value, what in [
        (max_open_files, "max_open_files"),
        (block_restart_interval, "block_restart_interval"),
        (max_file_size, "max_file_size"),
        (bloom_filter_bits, "bloom_filter_bits"),
    ]:
        _number(value, what, 0)
    if isinstance(compression, bytes):
        compression = compression.decode()
    if compression is not None and not isinstance(compression, str):
        raise TypeError("'compression' must be None or a string")
    if compression not in (None, "snappy"):
        raise ValueError("'compression' must be None or 'snappy'")
    words = {
        "create_if_missing": bool(create_if_missing),
        "error_if_exists": bool(error_if_exists),
        "memory_bytes": max(4 * buffer + cache, _MEMORY_BYTES_MIN),
        "block_bytes": min(max(_number(block_size, "block_size", 4096), 256), 4 << 20),
        "compression": "none" if compression is None else "lz4",
    }
    if (comparator is None) != (comparator_name is None):
        raise ValueError("'comparator' and 'comparator_name' must be specified together")
    if comparator is not None:
        if not callable(comparator):
            raise TypeError("custom comparator object must be callable")
        name = _is_bytes(comparator_name, "comparator_name").decode("latin-1")
        words["comparators"] = {name: comparator}
        words["default_keyspace"] = {"comparator": name}
    return words


class _Reads:
    """The reads that databases, snapshots and prefixed databases share."""

    def __iter__(self):
        return self.iterator()

    def iterator(
        self,
        *,
        reverse=False,
        start=None,
        stop=None,
        include_start=True,
        include_stop=False,
        prefix=None,
        include_key=True,
        include_value=True,
        verify_checksums=False,
        fill_cache=True,
    ):
        if prefix is not None and (start is not None or stop is not None):
            raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
        bounds = _Bounds(self._prefix, start, stop, include_start, include_stop, prefix)
        return Iterator(self, bounds, reverse, include_key, include_value, fill_cache)

    def raw_iterator(self, *, verify_checksums=False, fill_cache=True):
        return RawIterator(self, fill_cache)

    def get(self, key, default=None, *, verify_checksums=False, fill_cache=True):
        key = self._prefix + _is_bytes(key, "a key")
        with _translating:
            return self._opened().get(key, default, snapshot=self._snapshot)


class DB(_Reads):
    """A database."""

    _prefix = b""
    _snapshot = None
    _native = None

    def __init__(self, name, **options):
        path = _path(name)
        options = _options(**options)
        self._name = name
        self._compare = options.get("comparators", {}).get(options.get("default_keyspace", {}).get("comparator"))
        self._iterators = weakref.WeakSet()
        self._lock = threading.Lock()
        if not options["create_if_missing"] and os.path.isdir(path) and not os.access(path, os.W_OK):
            raise IOError(f"{path}: permission denied")
        with _translating:
            self._native = _windrow.open(path, **options)

    @property
    def name(self):
        return self._name

    @property
    def closed(self):
        return self._native is None

    def close(self):
        with self._lock:
            for iterator in list(self._iterators):
                iterator.close()
            native, self._native = self._native, None
        if native is not None:
            with _translating:
                native.close()

    def __del__(self):
        # Remaining iterators go on reading; the last one closes the database.
        self._native = None

    def _opened(self):
        native = self._native
        if native is None:
            raise RuntimeError("Database is closed")
        return native

    def _watch(self, iterator):
        """Closes the iterator when the database closes."""
        with self._lock:
            self._opened()
            self._iterators.add(iterator)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def __repr__(self):
        return f"<plyvel.DB with name {self._name!r}{' (closed)' if self.closed else ''} at {hex(id(self))}>"

    def put(self, key, value, *, sync=False):
        with _translating:
            self._opened().put(_is_bytes(key, "a key"), value, sync=bool(sync))

    def delete(self, key, *, sync=False):
        with _translating:
            self._opened().delete(_is_bytes(key, "a key"), sync=bool(sync))

    def write_batch(self, *, transaction=False, sync=False):
        return WriteBatch(self, b"", transaction, sync)

    def snapshot(self):
        return Snapshot(self, b"")

    def prefixed_db(self, prefix):
        return PrefixedDB(self, _is_bytes(prefix, "a prefix"))

    def get_property(self, name):
        return _property(self._opened(), _is_bytes(name, "a property's name"))

    def compact_range(self, *, start=None, stop=None):
        with _translating:
            self._opened().compact(start, None if stop is None else stop + b"\0")

    def approximate_size(self, start, stop):
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges):
        native = self._opened()
        for one in ranges:
            start, stop = one
            _is_bytes(start, "start"), _is_bytes(stop, "stop")
        with _translating:
            return [native.approximate_bytes(start, stop) for start, stop in ranges]


def _property(native, name):
    text = name.decode("latin-1")
    if text == "leveldb.stats":
        return native.stats_text().encode()
    levels = native.stats()["keyspaces"][0]["levels"]
    if text == "leveldb.sstables":
        lines = [
            f"--- level {level} ---\n {of['run_files'] + of['log_files']} files, {of['bytes']} bytes\n"
            for level, of in enumerate(levels)
        ]
        return "".join(lines).encode()
    if text == "leveldb.approximate-memory-usage":
        memory = native.stats()["memory"]
        return str(memory["memtables_bytes"] + memory["cache_bytes"] + memory["tables_bytes"]).encode()
    if text.startswith("leveldb.num-files-at-level") and text[26:].isdigit():
        level = int(text[26:])
        of = levels[level] if level < len(levels) else {"run_files": 0, "log_files": 0}
        return str(of["run_files"] + of["log_files"]).encode()
    return None


class PrefixedDB(_Reads):
    """The keys of a database that begin with a prefix, without it."""

    _snapshot = None

    def __init__(self, db, prefix):
        self._db = db
        self._prefix = prefix

    @property
    def db(self):
        return self._db

    @property
    def prefix(self):
        return self._prefix

    @property
    def _compare(self):
        return self._db._compare

    def _watch(self, iterator):
        self._db._watch(iterator)

    def _opened(self):
        return self._db._opened()

    def put(self, key, value, *, sync=False):
        self._db.put(self._prefix + _is_bytes(key, "a key"), value, sync=sync)

    def delete(self, key, *, sync=False):
        self._db.delete(self._prefix + _is_bytes(key, "a key"), sync=sync)

    def write_batch(self, *, transaction=False, sync=False):
        return WriteBatch(self._db, self._prefix, transaction, sync)

    def snapshot(self):
        return Snapshot(self._db, self._prefix)

    def prefixed_db(self, prefix):
        return PrefixedDB(self._db, self._prefix + _is_bytes(prefix, "a prefix"))

    def __repr__(self):
        return f"<plyvel.PrefixedDB with prefix {self._prefix!r} at {hex(id(self))}>"


class Snapshot(_Reads):
    """One moment of a database."""

    def __init__(self, db, prefix):
        self._db = db
        self._prefix = prefix
        self._snapshot = db._opened().snapshot()

    @property
    def _compare(self):
        return self._db._compare

    def _watch(self, iterator):
        self._db._watch(iterator)

    def _opened(self):
        native = self._db._opened()
        if self._snapshot is None:
            raise RuntimeError("Snapshot is closed")
        return native

    def close(self):
        self._snapshot = None

    def __enter__(self):
        self._opened()
        return self

    def __exit__(self, *why):
        self.close()


class WriteBatch:
    """Operations that are written together."""

    def __init__(self, db, prefix, transaction, sync):
        self._db = db
        self._prefix = prefix
        self._is_transaction = transaction
        self._batch = db._opened().batch(sync=bool(sync))

    def put(self, key, value):
        native = self._db._opened()
        self._batch.put(native, self._prefix + _is_bytes(key, "a key"), value)

    def delete(self, key):
        native = self._db._opened()
        self._batch.delete(native, self._prefix + _is_bytes(key, "a key"))

    def clear(self):
        self._db._opened()
        self._batch.clear()

    def write(self):
        self._db._opened()
        with _translating:
            self._batch.write(keep=True)

    def approximate_size(self):
        self._db._opened()
        return self._batch.nbytes

    def append(self, source):
        self._db._opened()
        self._batch.append(source._batch)

    def __enter__(self):
        self._db._opened()
        return self

    def __exit__(self, kind, error, trace):
        self._db._opened()
        if not (self._is_transaction and kind is not None):
            self.write()
        self.clear()


def _behind(prefix):
    """Returns the first key after all keys with the prefix; None if there is none."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes([short[-1] + 1]) if short else None


class _Bounds:
    """The range of an iterator, with the prefix of its database."""

    def __init__(self, db_prefix, start, stop, include_start, include_stop, prefix):
        if prefix is not None:
            _is_bytes(prefix, "a prefix")
            start, stop, include_start, include_stop = prefix, None, True, False
            upper = _behind(db_prefix + prefix)
        else:
            upper = _behind(db_prefix)
        self.cut = len(db_prefix)
        self.lower = None if start is None and not db_prefix else db_prefix + (start or b"")
        self.skip_lower = start is not None and not include_start
        self.upper = upper if stop is None else db_prefix + _is_bytes(stop, "stop")
        self.keep_upper = stop is not None and include_stop
        if start is not None:
            _is_bytes(start, "start")

    def resolved(self, db, snapshot):
        """Returns the range as its first key, and the first key after it."""
        native, compare = db._opened(), db._compare
        lower, upper = self.lower, self.upper
        if compare is None:
            return (lower + b"\0" if self.skip_lower else lower), (upper + b"\0" if self.keep_upper else upper)

        def behind(key):
            cursor = native.cursor(key, snapshot=snapshot)
            if cursor.first() and compare(cursor.key, key) == 0:
                cursor.next()
            return cursor.key

        if self.skip_lower:
            # If no key is after it, the range is empty.
            start, lower = lower, behind(lower)
            if lower is None:
                return start, start
        if self.keep_upper:
            upper = behind(upper)
        return lower, upper


class _Closing:
    """An iterator that its database closes."""

    def __init__(self, reads):
        native = reads._opened()
        self._native = native
        self._snapshot = reads._snapshot or native.snapshot()
        reads._watch(self)

    def close(self):
        # A running call of another thread ends by itself.
        self._native = self._snapshot = self._cursor = self._ahead = None

    def _open(self):
        native = self._native
        if native is None:
            raise RuntimeError("Database or iterator is closed")
        return native

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()


class Iterator(_Closing):
    """A place between two entries.

    While it only goes on, an iterator of Windrow reads ahead. When it turns or is moved, a cursor replaces that
    iterator, at the entry behind the gap (none: the gap is the last).
    """

    def __init__(self, reads, bounds, reverse, include_key, include_value, fill_cache):
        super().__init__(reads)
        self._cut = bounds.cut
        self._reverse = bool(reverse)
        self._keys, self._values = include_key, include_value
        lower, upper = bounds.resolved(reads, self._snapshot)
        self._range = {"start": lower, "stop": upper, "snapshot": self._snapshot, "fill_cache": bool(fill_cache)}
        self._prefix = reads._prefix
        self._cursor = None
        self._ahead = None
        self._last = None
        with _translating:
            self._ahead = self._open().items(reverse=self._reverse, **self._range)

    def __iter__(self):
        return self

    def _shown(self, key, value):
        if self._keys and self._values:
            return (key[self._cut:] if self._cut else key), value
        if self._keys:
            return key[self._cut:] if self._cut else key
        return value if self._values else None

    def __next__(self):
        ahead = self._ahead
        if ahead is not None:
            with _translating:
                key, value = next(ahead, (None, None))
            if key is None:
                # It may turn from here.
                self._turned(at_end=True)
                raise StopIteration
            self._last = key
            return self._shown(key, value)
        return self._back() if self._reverse else self._forth()

    def prev(self):
        return self._forth() if self._reverse else self._back()

    def _turned(self, at_end=False):
        """Returns the cursor, at the place that the iterator has reached."""
        native, cursor = self._open(), self._cursor
        if cursor is not None:
            return cursor
        self._ahead = None
        with _translating:
            cursor = native.cursor(**self._range)
            if self._reverse:
                if at_end:
                    cursor.first()
                elif self._last is not None:
                    cursor.seek(self._last)
            elif not at_end:
                if self._last is None:
                    cursor.first()
                elif cursor.seek(self._last):
                    cursor.next()
        self._cursor = cursor
        return cursor

    def _forth(self):
        cursor = self._turned()
        if not cursor.valid:
            raise StopIteration
        shown = self._shown(cursor.key, cursor.value)
        with _translating:
            cursor.next()
        return shown

    def _back(self):
        cursor = self._turned()
        with _translating:
            if not (cursor.prev() if cursor.valid else cursor.last()):
                cursor.first()
                raise StopIteration
        return self._shown(cursor.key, cursor.value)

    def seek_to_start(self):
        with _translating:
            self._turned().first()

    def seek_to_stop(self):
        cursor = self._turned()
        with _translating:
            if cursor.last():
                cursor.next()

    def seek(self, target):
        cursor = self._turned()
        with _translating:
            cursor.seek(self._prefix + _is_bytes(target, "a target"))


class RawIterator(_Closing):
    """A place at an entry, or at none."""

    def __init__(self, reads, fill_cache):
        super().__init__(reads)
        with _translating:
            self._cursor = self._open().cursor(snapshot=self._snapshot, fill_cache=bool(fill_cache))

    def _place(self):
        cursor = self._cursor
        if cursor is None:
            raise RuntimeError("Database or iterator is closed")
        return cursor

    def valid(self):
        return self._place().valid

    def seek_to_first(self):
        with _translating:
            self._place().first()

    def seek_to_last(self):
        with _translating:
            self._place().last()

    def seek(self, target):
        with _translating:
            self._place().seek(_is_bytes(target, "a target"))

    def _at(self):
        cursor = self._place()
        if not cursor.valid:
            raise IteratorInvalidError("the iterator is at no entry")
        return cursor

    def next(self):
        with _translating:
            self._at().next()

    def prev(self):
        with _translating:
            self._at().prev()

    def key(self):
        return self._at().key

    def value(self):
        return self._at().value

    def item(self):
        return self.key(), self.value()


def repair_db(name, **options):
    """Makes a damaged database openable again."""
    options = _options(**options)
    del options["create_if_missing"], options["error_if_exists"]
    with _translating:
        _windrow.repair(_path(name), **options)


def destroy_db(name):
    """Removes a database. A missing one is no error."""
    path = _path(name)
    if os.path.lexists(path):
        with _translating:
            _windrow.destroy(path)


