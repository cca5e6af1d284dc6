"""The population that a target is for, and the sitting in which a search serves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy

from limelight._base.errors import ConfigError, DataError
from limelight._base.memory import limit, resident
from limelight.data.candidates.candidates import MEMORY
from limelight.data.candidates.sorter import BUFFER_BYTES
from limelight.data.catalogue import read_distinct
from limelight.data.groups import exposure_of
from limelight.data.held_out import HeldOut, left_out, refolded
from limelight.data.ids import ids_from_arrow, positions
from limelight.metrics import exposure
from limelight.metrics.accuracy import ndcg
from limelight.metrics.groups import group_figures
from limelight.recommend.candidates import candidates_of, usual_width
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.market.pool import Pool
from limelight.rerank.targets.search import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source
    from limelight.data.split import Split
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.rerank.market.pool import Law
    from limelight.rerank.targets.providers import ProvidersOf

For: TypeAlias = "Literal['everyone', 'held-out'] | int | Source | Sequence[Any]"
"""Whom a target is for; see :func:`as_population`."""
_EVERYONE, _HELD_OUT = "everyone", "held-out"
_SEARCHED = 20_000
"""How many users are enough to search with: the Gini index at a strength then changes by less than
0.005 with more of them."""
_DRAWS, _FOUND = (3, 5), 10_000
"""How often each validation user finds other items of hers, and how many lists are enough."""
WIDER = 4
"""How many times more candidates users get where the first do not reach far enough."""
_LARGEST_ROOM = 8 << 30


@dataclass(frozen=True, eq=False)
class TargetPopulation:
    """The users whose lists a target is for.

    Users are numbered as in a split: training users first, then those of validation and test.
    """

    rows: Int64
    """Which users."""
    n_lists: int
    """How many lists the figures are of: one a user, unless more or fewer are served a period."""
    held_out_alone: bool = False
    """Whether exposure is that of held-out users' lists alone, as in the published protocol."""

    def ids(self, split: Split) -> Ids:
        """Return who they are."""
        return _all_ids(split)[self.rows]

    def __str__(self) -> str:
        who = "held-out users" if self.held_out_alone else "users"
        if self.n_lists > len(self.rows):
            return f"{self.n_lists:,} lists of {len(self.rows):,} {who}"
        return f"{self.n_lists:,} {who}' lists"

    @property
    def n_distinct(self) -> int:
        """How many lists differ: a user who is served twice gets the same."""
        return min(self.n_lists, len(self.rows))


def as_population(wanted: For, split: Split) -> TargetPopulation:
    """Say whose lists a target is for.

    Parameters
    ----------
    wanted
        "everyone": all users of the data. A number: so many lists a period, of users drawn from
        them. A table with ``user_id``, or ids: these users. "held-out": held-out users alone, as
        if nobody else were served, which is what published experiments measure.
    split
        Who the users are.

    Examples
    --------
    >>> import limelight as ll
    >>> split = ll.split_users(ll.marketplace(300, 50, 3000).interactions, validation=30, test=30)
    >>> print(as_population("everyone", split), as_population(100, split), sep=", ")
    300 users' lists, 100 users' lists
    """
    sizes = split.train.n_users, split.validation.n_users, split.test.n_users
    everyone = np.arange(sum(sizes))
    if isinstance(wanted, str) and wanted in (_EVERYONE, _HELD_OUT):
        if wanted == _EVERYONE:
            return TargetPopulation(everyone, len(everyone))
        return TargetPopulation(everyone[sizes[0] :], split.validation.n_users, held_out_alone=True)
    if isinstance(wanted, bool | float | np.floating):
        message = f"a population is everyone, held-out, a number or users: {wanted!r}"
        raise ConfigError(message, hint="for example 100000 lists a period")
    if isinstance(wanted, int | np.integer):
        if wanted < 1:
            message = f"a population needs at least 1 user: {wanted!r}"
            raise ConfigError(message, hint="for example 100000 lists a period")
        return TargetPopulation(_drawn(int(wanted), sizes), int(wanted))
    rows = _rows_of(wanted, split)
    return TargetPopulation(rows, len(rows))


def _drawn(n_lists: int, sizes: tuple[int, int, int]) -> Int64:
    """Draw users: held-out ones, then training users."""
    n_train, *held_out = sizes
    everyone, draw = np.arange(sum(sizes)), np.random.default_rng(0)
    if n_lists >= len(everyone):
        return everyone
    others = draw.permutation(n_train)
    parts = [draw.permutation(part) for part in np.split(everyone[n_train:], [held_out[0]])]
    # Held-out users come first, those of the two parts in turn, because they are what is measured.
    turns = [np.arange(len(part)) * 2 + side for side, part in enumerate(parts)]
    first = np.concatenate(parts)[np.argsort(np.concatenate(turns))]
    return np.sort(np.concatenate([first, others])[:n_lists])


