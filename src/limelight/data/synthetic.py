"""A made-up marketplace of any size, in which the true relevance of every item is known.

A user has tastes, an item serves tastes and has a quality. What a user would truly like is

    relevance(user, item) = quality(item) * sum over tastes of user_taste * item_taste

What a user comes to see depends also on how visible the item is, so interactions are drawn, without
repetition, with probability proportional to relevance * visibility. Visibility is the popularity
bias that a model learns although it says nothing about relevance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.documents import Document, pairs
from limelight._base.errors import ConfigError
from limelight._base.seeds import seed_of
from limelight._base.settings import is_integer
from limelight._base.text import count
from limelight.data.interactions import Interactions
from limelight.data.rows import Rows, group, row_numbers, row_starts, walk

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from limelight._base.seeds import RandomState

BLOCK = 8192
"""Users drawn at a time. Changing it changes the data of a seed."""
_QUALITY, _VISIBILITY, _PROVIDER, _ACTIVITY = 1.2, 0.5, 0.3, 0.9  # spreads of log-normals
_USER_TASTE, _ITEM_TASTE = 0.1, 0.05  # Dirichlet: the smaller, the purer
_STRAY = 0.05  # share of every user and item that is spread over all tastes
_ROUNDS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Marketplace:
    """Interactions, who provides the items, and what users would truly like.

    Attributes
    ----------
    interactions : Interactions
        What happened; ids are 0, 1, 2, ...
    providers : int32[n_items]
        The provider of each item.
    user_tastes, item_tastes : float32[n, n_tastes]
        How much of each taste a user has and an item serves; rows sum to 1.
    quality : float32[n_items]
        How good an item is for those who have its taste, at most 1.
    visibility : float32[n_items]
        How much more often than its relevance says an item is met.

    Examples
    --------
    >>> market = marketplace(n_users=100, n_items=50, n_interactions=1000, n_providers=5)
    >>> market
    Marketplace(100 users x 50 items, 1,000 interactions, 5 providers, 20 tastes)
    """

    interactions: Interactions
    providers: NDArray[np.int32]
    user_tastes: NDArray[np.float32]
    item_tastes: NDArray[np.float32]
    quality: NDArray[np.float32]
    visibility: NDArray[np.float32]

    def relevance(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float32]:
        """Tell how much users would truly like items, by their numbers.

        The arguments broadcast: two lists of the same length are pairs, a column of users and a
        row of items are a table.

        Examples
        --------
        >>> market = marketplace(n_users=100, n_items=50, n_interactions=1000)
        >>> market.relevance([0, 1], [7, 8]).shape
        (2,)
        >>> market.relevance(np.arange(100)[:, None], np.arange(50)).shape
        (100, 50)
        """
        users, items = np.asarray(users), np.asarray(items)
        tastes = np.einsum("...t,...t->...", self.user_tastes[users], self.item_tastes[items])
        relevance: NDArray[np.float32] = tastes * self.quality[items]
        return relevance

    @property
    def groups(self) -> Any:
        """An Arrow table ``item_id, group`` with the name of each item's provider.

        Examples
        --------
        >>> market = marketplace(n_users=100, n_items=50, n_interactions=1000, n_providers=5)
        >>> market.groups.column_names
        ['item_id', 'group']
        """
        digits = len(str(int(self.providers.max())))
        names = pa.array([f"provider-{i:0{digits}}" for i in range(self.providers.max() + 1)])
        group = pa.DictionaryArray.from_arrays(self.providers, names).cast(pa.string())
        return pa.table({"item_id": self.interactions.item_ids, "group": group})

    def __repr__(self) -> str:
        data = repr(self.interactions).removeprefix("Interactions(").removesuffix(")")
        providers = count(int(self.providers.max()) + 1, "provider")
        return f"Marketplace({data}, {providers}, {count(self.item_tastes.shape[1], 'taste')})"

    def _repr_html_(self) -> str:
        planted = {
            "providers": int(self.providers.max()) + 1,
            "tastes": self.item_tastes.shape[1],
        }
        rows = [*self.interactions.sizes(), *((name, f"{n:,}") for name, n in planted.items())]
        return Document("Marketplace", [pairs(rows)]).html()


def marketplace(
    n_users: int = 6_000,
    n_items: int = 3_000,
    n_interactions: int = 200_000,
    *,
    n_providers: int | None = None,
    n_tastes: int = 20,
    min_items: int = 5,
    random_state: RandomState | None = None,
    seed: int | None = None,
) -> Marketplace:
    """Make up a marketplace with long tails, tastes, providers and a popularity bias.

    Parameters
    ----------
    n_users, n_items, n_interactions
        The size. The number of interactions is exact, and no pair repeats.
    n_providers
        Owners of the items: a few large ones and many small ones, each with at least one item.
        Left out, one for every 30 items.
    n_tastes
        Clusters of taste.
    min_items
        Fewest interactions of a user; no user has more than half of the items, if that is more.
    random_state
        The same seed and size give the same data; 0 unless given. A NumPy generator draws one.
    seed
        The older name of ``random_state``.

    Returns
    -------
    Marketplace
        ``interactions``, ``providers``, ``groups`` and the true ``relevance``.

    Examples
    --------
    >>> market = marketplace(n_users=200, n_items=100, n_interactions=3000)
    >>> market.interactions
    Interactions(200 users x 100 items, 3,000 interactions)
    """
    most = max(min_items, n_items // 2)
    n_providers = max(1, n_items // 30) if n_providers is None else n_providers
    sizes = {"n_users": n_users, "n_items": n_items, "n_tastes": n_tastes, "min_items": min_items}
    for name, size in sizes.items():
        _check_range(name, size, 1, 2**31 - 1)
    _check_range("n_items", n_items, min_items, 2**31 - 1)
    seed = seed_of(random_state, seed)
    _check_range("random_state", seed, 0, 2**63 - 1)
    _check_range("n_providers", n_providers, 1, n_items)
    _check_range("n_interactions", n_interactions, n_users * min_items, n_users * most)
    catalogue = _catalogue(n_items, n_providers, n_tastes, _generator(seed, 0))
    activity = _activity(n_users, n_interactions, min_items, most, _generator(seed, 1))
    blocks = [
        _draw_block(catalogue, activity[start : start + BLOCK], _generator(seed, 2, number))
        for number, start in enumerate(range(0, n_users, BLOCK))
    ]
    data = Interactions(
        row_starts(activity),
        np.concatenate([rows.indices for rows, _ in blocks]),
        np.arange(n_users),
        np.arange(n_items),
        np.concatenate([rows.order for rows, _ in blocks]),
    )
    tastes = np.concatenate([tastes for _, tastes in blocks])
    return Marketplace(data, catalogue.providers, tastes, *catalogue[1:4])


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not is_integer(value, least, most):
        message = f"{name} must be a whole number from {least:,} to {most:,}: {value!r}"
        raise ConfigError(message, hint="choose sizes that fit each other")


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class _Catalogue(NamedTuple):
    providers: NDArray[np.int32]
    item_tastes: NDArray[np.float32]
    quality: NDArray[np.float32]
    visibility: NDArray[np.float32]
    taste_mass: NDArray[np.float64]
    cumulated: NDArray[np.float64]
    """For each taste t, the distribution of its items, cumulated from t to t + 1."""

    @property
    def appeal(self) -> NDArray[np.float32]:
        return self.quality * self.visibility


def _catalogue(
    n_items: int, n_providers: int, n_tastes: int, rng: np.random.Generator
) -> _Catalogue:
    providers = _providers(n_items, n_providers, rng)
    quality = np.exp(_QUALITY * rng.standard_normal(n_items))
    visibility = np.exp(
        _VISIBILITY * rng.standard_normal(n_items)
        + _PROVIDER * rng.standard_normal(n_providers)[providers]
    )
    tastes = _tastes(n_items, n_tastes, _ITEM_TASTE, rng)
    quality = (quality / quality.max()).astype(np.float32)
    visibility = (visibility / visibility.mean()).astype(np.float32)
    weight = tastes.T.astype(np.float64) * (quality * visibility)
    mass = weight.sum(axis=1)
    cumulated: NDArray[np.float64] = np.cumsum(weight / mass[:, None], axis=1)
    cumulated += np.arange(n_tastes)[:, None]
    return _Catalogue(providers, tastes, quality, visibility, mass, cumulated.ravel())


def _providers(n_items: int, n_providers: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Give every provider one item and share out the rest by Zipf's law."""
    share = 1 / np.arange(1, n_providers + 1)
    rest = rng.choice(n_providers, n_items - n_providers, p=share / share.sum())
    return rng.permutation(np.concatenate([np.arange(n_providers), rest])).astype(np.int32)


