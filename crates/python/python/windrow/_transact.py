"""Transactions that are run again after a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._windrow import Db, Transaction
from .errors import ConflictError

_T = TypeVar("_T")


def transact(
    db: Db,
    run: Callable[[Transaction], _T],
    *,
    pessimistic: bool = False,
    lock_timeout: float = 1.0,
    sync: bool = False,
    attempts: int = 100,
) -> _T:
    """Calls `run(transaction)` and commits; after a conflict it does so again, `attempts` times at most.

    Returns the result of `run`. If `run` raises, nothing is written. It may run several times, and must have no other
    effects.
    """
    for left in reversed(range(attempts)):
        transaction = db.transaction(pessimistic=pessimistic, lock_timeout=lock_timeout, sync=sync)
        try:
            with transaction:
                result = run(transaction)
            return result
        except ConflictError:
            if left == 0:
                raise
    raise ValueError("a transaction needs one attempt at least")
