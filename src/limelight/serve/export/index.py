"""Indexes of nearest neighbours that find the items of the highest value, with measured recall.

Libraries find the nearest points, and a product of vectors is no distance: graphs of raw products
were seen to find one of twenty items. Here products become distances, without error:

1. A product stays the same if items are multiplied by a matrix and users by its inverse. With the
   square root of the users' second moments, the distance of two items is how differently users
   score them, and users look the same in all directions.
2. One more dimension makes all items equally long (Bachrach et al., 2014), and is 0 for users. Then
   the nearest item has the largest product.

Without the first step the graph is made of distances that say little of scores: at 100,000 items
with prices, a search of voyager (M 16, ef 1024) found 0.94 of the best 20, and 0.99 with it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, SolveError
from limelight._base.machine import version_of
from limelight._base.progress import progress_bar
from limelight.metrics.lists import Lists
from limelight.recommend.candidates import usual_width
from limelight.recommend.index import ItemIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from limelight._base.arrays import Float32, Int32
    from limelight.serve.export.prices import ItemPrices

_BUILDS = ((24, 200), (32, 400), (48, 800))
"""Links of an item, and how widely they are searched for: tried in turn."""
_DEPTHS = (64, 128, 256, 512, 1024)
"""How many items a search looks at, tried in turn."""
_FETCHES = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
"""How many times k candidates are fetched before they are sorted by value."""
_BLOCKS = 20
"""In how many parts an index is made, after each of which progress is shown."""
_PAIRS = 1 << 17
"""How many candidates are looked at together."""


class IndexBackend(ABC):
    """A library, and the index that was made with it last."""

    package: ClassVar[str]
    distribution: ClassVar[str]
    file: ClassVar[str]
    space: ClassVar[str]
    _index: Any

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._library = self._load()

    def _load(self) -> Any:
        try:
            return __import__(self.package)
        except ImportError as error:
            message = f"this export needs {self.package}, which is not installed"
            raise ConfigError(message, hint="pip install 'limelight[export]'") from error

    @property
    def version(self) -> str | None:
        """Of the library."""
        return version_of(self.package) or str(getattr(self._library, "__version__", "unknown"))

    @abstractmethod
    def start(self, width: int, links: int, depth: int) -> None:
        """Begin an index of vectors of some width."""

    @abstractmethod
    def add(self, vectors: Float32) -> None:
        """Add vectors, numbered in their order."""

    @abstractmethod
    def search(self, queries: Float32, k: int, depth: int) -> Int32:
        """Return the numbers of the nearest vectors, one row a query, by one thread; -1 is none."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the index."""


class VoyagerBackend(IndexBackend):
    """Spotify's voyager, for Python and Java."""

    package = distribution = "voyager"
    file, space = "index.voyager", "Euclidean"

    def start(self, width: int, links: int, depth: int) -> None:
        """Begin an index."""
        space = self._library.Space.Euclidean
        self._index = self._library.Index(
            space, num_dimensions=width, M=links, ef_construction=depth
        )

    def add(self, vectors: Float32) -> None:
        """Add vectors."""
        self._index.add_items(vectors, num_threads=self._threads)

    def search(self, queries: Float32, k: int, depth: int) -> Int32:
        """Return the numbers of the nearest vectors."""
        try:
            found, _ = self._index.query(queries, k=k, query_ef=depth, num_threads=1)
        except self._library.RecallError:  # fewer than k could be reached
            return np.full((len(queries), k), -1, dtype=np.int32)
        return np.asarray(found, dtype=np.int32)

    def save(self, path: Path) -> None:
        """Write the index."""
        self._index.save(str(path))


class FaissBackend(IndexBackend):
    """Meta's faiss."""

    package, distribution = "faiss", "faiss-cpu"
    file, space = "index.faiss", "METRIC_L2"

    def start(self, width: int, links: int, depth: int) -> None:
        """Begin an index."""
        self._index = self._library.IndexHNSWFlat(width, links)
        self._index.hnsw.efConstruction = depth

    def add(self, vectors: Float32) -> None:
        """Add vectors."""
        self._by_threads(self._threads, lambda: self._index.add(vectors))

    def search(self, queries: Float32, k: int, depth: int) -> Int32:
        """Return the numbers of the nearest vectors."""
        self._index.hnsw.efSearch = depth
        _, found = self._by_threads(1, lambda: self._index.search(queries, k))
        return np.asarray(found, dtype=np.int32)

    def save(self, path: Path) -> None:
        """Write the index."""
        self._library.write_index(self._index, str(path))

    def _by_threads(self, threads: int, work: Callable[[], Any]) -> Any:
        usual = self._library.omp_get_max_threads()
        self._library.omp_set_num_threads(threads)
        try:
            return work()
        finally:
            self._library.omp_set_num_threads(usual)