def _tastes(n: int, n_tastes: int, purity: float, rng: np.random.Generator) -> NDArray[np.float32]:
    pure = rng.dirichlet(np.full(n_tastes, purity), n)
    return (_STRAY / n_tastes + (1 - _STRAY) * pure).astype(np.float32)


def _activity(
    n_users: int, total: int, least: int, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Share out the interactions by log-normal zeal; what is too much for one goes to others."""
    zeal = np.exp(_ACTIVITY * rng.standard_normal(n_users))
    activity = np.full(n_users, least, dtype=np.int64)
    left = total - least * n_users
    while left:
        share = np.where(activity < most, zeal, 0.0)
        activity += rng.multinomial(left, share / share.sum())
        left = int(np.maximum(activity - most, 0).sum())
        np.minimum(activity, most, out=activity)
    return activity


def _draw_block(
    catalogue: _Catalogue, activity: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Rows, NDArray[np.float32]]:
    """Draw the tastes and the items of a block of users.

    Repeated items are thrown away and drawn anew, which is drawing without repetition. Users who
    want much of the catalogue, or had no luck in a few rounds, race instead.
    """
    n_items, n_tastes = catalogue.item_tastes.shape
    tastes = _tastes(len(activity), n_tastes, _USER_TASTE, rng)
    users, items = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    short = activity.copy()
    for _ in range(_ROUNDS):
        wanted = np.where(activity > n_items // 8, 0, short)
        if not wanted.any():
            break
        # A few more than wanted, because some will repeat.
        drawn = np.repeat(np.arange(len(activity)), wanted + wanted // 4 + 2 * (wanted > 0))
        users = np.concatenate([users, drawn])
        items = np.concatenate([items, _draw_items(catalogue, tastes, drawn, rng)])
        users, items = _first_distinct(users, items, activity, n_items)
        short = activity - np.bincount(users, minlength=len(activity))
    late = np.flatnonzero(short)
    first, last = (np.searchsorted(users, late, side) for side in ("left", "right"))
    raced = []
    for user, start, stop in zip(late, first, last, strict=True):
        chance = catalogue.appeal * (catalogue.item_tastes @ tastes[user])
        chance[items[start:stop]] = 0
        raced.append(_race(chance, int(short[user]), rng))
    users = np.concatenate([users, np.repeat(late, short[late])])
    items = np.concatenate([items, *raced])
    return group(users, items, len(activity), n_items), tastes


def _draw_items(
    catalogue: _Catalogue,
    tastes: NDArray[np.float32],
    users: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw one item for each entry of `users`: first a taste, then an item of that taste."""
    n_items, n_tastes = catalogue.item_tastes.shape
    share = tastes * catalogue.taste_mass
    cumulated = np.cumsum(share, axis=1)
    cumulated /= cumulated[:, -1:]
    # One sorted list for all users: user u has the stretch from u to u + 1.
    cumulated += np.arange(len(tastes))[:, None]
    taste = np.searchsorted(cumulated.ravel(), users + rng.random(len(users)), side="right")
    taste = np.minimum(taste - users * n_tastes, n_tastes - 1)
    item = np.searchsorted(catalogue.cumulated, taste + rng.random(len(users)), side="right")
    drawn: NDArray[np.int64] = np.minimum(item - taste * n_items, n_items - 1)
    return drawn


def _first_distinct(
    users: NDArray[np.int64], items: NDArray[np.int64], most: NDArray[np.int64], n_items: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep each user's first distinct items, in the order drawn, up to a number for each user."""
    rows = group(users, items, len(most), n_items)
    starts, drawn = walk(*rows[:3], np.arange(len(most)))
    owner = row_numbers(starts)
    keep = np.arange(len(drawn)) - starts[owner] < most[owner]
    return owner[keep].astype(np.int64), drawn[keep].astype(np.int64)


def _race(chance: NDArray[np.float32], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n items without repetition: the first n to arrive, at rates equal to their chances."""
    with np.errstate(divide="ignore"):
        arrival = rng.exponential(size=len(chance)) / chance
    first = np.argpartition(arrival, n - 1)[:n]
    return first[np.argsort(arrival[first])]
