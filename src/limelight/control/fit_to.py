"""``ll.fit_to``: a wish in, a model that meets it out."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from scipy import sparse

from limelight._base.errors import ConfigError, SolveError
from limelight._base.progress import progress_bar
from limelight._base.settings import check_choice, check_integer
from limelight.control.controls import (
    RERANKERS,
    ExposureControl,
    Judges,
    ModelControl,
    RankedUsers,
    RerankControl,
)
from limelight.control.target_result import BothLists, ShownTarget, TargetResult, TriedMethod
from limelight.data.groups import read_groups
from limelight.data.held_out import as_unseen, refolded
from limelight.data.ids import ids_to_arrow
from limelight.data.split import as_split
from limelight.metrics.exposure import exposure, handout_gini
from limelight.metrics.lists import position_weights
from limelight.models.base import Model
from limelight.models.exadmm import ExADMM
from limelight.rerank.methods.group_shares import GroupShares
from limelight.rerank.relevance import Relevance, calibrate
from limelight.rerank.rerank import GroupGoal, as_group_goal, group_settings
from limelight.rerank.targets.groups import as_groups
from limelight.rerank.targets.search import FIRST, TRIES, OutOfReachError, as_goal, meet

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight.data.sources import Source
    from limelight.data.split import Split
    from limelight.rerank.methods.group_shares import GroupShare
    from limelight.rerank.targets.groups import Share
    from limelight.rerank.targets.search import Goal, Trial
    from limelight.rerank.welfare import WelfareName
    from limelight.store.checkpoint import Place


_KNOWN_FOR_SHARES = 15_000
"""How many training users, at most, find the prices beside the validation users."""


class GroupTarget:
    """Finds prices of groups, from validation and training users of a split.

    Wishes that contradict each other are refused here, before a model is fitted for hours.
    """

    def __init__(self, split: Split, goal: GroupGoal) -> None:
        self._split, self._goal = split, goal
        n_items = split.train.n_items
        self.named = read_groups(goal.groups, ids_to_arrow(split.train.item_ids))
        self._members = as_groups(self.named, n_items)
        self._counts = np.asarray(split.train.matrix.sum(axis=0)).ravel()
        method: GroupShares = GroupShares(**group_settings(goal))
        self._wishes = method.wishes(self._members, n_items, self._counts)

    def reach(self, plain: Model, k: int) -> dict[str, Any]:
        """Find the prices for a fitted model."""
        part = self._split.validation
        law = calibrate(plain.ranking(part.history), part.targets, k)
        histories = [part.history, as_unseen(self._split.train.matrix, _KNOWN_FOR_SHARES)]
        known = sparse.vstack(histories, format="csr")
        method = GroupShares(
            **group_settings(self._goal), relevance=law, num_threads=plain.config.num_threads
        )
        prices = method.fit(plain.ranking(known), k, groups=self._members, counts=self._counts)
        self._outcome = outcome = method.outcome_
        return {
            "model": prices.over(plain),
            "method": "group prices",
            "strength": max(map(abs, prices.prices.values()), default=0.0),
            "met": outcome.is_met,
            "goal": self._goal.wishes,
            "notes": (*outcome.notes, f"{known.shape[0]:,} users who found the prices: {outcome}"),
        }

    def check(self, lists: BothLists) -> tuple[tuple[GroupShare, ...], str]:
        """Put the shares of other users beside what was wished, and say what is missed most."""
        before, after = (
            self._wishes.shares(self._members, exposure(ids, len(self._counts)))
            for ids in (lists.plain, lists.now)
        )
        shares = tuple(
            wished._replace(before=float(then), after=float(now))
            for wished, then, now in zip(self._outcome.shares, before, after, strict=True)
        )
        missed = self._wishes.violations(after)
        worst = int(np.argmax(missed))
        if missed[worst] <= 0:
            return shares, "Test users: all wishes hold."
        points, group = 100 * missed[worst], shares[worst].id
        return shares, f"Test users: {group!r} misses its wish by most, {points:.2f} points."


Serve = Literal["batch", "stream", "stateless"]
_SERVES = {"batch": "best-response", "stream": "online", "stateless": "prices"}
"""Which re-ranker serves in which way."""
_FINALISTS = 2
"""How many methods are looked at more closely before a loss is spent by one of them."""
_WELFARES: tuple[WelfareName, ...] = ("log", "power")
_SLIGHT = 1e-3  # as ExposureControl.slight, so that weak fits start from the plain model
_KNOWN = 10_000
"""How many training users, at most, warm a stream up, or find prices."""


def fit_to(  # noqa: PLR0913
    data: Any,
    *,
    gini: float | None = None,
    max_ndcg_loss: float | None = None,
    min_coverage: float | None = None,
    groups: Source | None = None,
    group_cap: Share | None = None,
    group_floor: Share | None = None,
    group_shares: Literal["equal", "catalogue", "interactions"] | Share | None = None,
    at: int = 20,
    model: Model | None = None,
    serve: Serve = "batch",
    show_progress: bool | None = None,
    checkpoint: Place = None,
) -> TargetResult:
    """Fit a model, and find the control that meets a target at the least loss of accuracy.

    Control is tried in training, by the exposure strength of ExADMM, and afterwards, by re-ranking
    what the model likes best. Validation users decide; test users, whom nothing was decided by,
    say what was achieved.

    Parameters
    ----------
    data
        A split, or interactions: then a tenth of the users, at most 5,000, are held out for
        validation, and as many for the test.
    gini, max_ndcg_loss, min_coverage
        The target, one of them: the Gini index of exposure, the share of nDCG that may be given up
        for as even an exposure as that buys, or the share of the catalogue that lists show.
    groups, group_cap, group_floor, group_shares
        Or a target for groups of items, a table ``item_id, group[, weight]``: the share of all
        exposure that none may exceed, or each should have, or the share of each, as for
        ``ll.GroupShares``. Prices of groups serve batch, stream and machines alike.
    at
        Length of the lists that the target speaks of.
    model
        What to fit; ``ExADMM()`` unless given. Only ExADMM can be controlled in training.
    serve
        How users will be served: many together (``batch``), one after the other (``stream``), or
        by machines that share nothing (``stateless``).
    show_progress
        Whether to show a progress bar; left out, where standard error is a terminal.
    checkpoint
        Where the fit of the plain model keeps its state, and goes on from, as for ``fit``.

    Raises
    ------
    SolveError
        If the target is out of reach; the message says how near each method came.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(2000, 200, 40_000).interactions
    >>> result = ll.fit_to(data, gini=0.4, at=10, model=ll.ExADMM(factors=8, epochs=20))
    >>> abs(result.test["gini@10"] - 0.4) < 0.05
    True
    >>> ids, scores = result.model.recommend(data.matrix[:5], k=10)
    """
    started = time.perf_counter()
    wishes = {"gini": gini, "max_ndcg_loss": max_ndcg_loss, "min_coverage": min_coverage}
    shares = {"group_cap": group_cap, "group_floor": group_floor, "group_shares": group_shares}
    goal = as_group_goal(groups, shares, wishes, "auto") or as_goal(**wishes)
    check_choice("serve", serve, tuple(_SERVES))
    plain = ExADMM() if model is None else model
    if not isinstance(plain, Model):
        message = f"a target needs a model to fit: {plain!r}"
        raise ConfigError(message, hint="pass one such as ll.ExADMM(factors=64)")
    _refuse_control(plain)
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    grouped = GroupTarget(split, goal) if isinstance(goal, GroupGoal) else None
    plain.fit(split.train, show_progress=show_progress, checkpoint=checkpoint)
    if grouped is not None:
        found = grouped.reach(plain, at)
    else:
        found = _reach(plain, split, cast("Goal", goal), at, serve, show_progress=show_progress)
    seconds = time.perf_counter() - started
    validation, test = (
        BothLists.of(found["model"], plain, part, at) for part in (split.validation, split.test)
    )
    if grouped is not None:
        found["groups"], note = grouped.check(test)
        found["notes"] += (note,)
    return TargetResult(
        plain=plain,
        at=at,
        validation=validation.figures(),
        test=test.figures(),
        seconds=seconds,
        shown=ShownTarget(split, test, grouped.named if grouped is not None else None),
        **found,
    )


def _reach(
    plain: Model, split: Split, goal: Goal, k: int, serve: Serve, *, show_progress: bool | None
) -> dict[str, Any]:
    """Find what meets a goal at the least loss, and say how."""
    judges = Judges(plain, [split.validation], k)
    controls = _controls(plain, split, judges, serve)
    with progress_bar("search", TRIES * len(controls), show=show_progress) as advance:
        tried, found = _try_all(controls, judges, goal, advance)
        if not found:
            raise _out_of_reach(goal, tried, split, k)
        if goal.is_loss:
            # A loss is a small difference of two means, and uncertain by what users had to find.
            # So the best are tried again, and the same users also find other items of theirs.
            often = Judges(plain, refolded(split.validation), k)
            finalists = sorted(controls, key=lambda one: _cost(goal, found[one.name]))[:_FINALISTS]
            closer, found = _try_all(finalists, often, goal, advance, found)
            seen = {one.method for one in closer}
            tried = [*closer, *(one for one in tried if one.method not in seen)]
    best = min(found, key=lambda name: _cost(goal, found[name]))
    [control] = [control for control in controls if control.name == best]
    strength, measure = float(found[best].strength), found[best].measure
    return {
        "model": control.at(strength),
        "method": best if strength else "the plain model",
        "strength": strength,
        "met": goal.is_met(measure),
        "goal": {goal.kind: goal.value},
        "tried": tuple(tried),
        "notes": goal.notes(measure),
    }


def _refuse_control(model: Model) -> None:
    for name in ("exposure_weight", "exposure_strength"):
        if value := getattr(model.config, name, 0):
            message = f"a target finds the exposure weight by itself: {name}={value!r}"
            raise ConfigError(message, hint="leave it out, or leave the target out")


def _controls(plain: Model, split: Split, judges: Judges, serve: Serve) -> list[ModelControl]:
    """List the ways to control that serve as wished."""
    [users] = judges.users
    k, law = judges.k, calibrate(users.ranking, split.validation.targets, judges.k)
    laws = {"calibrated": law}
    if law.scale == "log":
        # Where few users were held out, one scale for all of them may do better than a fit.
        laws["scores"] = Relevance(score=1, head=0, rank=0, floor=law.floor)
    method, known = _SERVES[serve], None
    if serve != "batch":
        known = RankedUsers(lambda: plain, as_unseen(split.train.matrix, _KNOWN))
    make = partial(RERANKERS[method], known, k, num_threads=plain.config.num_threads)
    makers = {"prices": make}
    if serve != "stateless":
        name = method.replace("-", " ")
        makers = {f"{name} ({welfare})": partial(make, welfare=welfare) for welfare in _WELFARES}
    controls: list[ModelControl] = [
        RerankControl(f"{name} of {scale}", k, lambda: plain, partial(maker, relevance=rule))
        for name, maker in makers.items()
        for scale, rule in laws.items()
    ]
    if isinstance(plain, ExADMM):
        fits = {0.0: plain}
        controls.append(ExposureControl("exadmm", k, plain.config, split.train, fits, _SLIGHT))
    return controls


def _try_all(
    controls: list[ModelControl],
    judges: Judges,
    goal: Goal,
    advance: Callable[[], None],
    before: dict[str, Trial] | None = None,
) -> tuple[list[TriedMethod], dict[str, Trial]]:
    """Meet the goal with every control that can; start from what was found before."""
    tried, found = [], {}
    for control in controls:
        control.judges = judges
        first = (before[control.name].strength if before else 0.0) or FIRST
        try:
            trial = found[control.name] = meet(control, goal, first=first, advance=advance)
            is_met = goal.is_met(trial.measure)
        except OutOfReachError as error:
            trial, is_met = error.nearest, False
        tried.append(TriedMethod(control.name, trial.strength, *trial.measure, met=is_met))
        for users in judges.users:
            users.close_pool()
    return tried, found


def _cost(goal: Goal, met: Trial) -> tuple[float, float]:
    """Return how far a goal is missed, if it is, and then what meeting it costs."""
    missed = 0.0 if goal.is_met(met.measure) else goal.miss(met.measure)
    return missed, met.measure.gini if goal.is_loss else met.measure.loss


def _out_of_reach(goal: Goal, tried: list[TriedMethod], split: Split, k: int) -> SolveError:
    """Say how near every method came, and what stands in the way."""
    near = ", ".join(
        f"{one.method} a Gini index of {one.gini:.3f} and a coverage of {one.coverage:.3f}"
        for one in tried
    )
    part = split.validation
    scored = int(np.count_nonzero(np.diff(part.targets.indptr)))
    floor = handout_gini(position_weights(k), np.full(k, scored), split.train.n_items)
    shown = min(1.0, scored * k / split.train.n_items)
    message = (
        f"out of reach: {goal} for {scored:,} users; {near}; lists of {k} for so many users cannot "
        f"go below a Gini index of about {floor:.3f}, nor show more than {shown:.1%} of "
        f"{split.train.n_items:,} items"
    )
    hint = "ask for less, hold out more users, or make lists longer"
    return SolveError(message, hint=hint)
