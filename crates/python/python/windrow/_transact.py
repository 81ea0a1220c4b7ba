"""Transactions that are run again where somebody came in between."""

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
    attempts: int | None = None,
) -> _T:
    """Calls `run(transaction)` and commits; where it conflicts, again, `attempts` times at most (None: for ever).

    What `run` returns. Where it raises, nothing is written. It may run several times, and must do nothing else.
    """
    tried = 0
    while True:
        tried += 1
        transaction = db.transaction(pessimistic=pessimistic, lock_timeout=lock_timeout, sync=sync)
        try:
            with transaction:
                result = run(transaction)
            return result
        except ConflictError:
            if attempts is not None and tried >= attempts:
                raise
