"""Errors. Messages say what happened, where, and what to do."""


class Error(Exception):
    """Any failure of Windrow."""


class CorruptionError(Error):
    """Bytes on disk are not what was written: verify, then repair or restore."""


class IoError(Error, OSError):
    """The operating system refused something."""


class NoSpaceError(IoError):
    """The device is full: make room, and try again (`Db.resume` if writing is off)."""


class InvalidArgumentError(Error, ValueError):
    """The call was wrong: change it."""


class NotSupportedError(Error):
    """The data needs something that this build does not have."""


class ClosedError(Error, RuntimeError):
    """The object was closed or dropped, or this is a forked child."""


class ReadOnlyError(Error):
    """Writing is off: `Db.resume` or opening again turns it on."""


class BusyError(Error):
    """Another process or call holds it: try later."""


class OutcomeUnknownError(Error):
    """Whether the write took effect is not known until writing is on again."""


class ConflictError(Error):
    """Another writer changed data that the transaction read: run it again, as `Db.transact` does."""


class MergeRefusedError(Error):
    """The merge operator does not take the value: put or delete the key."""


class InternalError(Error):
    """Windrow contradicts itself: report it."""
