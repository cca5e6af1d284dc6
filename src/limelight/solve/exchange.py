"""What ranks say to each other in a fit that is spread over machines: the contract of a runtime."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from limelight._arrays import Float64


class Exchange(Protocol):
    """How a rank works together with the others."""

    rank: int
    size: int
    n_shards: int
    traffic: Counter[str]
    """Bytes sent to other ranks since the start, by verb."""

    def sum_small(self, parts: Sequence[Float64]) -> Float64:
        """Sum one array a shard over all shards, in shard order; every rank gets the sum."""
        ...

    def gather_items(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Concatenate every rank's rows in rank order; every rank gets all of them."""
        ...

    def exchange_rows(self, outgoing: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Send a payload from each shard of this rank to each rank; yield those for this one."""
        ...

    def commit(self, epoch: int) -> None:
        """Say that this rank's part of the checkpoint of an epoch is on disk."""
        ...

    def tell(self, epoch: int, news: dict[str, Any]) -> bool:
        """Tell who started the fit how it goes; true if all ranks are to stop after this epoch."""
        ...


class Program(Protocol):
    """What a runtime runs on every rank; it can be pickled."""

    def prepare(self, exchange: Exchange) -> None:
        """Load this rank's data."""
        ...

    def run(self, exchange: Exchange) -> Any:
        """Go from the last committed checkpoint, or the beginning, to the end."""
        ...


def deal(n_shards: int, size: int) -> list[range]:
    """Deal the shards out to the ranks: contiguous runs that differ by one at most.

    Examples
    --------
    >>> deal(7, 3)
    [range(0, 3), range(3, 5), range(5, 7)]
    """
    least, more = divmod(n_shards, size)
    starts = [rank * least + min(rank, more) for rank in range(size + 1)]
    return [range(start, end) for start, end in pairwise(starts)]