BACKENDS: dict[str, type[IndexBackend]] = {"voyager": VoyagerBackend, "faiss": FaissBackend}


class Distances(NamedTuple):
    """Products as distances."""

    items: Float32
    """Points, one row an item; the nearest has the largest product."""
    transform: Float32
    """What the vectors of users are multiplied by."""


def as_distances(items: Float32, users: Float32) -> Distances:
    """Turn products of users and items into distances, without error.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users, items = (rng.normal(size=(n, 3)).astype(np.float32) for n in (50, 9))
    >>> points, transform = as_distances(items, users)
    >>> distances = np.linalg.norm((users @ transform)[:, None] - points, axis=2)
    >>> bool((distances.argmin(axis=1) == (users @ items.T).argmax(axis=1)).all())
    True
    """
    moments = users.T.astype(np.float64) @ users / max(1, len(users))
    spread, axes = np.linalg.eigh(moments)
    largest = float(spread.max(initial=0.0)) or 1.0
    # Directions that users hardly have would be blown up by the inverse.
    spread = np.sqrt(np.maximum(spread, 1e-6 * largest))
    points = items.astype(np.float64) @ (axes * spread)
    squares = (points**2).sum(axis=1)
    height = np.sqrt(np.maximum(squares.max(initial=0.0) - squares, 0))
    transform = np.column_stack([axes / spread, np.zeros(len(axes))])
    return Distances(
        np.column_stack([points, height]).astype(np.float32), transform.astype(np.float32)
    )


