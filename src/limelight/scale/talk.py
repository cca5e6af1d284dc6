"""What ranks say to each other while they read, in terms of the verbs of an exchange."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._errors import ConfigError, DataError, LimelightError, MemoryLimitError, SolveError
from limelight.solve.exchange import deal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from limelight._arrays import Int64
    from limelight.solve.exchange import Exchange

_KINDS = {kind.__name__: kind for kind in (ConfigError, DataError, MemoryLimitError, SolveError)}


def swap(exchange: Exchange, payloads: Sequence[Any]) -> list[Any]:
    """Give each rank its payload and return what each rank has for this one.

    Parameters
    ----------
    exchange
        The door to the others; all of them must call this.
    payloads
        An array, or a tuple of arrays, for each rank.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> def greet(exchange):
    ...     mine = 10 * exchange.rank
    ...     return [int(a[0]) for a in swap(exchange, [np.array([mine + to]) for to in range(3)])]
    >>> run_locally(greet, 3, 5)
    [[0, 10, 20], [1, 11, 21], [2, 12, 22]]
    """
    dealt = deal(exchange.n_shards, exchange.size)
    nothing = [np.empty(0)] * exchange.size
    mine = dealt[exchange.rank]
    outgoing = (payloads if shard == mine[0] else nothing for shard in mine)
    # Everything goes with the first shard of each rank.
    sender = {shards[0]: rank for rank, shards in enumerate(dealt)}
    found = {sender.get(shard): payload for shard, payload in exchange.exchange_rows(outgoing)}
    return [found[rank] for rank in range(exchange.size)]


def share(exchange: Exchange, payload: Any) -> list[Any]:
    """Give every rank the same, and return what every rank gave.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> run_locally(lambda exchange: share(exchange, np.array([exchange.rank])), 2, 2)[0]
    [array([0]), array([1])]
    """
    return swap(exchange, [payload] * exchange.size)


def collect(exchange: Exchange, payload: Any) -> list[Any] | None:
    """Give something to the first rank, which gets it of all; the others get None.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> run_locally(lambda exchange: collect(exchange, np.array([exchange.rank])), 2, 2)
    [[array([0]), array([1])], None]
    """
    found = swap(exchange, [payload, *[np.empty(0)] * (exchange.size - 1)])
    return None if exchange.rank else found


def sum_counts(exchange: Exchange, counts: Int64) -> Int64:
    """Add up an array of counts over all ranks; each adds up a stretch of it.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> run_locally(lambda exchange: sum_counts(exchange, np.array([1, 2, 3])), 2, 2)[1]
    array([2, 4, 6])
    """
    stretches = swap(exchange, np.array_split(counts, exchange.size))
    return exchange.gather_items(np.stack(stretches).sum(axis=0, dtype=np.int64))


def all_agree(exchange: Exchange, holds: object) -> bool:
    """Tell whether something holds for every rank.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> run_locally(lambda exchange: all_agree(exchange, exchange.rank < 1), 2, 2)
    [False, False]
    """
    return bool(exchange.gather_items(np.array([bool(holds)])).all())


def wait(exchange: Exchange) -> None:
    """Wait until every rank has come this far."""
    all_agree(exchange, holds=True)


@contextmanager
def together(exchange: Exchange) -> Iterator[None]:
    """Fail where any rank fails, with the error of the first of them.

    Ranks read in the order of their numbers, so this is what one machine would have met first.

    Examples
    --------
    >>> from limelight.solve.exchange import run_locally
    >>> def fail(exchange):
    ...     with together(exchange):
    ...         if exchange.rank:
    ...             raise DataError(f"row {exchange.rank} is bad")
    >>> run_locally(fail, 3, 3)
    Traceback (most recent call last):
    limelight._errors.DataError: row 1 is bad
    """
    failure = None
    try:
        yield
    except LimelightError as error:
        failure = error
    for rank, packed in enumerate(share(exchange, _pack(failure))):
        if len(packed):
            raise failure if failure and rank == exchange.rank else _unpack(packed)


def _pack(error: LimelightError | None) -> Any:
    if error is None:
        return np.empty(0, np.uint8)
    text = json.dumps([type(error).__name__, error.message, error.hint])
    return np.frombuffer(text.encode(), np.uint8)


def _unpack(packed: Any) -> LimelightError:
    kind, message, hint = json.loads(bytes(packed))
    return _KINDS.get(kind, LimelightError)(message, hint=hint)
