"""From a decision to what serves: a fit to everybody, and the promise checked over their lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._native import resolve_threads
from limelight.control.controls import fewer_epochs, fit_at
from limelight.control.population import WIDER, room_for_candidates
from limelight.data.candidates.sorter import BUFFER_BYTES
from limelight.data.ids import positions
from limelight.metrics import exposure
from limelight.metrics.groups import group_figures
from limelight.models.factor_model import FactorModel
from limelight.recommend.candidates import candidates_of, usual_width
from limelight.recommend.fold_in import match_items
from limelight.recommend.ranking import empty_lists
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.group_shares import GroupShare
from limelight.rerank.reranker import Reranked
from limelight.rerank.targets.controls import Control, SearchContext
from limelight.rerank.targets.search import Measure, OutOfReachError, Trial, meet

if TYPE_CHECKING:
    from limelight._base.arrays import Int32, Int64
    from limelight.data.groups import Groups
    from limelight.data.interactions import Ids, Interactions
    from limelight.models.base import Model
    from limelight.rerank.market.pool import Law
    from limelight.rerank.targets.providers import ProvidersOf
    from limelight.rerank.targets.search import Goal
    from limelight.rerank.targets.serving import GroupsOf, Served


_STRIDE = 1.25
"""The strength for everybody is near that of the search, so the next one to try is near, too."""
_EXPOSURE = ("gini", "coverage")


class Confirmed(NamedTuple):
    """What serves, and what everybody's lists give."""

    model: Model | Reranked
    strength: float
    before: Measure
    """Of the model's own lists."""
    now: Measure
    met: bool = True
    """Whether everybody gets what was asked for."""
    groups: tuple[GroupShare, ...] = ()
    notes: tuple[str, ...] = ()
    providers: dict[str, float] = {}  # noqa: RUF012 - never changed
    """How evenly providers share exposure, by name, where the target is for theirs."""


def refit(model: Model, data: Interactions) -> Model:
    """Fit a model to more users, from where it is; factors of items it knows are where they were.

    A model that cannot start from somewhere is fitted from scratch.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> split = ll.split_users(data, validation=30, test=30)
    >>> refit(ll.IALS(factors=8).fit(split.train), data)
    IALS(factors=8) fitted to 300 users x 100 items
    """
    settings = model.config.changed()
    if not isinstance(model, FactorModel):
        return type(model)(**settings).fit(data, show_progress=False)
    epochs = fewer_epochs(model.config)
    found: FactorModel = type(model)(**{**settings, "epochs": epochs})
    numbers = positions(data.item_ids, model.item_ids)
    V = np.where(numbers[:, None] >= 0, model.item_factors[numbers], np.float32(0))
    users = model.fold_in(match_items(data, model.item_ids))
    found.fit(data, init=(users, V), show_progress=False)
    # Whoever fits it again starts from scratch.
    found.config = replace(model.config)
    return found