def _all_ids(split: Split) -> Ids:
    parts = split.train, split.validation, split.test
    return np.concatenate([part.user_ids for part in parts])


def _rows_of(wanted: Any, split: Split) -> Int64:
    asked = ids_from_arrow(read_distinct(wanted, "user")[0])
    if not len(asked):
        message = "a population needs at least 1 user: none was given"
        raise DataError(message, hint="leave it out to serve all users of the data")
    rows = positions(np.array(list(map(str, asked)), dtype=object), _all_ids(split))
    if (rows < 0).any():
        unknown = asked.tolist()[int(np.argmin(rows))]
        message = f"the population has a user who is not in the data: {unknown!r}"
        raise DataError(message, hint="leave out users without interactions, or add theirs")
    return np.unique(rows)


def room_for_candidates() -> int:
    """Return how many bytes candidates may take: a third of what is free, within bounds."""
    room = limit()
    free = 0 if room is None else max(0, room - resident()) // 3
    return int(np.clip(free, MEMORY, _LARGEST_ROOM))


@dataclass(eq=False)
class RankedUsers:
    """Users, and what a model ranks for them; candidates are made once, at their first use."""

    model: Callable[[], Model]
    """Returns the fitted model."""
    history: Any
    """One row a user: what is known of her."""
    hidden: Any = None
    """One row a user: what she must not be shown, if not her history."""
    user_ids: Any = None
    """Who they are, where lists may depend on that."""
    width: int | None = None
    """How many candidates each user has; see ``candidates_of``."""
    _pool: tuple[Law, Pool] | None = field(default=None, init=False)

    @cached_property
    def ranking(self) -> CandidateRanking:
        """Their candidates, ranked."""
        model = self.model()
        plain = model.ranking(self.history, hidden=self.hidden)
        width = self.width or usual_width(plain.n_users)
        ids = np.arange(plain.n_users) if self.user_ids is None else self.user_ids
        room = room_for_candidates()
        return CandidateRanking(candidates_of(plain, width, ids=(ids, model.item_ids), memory=room))

    @property
    def n_users(self) -> int:
        """How many they are."""
        return int(self.history.shape[0])

    def own(self, k: int) -> Lists:
        """Return the lists of the model itself."""
        return self.ranking.top(np.arange(self.ranking.n_users), k)

    def pool(self, law: Law) -> Pool:
        """Return their candidates with relevance, which is worked out once for all strengths."""
        if self._pool is None or self._pool[0] != law:
            self.close_pool()
            pool = Pool(candidates_of(self.ranking), law, memory=room_for_candidates())
            self._pool = law, pool
        return self._pool[1]

    def close_pool(self) -> None:
        """Free the relevance, because the next search may use another law of relevance."""
        if self._pool is not None:
            self._pool[1].close()
        self._pool = None

    def close(self) -> None:
        """Free relevance and candidates."""
        self.close_pool()
        if "ranking" in self.__dict__ and self.ranking.candidates is not None:
            self.ranking.candidates.close()
            del self.__dict__["ranking"]


class HeldOutRows(NamedTuple):
    """Held-out users, and their rows among those who are served."""

    rows: Int64
    part: HeldOut