@dataclass(frozen=True, eq=False)
class Wanted:
    """What an index must find: the best lists of some users, by an exact search."""

    item_factors: Float32
    users: Float32
    """The factors of the users who are asked for."""
    prices: ItemPrices | None
    draws: Int32
    """Which set of prices each of them has."""
    k: int
    threads: int

    @property
    def has_price_dimension(self) -> bool:
        """Whether items are searched for by score plus price, not by score alone."""
        return self.prices is not None and self.prices.is_linear

    @property
    def n_sets(self) -> int:
        """How many sets of prices there are."""
        return 0 if self.prices is None else len(self.prices.sets)

    @property
    def sorts_after(self) -> bool:
        """Whether more than k items must be fetched and sorted by value."""
        return self.prices is not None and not (
            self.prices.is_linear and len(self.prices.sets) == 1
        )

    def indexed(self) -> Float32:
        """Return the items that are indexed: their factors and, where it can be, their price."""
        if self.prices is None or not self.prices.is_linear:
            return self.item_factors
        return np.column_stack([self.item_factors, self.prices.mean])

    def asked(self, users: Float32) -> Float32:
        """Return what users are searched for by: their factors and, with a price, a 1."""
        if not self.has_price_dimension:
            return users
        return np.column_stack([users, np.ones(len(users), dtype=np.float32)])

    def exact(self) -> Lists:
        """Return the best items of every user, and the least value among them."""
        if self.prices is None:
            return self._plain().search(self.users, self.k)
        if not self.prices.is_linear:
            width = self.prices.candidates or usual_width(len(self.users))
            return self.best_of(partial(self._exact_search, self._plain(), self.users), width)
        ids = np.empty((len(self.users), self.k), dtype=np.int32)
        values = np.empty(ids.shape, dtype=np.float32)
        asked = self.asked(self.users)
        for number in np.unique(self.draws):
            rows = np.flatnonzero(self.draws == number)
            items = np.column_stack([self.item_factors, self.prices.sets[number]])
            ids[rows], values[rows] = ItemIndex(items, self.threads).search(asked[rows], self.k)
        return Lists(ids, values)

    def _plain(self) -> ItemIndex:
        return ItemIndex(self.item_factors, self.threads)

    @staticmethod
    def _exact_search(index: ItemIndex, asked: Float32, rows: slice, fetch: int) -> Int32:
        return index.search(asked[rows], fetch).ids

    def best_of(self, search: Callable[[slice, int], Int32], fetch: int) -> Lists:
        """Fetch candidates for every user, and return the best of them by value."""
        ids = np.full((len(self.users), self.k), -1, dtype=np.int32)
        values = np.full(ids.shape, -np.inf, dtype=np.float32)
        fetch = min(fetch, len(self.item_factors))
        for rows in batches(len(self.users), max(1, _PAIRS // fetch)):
            found = search(rows, fetch)
            ids[rows], values[rows] = self._best(found, rows)
        return Lists(ids, values)

    def _best(self, found: Int32, rows: slice) -> tuple[Int32, Float32]:
        """Sort candidates by score, as laws of relevance want them, and then by value."""
        factors = self.item_factors[found]
        scores = np.einsum("ufd,ud->uf", factors, self.users[rows])
        scores[found < 0] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        found, scores = (np.take_along_axis(array, order, axis=1) for array in (found, scores))
        values = scores
        if self.prices is not None:
            values = self.prices.values(np.maximum(found, 0), scores, self.draws[rows])
            values[found < 0] = -np.inf
        best = np.argsort(-values, axis=1, kind="stable")[:, : self.k]
        return np.take_along_axis(found, best, axis=1), np.take_along_axis(values, best, axis=1)

    def needed_fetch(self, recall: float, exact: Lists) -> int:
        """Return how many candidates an exact search must fetch, so that the best are among them.

        The index may lose as much again.
        """
        if not self.sorts_after:
            return self.k
        index, asked = ItemIndex(self.indexed(), self.threads), self.asked(self.users)
        search = partial(self._exact_search, index, asked)
        for times in _FETCHES:
            fetch = min(times * self.k, len(self.item_factors))
            found = self.recall(self.best_of(search, fetch), exact)
            if found >= 1 - (1 - recall) / 2:
                return fetch
        message = f"the {fetch:,} best by score do not have the {self.k} best by value: {found:.3f}"
        hint = "the prices are strong beside the scores; search exactly: --to npy or --to parquet"
        raise SolveError(message, hint=hint)

    def recall(self, found: Lists, exact: Lists) -> float:
        """Return the share of the best items that were found; of equal values any will do."""
        ids, values = found
        pairs = zip(ids, exact.ids, strict=True)
        is_found = np.array([np.isin(row, best) for row, best in pairs])
        if self.prices is None or self.prices.is_linear:
            # Sums in another order differ in the last bits.
            least = exact.scores[:, -1:]
            bound = least - 1e-6 * np.abs(least)
            is_found |= values >= bound
        return float(np.mean(is_found & (ids >= 0)))


class MadeIndex(NamedTuple):
    """An index that reached its recall."""

    backend: IndexBackend
    distances: Distances
    record: dict[str, Any]


def make_index(
    backend: IndexBackend,
    wanted: Wanted,
    users: Float32,
    *,
    recall: float,
    show_progress: bool | None = None,
) -> MadeIndex:
    """Make indexes of more and more links, until one reaches a recall.

    Parameters
    ----------
    backend
        The library.
    wanted
        What is to be found.
    users
        Factors of all users, which shape the distances.
    recall
        What share of the best k items a search must find on average.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.
    """
    started = time.perf_counter()
    exact = wanted.exact()
    exact_seconds = (time.perf_counter() - started) / len(wanted.users)
    fetch = wanted.needed_fetch(recall, exact)
    distances = as_distances(wanted.indexed(), wanted.asked(users))
    queries = np.ascontiguousarray(wanted.asked(wanted.users) @ distances.transform)
    depths = sorted({max(depth, fetch) for depth in _DEPTHS})
    tried: list[dict[str, Any]] = []
    for links, construction in _BUILDS:
        build = {"M": links, "ef_construction": construction}
        seconds = _build(backend, distances.items, build, show_progress=show_progress)
        for depth in depths:
            started = time.perf_counter()
            found = backend.search(queries, fetch, depth)
            each = (time.perf_counter() - started) / len(queries)
            reached = wanted.recall(wanted.best_of(partial(_rows_of, found), fetch), exact)
            tried.append({**build, "ef": depth, "recall": reached, "seconds_per_query": each})
            if reached >= recall:
                record = tried[-1] | {
                    "asked": recall,
                    "k": wanted.k,
                    "fetch": fetch,
                    "queries": len(queries),
                    "build_seconds": seconds,
                    "exact_seconds_per_query": exact_seconds,
                    "tried": tried,
                }
                return MadeIndex(backend, distances, record)
    best = max(one["recall"] for one in tried)
    message = f"no index of {backend.package} reached a recall of {recall:g}: {best:.4f}"
    raise SolveError(message, hint="ask for less with --recall, or search exactly: --to npy")


def _rows_of(found: Int32, rows: slice, fetch: int) -> Int32:
    del fetch
    return found[rows]


def _build(
    backend: IndexBackend, items: Float32, build: dict[str, int], *, show_progress: bool | None
) -> float:
    started = time.perf_counter()
    parts = list(batches(len(items), max(1, -(-len(items) // _BLOCKS))))
    text = f"{backend.package} with {build['M']} links"
    backend.start(items.shape[1], build["M"], build["ef_construction"])
    with progress_bar(text, len(parts), show=show_progress) as advance:
        for rows in parts:
            backend.add(np.ascontiguousarray(items[rows]))
            advance()
    return time.perf_counter() - started