@dataclass(frozen=True, eq=False)
class Everybody:
    """The users of a population, as a fitted model knows them."""

    model: Model
    data: Interactions
    """What the model was fitted to."""
    rows: Int64
    """Of the model, in random order, as if they came one after the other."""
    n_lists: int
    """How many lists they stand for."""
    k: int
    providers: Groups | None = None
    """Groups of items whose exposure the target is for, where it is not for that of items."""

    @classmethod
    def of(cls, model: Model, data: Interactions, user_ids: Ids, n_lists: int, k: int) -> Everybody:
        """Find users in a model."""
        rows = positions(user_ids, model.user_ids)
        return cls(model, data, np.random.default_rng(2).permutation(rows), n_lists, k)

    def pool(self, law: Law, width: int | None) -> Pool:
        """Return everybody's candidates, with their relevance; both are freed together."""
        model, room = self.model, room_for_candidates()
        width = width or usual_width(max(self.n_lists, len(self.rows)))
        ids = model.user_ids[self.rows], model.item_ids
        found = candidates_of(model.ranking(users=self.rows), width, ids=ids, memory=room)
        return Pool(found, law, memory=room)

    def leave(self) -> Confirmed:
        """Serve everybody her own list."""
        own = self.model.recommend(users=self.rows, k=self.k).ids
        found = measure_exposure(own, len(self.model.item_ids))
        more = self._of_providers(own, own)
        return Confirmed(self.model, 0.0, found, found, providers=more)

    def with_providers(self, providers: ProvidersOf | None) -> Everybody:
        """Return the same users, and whose exposure is measured beside that of items."""
        members = None if providers is None else providers(self.model.item_ids).members
        return replace(self, providers=members)

    def _of_providers(self, own: Int32, now: Int32) -> dict[str, float]:
        """Measure providers by everybody's own lists and by those that are made now."""
        if self.providers is None:
            return {}
        n_items = len(self.model.item_ids)
        before, given = (exposure.exposure(ids, n_items) for ids in (own, now))
        return group_figures(self.providers, before, given, self.k)

    def rerank(self, served: Served, goal: Goal | None, strength: float) -> Confirmed:
        """Serve everybody at the strength that meets a goal for all, or at the given one.

        Where that is out of reach, everybody gets more candidates, as long as there are any.
        """
        found = self._rerank(served, goal, strength)
        width, n_items = served.settings.get("candidates") or 0, len(self.model.item_ids)
        wider = min(WIDER * width, n_items)
        if found.met or not width < wider or self._is_too_wide(wider):
            return found
        settings = served.settings | {"candidates": wider}
        return self.rerank(replace(served, settings=settings), goal, strength)

    def _is_too_wide(self, width: int) -> bool:
        return len(self.rows) * width * BUFFER_BYTES > room_for_candidates()

    def _rerank(self, served: Served, goal: Goal | None, strength: float) -> Confirmed:
        with self.pool(served.law, served.settings.get("candidates")) as pool, pool.candidates:
            control = served.control(SearchContext(pool, self.k, self.threads, seed=0))
            before, found = _confirm(control, goal, strength)
            reranker = control.reranker(found.strength, found.lists, float(self.n_lists))
            made, own = pool.lists(found.lists), pool.lists(pool.own_places(self.k))
        lists = None
        if served.serve != "stateless":
            lists = empty_lists(len(self.model.user_ids), self.k)
        if lists is not None and served.serve == "batch":
            lists.ids[self.rows], lists.scores[self.rows] = made
        serving = Reranked(reranker, self.model, lists)
        is_met = goal is None or goal.is_met(found.measure)
        shares: tuple[GroupShare, ...] = ()
        now = found.measure
        if served.groups is not None or self.providers is not None:
            sides = own.ids, made.ids
            before, now = (measure_exposure(ids, len(self.model.item_ids)) for ids in sides)
        if served.groups is not None:
            shares = self._shares(served.groups, own.ids, made.ids)
            is_met = is_met and not control.missed(found.strength)
        more = self._of_providers(own.ids, made.ids)
        return Confirmed(serving, found.strength, before, now, is_met, shares, providers=more)

    def _shares(self, groups: GroupsOf, own: Int32, now: Int32) -> tuple[GroupShare, ...]:
        """Put the shares of groups before and after beside what was wished."""
        item_ids = np.asarray(self.model.item_ids)
        members, wishes = groups(item_ids)
        before, after = (
            wishes.shares(members, exposure.exposure(ids, len(item_ids))).tolist()
            for ids in (own, now)
        )
        bounds = wishes.low.tolist(), wishes.high.tolist()
        return tuple(map(GroupShare, members.group_ids, before, after, *bounds))

    def retrain(self, goal: Goal | None, strength: float) -> Confirmed:
        """Control training at the strength that meets a goal for everybody, or at the given one."""
        control = _Retrained(self, {0.0: self.model})
        before, found = _confirm(control, goal, strength)
        is_met = goal is None or goal.is_met(found.measure)
        model = control.fits[found.strength]
        return Confirmed(model, found.strength, before, found.measure, is_met)

    def figures(self, confirmed: Confirmed) -> dict[str, float]:
        """Return the exposure of everybody's lists, by name."""
        k, n_items = self.k, len(self.model.item_ids)
        before = {f"{name}@{k}_before": getattr(confirmed.before, name) for name in _EXPOSURE}
        now = {f"{name}@{k}": getattr(confirmed.now, name) for name in _EXPOSURE}
        floor = {f"gini_floor@{k}": exposure.gini_floor(len(self.rows), k, n_items)}
        found = {"users": len(self.rows), "items": n_items, **now, **before, **floor}
        return found | confirmed.providers

    @property
    def threads(self) -> int:
        """How many threads to use."""
        return resolve_threads(self.model.config.num_threads)

    def measure(self, model: Model) -> Measure:
        """Measure the exposure of everybody's own lists."""
        ids = model.recommend(users=self.rows, k=self.k).ids
        return measure_exposure(ids, len(model.item_ids))


def measure_exposure(ids: Int32, n_items: int) -> Measure:
    """Measure the exposure that lists give."""
    given = exposure.exposure(ids, n_items)
    return Measure.of(given, 1.0, 1.0)


@dataclass(eq=False)
class _Retrained(Control):
    """A model fitted to everybody, each exposure strength from the one before."""

    everybody: Everybody
    fits: dict[float, Any]
    most = 100.0

    def try_at(self, strength: float) -> Trial:
        if strength not in self.fits:
            plain = self.fits[0.0]
            start = self.fits[max(self.fits)] if len(self.fits) > 1 else plain
            self.fits[strength] = fit_at(plain.config, start, self.everybody.data, strength)
        return Trial(strength, self.everybody.measure(self.fits[strength]))


def _confirm(control: Control, goal: Goal | None, strength: float) -> tuple[Measure, Trial]:
    """Measure own lists, and find the strength for everybody, from that of the search on."""
    before = control.try_at(0.0).measure
    if goal is None or not strength:
        control.try_at(strength)
        return before, control.try_at(strength)  # lists settle a little more
    try:
        return before, meet(control, goal, first=strength, stride=_STRIDE)
    except OutOfReachError as error:
        return before, error.nearest