class Sitting:
    """Users who are served together, of whom some are held out: a population, or enough of it.

    Exposure is that of everybody's lists; accuracy is that of held-out users, who are served like
    all others. Training users take part as if they were unseen: a fifth of their histories is left
    out, but not shown either.

    Attributes
    ----------
    users : RankedUsers
        Everybody, in random order.
    n_lists : int
        How many lists the population has.
    parts : dict
        Held-out users by name: those of "validation" decide, by those of "test" nothing is decided.
    providers : Groups or None
        Groups of items whose exposure a target is for, where it is not for that of items.
    """

    providers: Groups | None = None

    def __init__(
        self,
        users: RankedUsers,
        n_lists: int,
        k: int,
        parts: dict[str, HeldOutRows],
    ) -> None:
        self.users, self.n_lists, self.k, self.parts = users, n_lists, k, parts
        self._folds: list[tuple[RankedUsers, Any]] = []

    @cached_property
    def own(self) -> Int32:
        """Everybody's own list."""
        return self.users.own(self.k).ids

    @property
    def folds(self) -> list[RankedUsers]:
        """Validation users again, with other items of theirs to find."""
        return [users for users, _ in self._folds]

    def draw_again(self) -> None:
        """Let validation users also find other items of theirs, so that accuracy is less noisy."""
        self.__dict__.pop("_own_gains", None)
        part = self.parts["validation"].part
        draws = int(np.clip(_FOUND // max(part.n_users, 1), *_DRAWS))
        # A fifth of the items is found in every draw, as in the test, so not all of them are drawn.
        for fold in refolded(part)[1:draws]:
            model, width = self.users.model, self.users.width
            users = RankedUsers(model, fold.history, None, fold.user_ids, width)
            self._folds.append((users, fold.targets))

    @cached_property
    def _own_gains(self) -> Float64:
        again = [users.own(self.k).ids for users in self.folds]
        return self._all_gains(self.own, again)

    def measure(self, ids: Int32, again: Sequence[Int32] = ()) -> tuple[Measure, Float64]:
        """Measure everybody's lists; the gains of validation users say how sure the loss is.

        ``again`` are the lists of the folds.
        """
        gains = self._all_gains(ids, again)
        base = float(self._own_gains.mean())
        loss = 1 - float(gains.mean()) / base if base else 0.0
        given = exposure.exposure(ids, self.n_items)
        held = given if self.providers is None else exposure_of(self.providers, given)
        return Measure.of(held, 1 - loss, 1.0), gains / (base or 1.0)

    def of_providers(self, plain: Int32, now: Int32) -> dict[str, float]:
        """Measure providers by everybody's plain lists and those now, where a target is theirs."""
        if self.providers is None:
            return {}
        before, given = (exposure.exposure(ids, self.n_items) for ids in (plain, now))
        return group_figures(self.providers, before, given, self.k)

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.users.history.shape[1])

    def _all_gains(self, ids: Int32, again: Sequence[Int32]) -> Float64:
        """Return the nDCG of every validation user who has something to find."""
        rows, part = self.parts["validation"]
        found = [(ids[rows], part.targets)]
        found += [(made, draw[1]) for made, draw in zip(again, self._folds, strict=True)]
        gains = np.array([ndcg(made, draw, self.k, per_user=True) for made, draw in found])
        return np.asarray(gains[:, ~np.isnan(gains).any(axis=0)].mean(axis=0))

    def widen(self) -> bool:
        """Give everybody more candidates, if there are more and memory allows it; says whether.

        An item that is nobody's candidate cannot be shown, however much it is helped.
        """
        width = min(WIDER * (self.users.width or self.n_items), self.n_items)
        room = room_for_candidates() // BUFFER_BYTES
        if self.users.width in (None, width) or self.users.n_users * width > room:
            return False
        self.close()
        self._folds.clear()
        self.__dict__.pop("_own_gains", None)
        self.users.width = width
        return True

    def close(self) -> None:
        """Free all candidates."""
        for users in (self.users, *self.folds):
            users.close()


def sitting_of(
    population: TargetPopulation,
    split: Split,
    model: Callable[[], Model],
    k: int,
    parts: tuple[str, ...] = ("validation", "test"),
    providers: ProvidersOf | None = None,
) -> Sitting:
    """Seat a population, or enough of it: all held-out users, and training users beside them.

    With ``providers``, exposure is measured as theirs.
    """
    n_train = split.train.n_users
    starts = {"validation": n_train, "test": n_train + split.validation.n_users}
    held_out = {name: getattr(split, name) for name in parts}
    chosen: dict[str, Int64] = {}
    for name, part in held_out.items():
        rows = population.rows - starts[name]
        chosen[name] = rows[(rows >= 0) & (rows < part.n_users)]
        if not part.targets[chosen[name]].nnz:
            message = f"the population has no {name} user with held-out items to find"
            raise DataError(message, hint="take more users, or another population")
    others = population.rows[population.rows < n_train]
    if population.held_out_alone:
        others = others[:0]
    n_held_out = sum(map(len, chosen.values()))
    n_others = max(_SEARCHED - n_held_out, n_held_out)
    if len(others) > n_others:
        others = np.sort(np.random.default_rng(0).permutation(others)[:n_others])
    whole = split.train.matrix[others]
    histories = [left_out(whole), *(held_out[name].history[rows] for name, rows in chosen.items())]
    hidden = [whole, *histories[1:]]
    ids = [split.train.user_ids[others]]
    ids += [held_out[name].user_ids[rows] for name, rows in chosen.items()]
    # Everybody's place in a stream is drawn, so that held-out users come among the others.
    places = np.random.default_rng(1).permutation(sum(map(len, ids)))
    seats, first = {}, len(others)
    at = np.argsort(places)
    for name, rows in chosen.items():
        part = held_out[name]
        seats[name] = HeldOutRows(at[first : first + len(rows)], part.take(rows))
        first += len(rows)
    users = RankedUsers(
        model,
        scipy.sparse.vstack(histories, format="csr")[places],
        scipy.sparse.vstack(hidden, format="csr")[places],
        np.concatenate(ids)[places],
        usual_width(max(population.n_lists, len(places))),
    )
    n_lists = len(places) if population.held_out_alone else population.n_lists
    found = Sitting(users, n_lists, k, seats)
    if providers is not None:
        found.providers = providers(split.train.item_ids).members
    return found
