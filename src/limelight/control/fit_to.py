"""A model whose lists keep the shares of groups: studios, sellers, languages.

``ll.fit_to``: a wish in, a model that meets it out.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from scipy import sparse

from limelight._base.errors import ConfigError, SolveError
from limelight._base.progress import progress_bar
from limelight._base.settings import check_choice, check_integer
from limelight.control.controls import Control, ExposureDial, Judges, RerankDial
from limelight.control.held_out_users import as_split, as_unseen, refolded
from limelight.control.target_result import TargetResult, Tried, compared, exhibit_of
from limelight.data.groups import exposure_of, read_groups
from limelight.data.ids import ids_to_arrow
from limelight.metrics.exposure import exposure, handout_gini
from limelight.metrics.lists import position_weights
from limelight.models.base import Model
from limelight.models.exadmm import ExADMM
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.methods.group_shares import GroupShare, GroupShares
from limelight.rerank.relevance import Relevance, calibrate
from limelight.rerank.rerank import GroupGoal, as_group_goal, group_settings
from limelight.rerank.targets.goal import as_goal
from limelight.rerank.targets.groups import as_groups
from limelight.rerank.targets.search import FIRST, TRIES, OutOfReachError, meet

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups
    from limelight.data.held_out import HeldOut
    from limelight.data.sources import Source
    from limelight.data.split import Split
    from limelight.rerank.methods.group_shares import GroupOutcome
    from limelight.rerank.reranker import Reranked, Reranker
    from limelight.rerank.targets.goal import Goal
    from limelight.rerank.targets.groups import Share
    from limelight.rerank.targets.search import Found
    from limelight.rerank.welfare import WelfareName
    from limelight.store.checkpoint import Place


_KNOWN_FOR_SHARES = 15_000
"""How many training users, at most, find the prices beside the validation users."""


class GroupControl:
    """Finds prices of groups; what can be wrong with the wishes is found out before any fit.

    Parameters
    ----------
    split
        Whose validation users find the prices, together with training users.
    goal
        What was wished.
    """

    def __init__(self, split: Split, goal: GroupGoal) -> None:
        self._split, self._goal = split, goal
        n_items = split.train.n_items
        self.named = read_groups(goal.groups, ids_to_arrow(split.train.item_ids))
        self._members = as_groups(self.named, n_items)
        self._counts = np.asarray(split.train.matrix.sum(axis=0)).ravel()
        GroupShares(**group_settings(goal)).wishes(self._members, n_items, self._counts)

    def reach(self, plain: Model, k: int) -> dict[str, Any]:
        """Find the prices for a fitted model, and say what shares they lead to.

        Parameters
        ----------
        plain
            The model.
        k
            Length of the lists.
        """
        part = self._split.validation
        law = calibrate(plain.ranking(part.history), part.targets, k)
        histories = [part.history, as_unseen(self._split.train.matrix, _KNOWN_FOR_SHARES)]
        known = sparse.vstack(histories, format="csr")
        method = GroupShares(
            **group_settings(self._goal), relevance=law, num_threads=plain.config.num_threads
        )
        prices = method.fit(plain.ranking(known), k, groups=self._members, counts=self._counts)
        served, outcome = prices.over(plain), method.outcome_
        shares = _shares(served, plain, self._split.test, self._members, outcome, k)
        return {
            "model": served,
            "method": "group prices",
            "strength": max(map(abs, prices.prices.values()), default=0.0),
            "met": outcome.is_met,
            "goal": self._goal.wishes,
            "groups": shares,
            "notes": (
                *outcome.notes,
                f"{known.shape[0]:,} users who found the prices: {outcome}",
                _worst(shares),
            ),
        }


def _worst(shares: tuple[GroupShare, ...]) -> str:
    """Say which group is furthest from its wish among other users."""
    missed = [max(share.after - share.at_most, share.at_least - share.after) for share in shares]
    worst = int(np.argmax(missed))
    if missed[worst] <= 0:
        return "Test users: all wishes hold."
    points, group = 100 * missed[worst], shares[worst].id
    return f"Test users: {group!r} misses its wish by most, {points:.2f} points."


def _shares(
    served: Reranked,
    plain: Model,
    part: HeldOut,
    members: Groups,
    outcome: GroupOutcome,
    k: int,
) -> tuple[GroupShare, ...]:
    """Put the shares of other users beside what was wished."""
    of_grouped = served.reranker.config.changed().get("target") is not None
    before, after = (
        _share(
            one.recommend(part.history, k).ids,
            members,
            part.targets.shape[1],
            of_grouped=of_grouped,
        )
        for one in (plain, served)
    )
    return tuple(
        wished._replace(before=float(then), after=float(now))
        for wished, then, now in zip(outcome.shares, before, after, strict=True)
    )


def _share(ids: np.ndarray, members: Groups, n_items: int, *, of_grouped: bool) -> Float64:
    shown = exposure(ids, n_items)
    held = exposure_of(members, shown)
    whole = held.sum() if of_grouped else shown.sum()
    return np.asarray(held / whole)


Serve = Literal["batch", "stream", "stateless"]
Maker: TypeAlias = "Callable[..., Reranker]"
_SERVES = ("batch", "stream", "stateless")
_FINALISTS = 2
"""How many methods are looked at more closely before a loss is spent by one of them."""
_NEAR = 0.01  # a target that is missed by more is not met
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
    check_choice("serve", serve, _SERVES)
    plain = ExADMM() if model is None else model
    if not isinstance(plain, Model):
        message = f"a target needs a model to fit: {plain!r}"
        raise ConfigError(message, hint="pass one such as ll.ExADMM(factors=64)")
    _refuse_control(plain)
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    grouped = GroupControl(split, goal) if isinstance(goal, GroupGoal) else None
    plain.fit(split.train, show_progress=show_progress, checkpoint=checkpoint)
    if grouped is not None:
        found = grouped.reach(plain, at)
    else:
        found = _reach(plain, split, cast("Goal", goal), at, serve, show_progress=show_progress)
    served, seconds = found["model"], time.perf_counter() - started
    members = grouped.named if grouped is not None else None
    return TargetResult(
        plain=plain,
        at=at,
        validation=compared(served, plain, split.validation, at),
        test=compared(served, plain, split.test, at),
        seconds=seconds,
        exhibit=exhibit_of(found, plain, split, at, groups=members, seconds=seconds),
        **found,
    )


def _reach(
    plain: Model, split: Split, goal: Goal, k: int, serve: Serve, *, show_progress: bool | None
) -> dict[str, Any]:
    """Find what meets a goal at the least loss, and say how."""
    judges = Judges(plain, [split.validation], k)
    dials = _dials(plain, split, judges, serve)
    with progress_bar("search", TRIES * len(dials), show=show_progress) as advance:
        tried, found = _try_all(dials, goal, advance)
        if not found:
            raise _out_of_reach(goal, tried, split, k)
        if goal.is_loss:
            # A loss is a small difference: the same users find other items of theirs as well.
            often = Judges(plain, refolded(split.validation), k)
            finalists = sorted(dials, key=lambda dial: _cost(goal, found[dial.name]))[:_FINALISTS]
            for dial in finalists:
                dial.judges = often
            closer, found = _try_all(finalists, goal, advance, found)
            seen = {one.method for one in closer}
            tried = [*closer, *(one for one in tried if one.method not in seen)]
    best = min(found, key=lambda name: _cost(goal, found[name]))
    [dial] = [dial for dial in dials if dial.name == best]
    strength, met = float(found[best].strength), _is_near(goal, found[best])
    missed = f"The target, {goal}, was not met: no strength comes nearer."
    return {
        "model": dial.at(strength),
        "method": best if strength else "the plain model",
        "strength": strength,
        "met": met,
        "goal": {goal.kind: goal.value},
        "tried": tuple(tried),
        "notes": () if met else (missed,),
    }


def _refuse_control(model: Model) -> None:
    for name in ("exposure_weight", "exposure_strength"):
        if value := getattr(model.config, name, 0):
            message = f"a target finds the exposure weight by itself: {name}={value!r}"
            raise ConfigError(message, hint="leave it out, or leave the target out")


def _dials(plain: Model, split: Split, judges: Judges, serve: Serve) -> list[Control]:
    """List the ways to control, each judged by the validation users."""
    part, ranking, _ = judges.sittings[0]
    law = calibrate(ranking, part.targets, judges.k)
    laws = {"calibrated": law}
    if law.scale == "log":
        # Where few users were held out, one scale for all of them may do better than a fit.
        laws["scores"] = Relevance(score=1, head=0, rank=0, floor=law.floor)
    makers = _makers(plain, split, judges.k, serve)
    dials: list[Control] = [
        RerankDial(f"{name} of {scale}", judges, plain, partial(_made, maker, rule))
        for name, maker in makers.items()
        for scale, rule in laws.items()
    ]
    if isinstance(plain, ExADMM):
        dials.append(ExposureDial(judges, plain, split.train))
    return dials


def _made(maker: Maker, law: Relevance, strength: float) -> Reranker:
    return maker(strength=strength, relevance=law)


def _makers(plain: Model, split: Split, k: int, serve: Serve) -> dict[str, Maker]:
    """Say how a re-ranker of a strength and a law of relevance is made, ready to serve."""
    threads = plain.config.num_threads
    welfares: tuple[WelfareName, ...] = ("log", "power")
    if serve == "batch":
        return {
            f"best response ({name})": partial(BestResponse, welfare=name, num_threads=threads)
            for name in welfares
        }
    known = CandidateRanking(candidates_of(plain.ranking(as_unseen(split.train.matrix, _KNOWN))))

    def warm(**settings: Any) -> Online:
        online: Online = Online(num_threads=threads, **settings)
        return online.warm_up(known, k)

    def priced(**settings: Any) -> Prices:
        method: FrankWolfe = FrankWolfe(num_threads=threads, **settings)
        return method.fit(known, k)

    if serve == "stream":
        return {f"online ({name})": partial(warm, welfare=name) for name in welfares}
    return {"prices": priced}


def _try_all(
    dials: list[Control],
    goal: Goal,
    advance: Callable[[], None],
    before: dict[str, Found] | None = None,
) -> tuple[list[Tried], dict[str, Found]]:
    """Turn every dial until it meets the goal, or cannot; start from what was found before."""
    tried, found = [], {}
    for dial in dials:
        first = (before[dial.name].strength if before else 0.0) or FIRST
        try:
            met = found[dial.name] = meet(dial, goal, first=first, advance=advance)
            near = _is_near(goal, met)
            tried.append(Tried(dial.name, met.strength, *met.measure, met=near))
        except OutOfReachError as error:
            nearest = error.nearest
            tried.append(Tried(dial.name, nearest.strength, *nearest.measure, met=False))
    return tried, found


def _is_near(goal: Goal, met: Found) -> bool:
    """Tell whether a goal is met; a wish that asks for less than the plain model gives, is."""
    return goal.lack(met.measure) <= 0 or goal.miss(met.measure) <= _NEAR


def _cost(goal: Goal, met: Found) -> tuple[float, float]:
    """Return how far a goal is missed, if it is, and then what meeting it costs."""
    missed = 0.0 if _is_near(goal, met) else goal.miss(met.measure)
    return missed, met.measure.gini if goal.is_loss else met.measure.loss


def _out_of_reach(goal: Goal, tried: list[Tried], split: Split, k: int) -> SolveError:
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
