"""``ll.fit_to``: a wish in, a model that meets it out."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limelight._base.errors import ConfigError, SolveError
from limelight._base.settings import check_choice, check_integer
from limelight._base.text import percent
from limelight.control.decide import Search, decide
from limelight.control.group_target import GroupTarget
from limelight.control.population import as_population, sitting_of
from limelight.control.served import Everybody, refit
from limelight.control.target_lists import BothLists, ShownTarget
from limelight.control.target_result import TargetResult, TriedMethod
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.data.interactions import as_interactions
from limelight.data.split import Split, as_split
from limelight.metrics.exposure import gini_floor
from limelight.models.base import Model
from limelight.models.exadmm import ExADMM
from limelight.rerank.rerank import as_group_goal
from limelight.rerank.targets.providers import as_providers
from limelight.rerank.targets.search import MET_WITHIN, Goal, JointGoal, OutOfReachError, as_goals
from limelight.rerank.targets.serving import SERVES, Serve

if TYPE_CHECKING:
    from limelight.control.decide import Decision
    from limelight.control.population import For, Sitting, TargetPopulation
    from limelight.control.served import Confirmed
    from limelight.data.groups import Groups
    from limelight.data.interactions import Interactions
    from limelight.data.sources import Source
    from limelight.rerank.rerank import GroupGoal
    from limelight.rerank.targets.groups import Share
    from limelight.rerank.targets.providers import ProvidersOf
    from limelight.store.checkpoint import Place


_HELD_OUT = ("validation", "test")


def fit_to(  # noqa: PLR0913
    data: Any,
    *,
    gini: float | None = None,
    max_ndcg_loss: float | None = None,
    min_coverage: float | None = None,
    min_mmf: float | None = None,
    of: Source | None = None,
    groups: Source | None = None,
    group_cap: Share | None = None,
    group_floor: Share | None = None,
    group_shares: Literal["equal", "catalogue", "interactions"] | Share | None = None,
    at: int = 20,
    population: For = "everyone",
    model: Model | None = None,
    serve: Serve = "batch",
    keep_held_out: bool = False,
    nearest: bool = False,
    show_progress: bool | None = None,
    checkpoint: Place = None,
) -> TargetResult:
    """Fit a model, and find the control that meets a target at the least loss of accuracy.

    A target speaks of the people who are served: exposure is that of the lists of all users of the
    data, unless told otherwise. Control is tried in training, by its exposure strength, and
    afterwards, by re-ranking what the model likes best. Held-out users are served among all others.
    Those of validation decide by what they find; test users, who had no part in that,
    say what it costs. Then the model is fitted to everybody, held-out users as well, and the
    strength is confirmed over everybody's lists. What comes out knows the population, and serves
    one user, a hundred or all of them as a part of it.

    Parameters
    ----------
    data
        A split, or interactions: then a tenth of the users, at most 5,000, are held out for
        validation, and as many for the test.
    gini, max_ndcg_loss, min_coverage
        The target, one of them or several at once: the Gini index of exposure, at most; the share
        of nDCG that may be given up, alone for as even an exposure as that buys; or the share of
        the catalogue that lists show, at least.
    min_mmf, of
        ``of`` is a table ``item_id, group[, weight]`` of providers, or any groups of items, among
        whom exposure is to be shared. Gini index and coverage are then those of groups; so is
        ``min_mmf``, the share of their exposure that the less exposed half of the groups should
        have, at most 0.5. Items share what their group has about as they did before.
    groups, group_cap, group_floor, group_shares
        Or, alone or beside the others, a target for groups of items, a table ``item_id, group[,
        weight]``: the share of all exposure that none may exceed, or each should have, or the share
        of each, as for ``ll.GroupShares``. Alone, it serves batch, stream and machines alike.
        ``groups`` without a wish of their own are shown beside another target.
    at
        Length of the lists that the target speaks of.
    population
        Whose lists it speaks of: "everyone"; a number, of lists a period; a table ``user_id``, or
        ids, of the users who are served; or "held-out", for the published protocol: validation and
        test users each alone, as if nobody else were served. Then nothing is fitted again.
    model
        What to fit; ``ExADMM()`` unless given. Only ExADMM and EASE can be controlled in training.
    serve
        How users will be served: many together (``batch``), one after the other (``stream``), or
        by machines that share nothing (``stateless``).
    keep_held_out
        Whether to leave held-out users out of the model, so that they can test it later.
    nearest
        Whether to return the nearest that was found where the target is out of reach.
    show_progress
        Whether to show a progress bar; left out, where standard error is a terminal.
    checkpoint
        Where the fit of the plain model keeps its state, and goes on from, as for ``fit``.

    Raises
    ------
    SolveError
        If the target is out of reach; the message says how near each method came. What so many
        lists cannot reach, however they are filled, is refused before the fit.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(2000, 200, 40_000).interactions
    >>> result = ll.fit_to(data, gini=0.4, at=10, model=ll.ExADMM(factors=8, epochs=20))
    >>> abs(result.served["gini@10"] - 0.4) < 0.01
    True
    >>> ids, scores = result.model.recommend(k=10)
    >>> ids.shape
    (2000, 10)
    """
    clock = _Clock()
    wishes = {"gini": gini, "max_ndcg_loss": max_ndcg_loss, "min_coverage": min_coverage}
    providers = as_providers(of, min_mmf)
    shares = {"group_cap": group_cap, "group_floor": group_floor, "group_shares": group_shares}
    for_groups = _group_goal(groups, shares, (*wishes.values(), min_mmf))
    goal = _goal_of(wishes | {"min_mmf": min_mmf}, alone=for_groups is None or of is not None)
    check_choice("serve", serve, SERVES)
    plain = ExADMM() if model is None else model
    if not isinstance(plain, Model):
        message = f"a target needs a model to fit: {plain!r}"
        raise ConfigError(message, hint="pass one such as ll.ExADMM(factors=64)")
    _refuse_control(plain)
    whole = _whole(data)
    check_integer("at", at, least=1)
    goal = _among(goal, providers, whole)
    _check_together(serve, for_groups, goal)
    if goal is not None and isinstance(population, str) and population == "everyone":
        _refuse_unreachable(goal, *_size_of(whole), at)
    split = as_split(whole)
    check_integer("at", at, least=1, most=split.train.n_items)
    people = as_population(population, split)
    if goal is not None:
        _refuse_unreachable(goal, people.n_distinct, split.train.n_items, at)
    grouped = None if for_groups is None else GroupTarget(split, for_groups)
    named = grouped.named if grouped else _read_named(groups, split)
    plain.fit(split.train, show_progress=show_progress, checkpoint=checkpoint)
    clock.lap("fit")

    def decide_for(sitting: Sitting, *, nearest: bool) -> Decision:
        if grouped is not None and providers is None and (goal is None or goal.is_loss):
            return grouped.decide(plain, sitting, goal, nearest=nearest)
        assert goal is not None
        wished = None if grouped is None else grouped.groups_of
        search = Search(serve, wished, providers, nearest=nearest, show_progress=show_progress)
        return decide(plain, split, sitting, goal, search)

    parts = ("validation",) if people.held_out_alone else _HELD_OUT
    with closing(sitting_of(people, split, lambda: plain, at, parts, providers)) as sitting:
        decision = _widening(decide_for, sitting, nearest=nearest)
        validation = BothLists(sitting, "validation", sitting.own, decision.lists)
        test = validation._replace(name="test")
        if people.held_out_alone:
            with closing(
                sitting_of(people, split, lambda: plain, at, ("test",), providers)
            ) as others:
                test = BothLists(others, "test", others.own, decision.lists_of(others))
    clock.lap("search")
    everybody = _everybody(plain, split, whole, people, at, keep=keep_held_out).with_providers(
        providers
    )
    clock.lap("fit to everybody")
    confirmed = decision.confirm(everybody, adjust=not people.held_out_alone)
    clock.lap("lists for everybody")
    if goal is not None and not (confirmed.met or nearest):
        raise _missed_by_all(goal, everybody, confirmed)
    result = TargetResult(
        model=confirmed.model,
        plain=everybody.model,
        at=at,
        method=decision.method,
        strength=confirmed.strength,
        met=decision.met and confirmed.met,
        goal=decision.goal | ({} if for_groups is None else for_groups.wishes),
        validation=validation.figures(),
        test=test.figures(),
        served=everybody.figures(confirmed),
        population=str(people),
        groups=confirmed.groups or test.group_shares(named),
        tried=decision.tried,
        front=decision.front,
        weaker=() if people.held_out_alone else _weaker(decision, test),
        notes=(
            *decision.notes,
            *_search_notes(people, sitting, decision, everybody, confirmed),
            *confirmed.notes,
        ),
        others=decision.others,
        seconds=clock.seconds,
        stages=clock.stages,
        shown=ShownTarget(split, test, named),
    )
    result.model.promise = result.promise()
    return result


def _widening(decide_for: Any, sitting: Sitting, *, nearest: bool) -> Decision:
    """Decide; where the target is out of reach, give users more candidates and decide again."""
    while True:
        try:
            decision: Decision = decide_for(sitting, nearest=nearest)
        except OutOfReachError:
            if not sitting.widen():
                raise
        else:
            if decision.met or not sitting.widen():
                return decision


def _missed_by_all(goal: Goal, everybody: Everybody, confirmed: Confirmed) -> SolveError:
    """Say how near everybody's lists come."""
    gini, coverage, *_ = confirmed.now
    more = ""
    if found := confirmed.providers:
        gini, coverage = (found[f"group_{name}@{everybody.k}"] for name in ("gini", "coverage"))
        more = f" and an MMF of {percent(found[f'group_mmf@{everybody.k}'])}"
    message = (
        f"out of reach: {goal} over {len(everybody.rows):,} users' lists; they came to a Gini "
        f"index of {gini:.3f} and a coverage of {percent(coverage)}{more}"
    )
    hint = "weaken the target, or keep the nearest: nearest=True, --nearest"
    return SolveError(message, hint=hint)


def _everybody(
    plain: Model,
    split: Split,
    whole: Interactions | Split,
    people: TargetPopulation,
    k: int,
    *,
    keep: bool,
) -> Everybody:
    """Fit the model to everybody, from where it is, unless held-out users are to be kept out."""
    if keep or people.held_out_alone:
        rows = people.rows[people.rows < split.train.n_users]
        if people.held_out_alone or not len(rows):
            rows = np.arange(split.train.n_users)
        # So many lists a period remain so many. Of everybody, held-out users get none.
        n_lists = people.n_lists if people.n_lists > len(people.rows) else len(rows)
        return Everybody.of(plain, split.train, split.train.user_ids[rows], n_lists, k)
    data = split.everybody() if isinstance(whole, Split) else whole
    return Everybody.of(refit(plain, data), data, people.ids(split), people.n_lists, k)


def _check_together(serve: Serve, for_groups: GroupGoal | None, goal: Goal | None) -> None:
    """Refuse shares of groups beside a goal where machines share nothing."""
    if for_groups and goal and serve == "stateless" and (goal.n_groups or not goal.is_loss):
        message = f"shares of groups beside {goal} are not met by machines that share nothing"
        raise ConfigError(message, hint="serve a batch or a stream, or give one target")


def _among(
    goal: Goal | None, providers: ProvidersOf | None, data: Interactions | Split
) -> Goal | None:
    """Return a goal for the exposure of providers, if these are to share it."""
    if goal is None or providers is None:
        return goal
    ids = data.train.item_ids if isinstance(data, Split) else data.item_ids
    return goal.among(len(providers(ids).members.group_ids))


class _Clock:
    """The seconds of each stage."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self.stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.stages[stage], self._last = now - self._last, now

    @property
    def seconds(self) -> float:
        """All stages together."""
        return self._last - self._started


def _goal_of(wishes: dict[str, float | None], *, alone: bool) -> Goal | None:
    """Take the wishes together; one for exposure is followed, within the loss that is allowed."""
    goals = as_goals(**wishes)
    if not goals and not alone:
        return None
    if not goals:
        message = "there is no target: none was given"
        raise ConfigError(message, hint=f"give one of: {', '.join(wishes)}, or shares of groups")
    return goals[0] if len(goals) == 1 else JointGoal.of(goals)


def _whole(data: Any) -> Split | Interactions:
    if not isinstance(data, Split):
        return as_interactions(data)
    data.refuse_shared_users()
    return data


def _refuse_control(model: Model) -> None:
    for name in ("exposure_weight", "exposure_strength"):
        if value := getattr(model.config, name, 0):
            message = f"a target finds the exposure weight by itself: {name}={value!r}"
            raise ConfigError(message, hint="leave it out, or leave the target out")


def _size_of(data: Interactions | Split) -> tuple[int, int]:
    """Return how many users and items there are, before anybody is held out."""
    if not isinstance(data, Split):
        return data.n_users, data.n_items
    parts = data.train, data.validation, data.test
    return sum(part.n_users for part in parts), data.train.n_items


def _refuse_unreachable(goal: Goal, n_lists: int, n_items: int, k: int) -> None:
    """Refuse what so many lists cannot reach, however they are filled, before a fit."""
    if goal.n_groups:
        return  # lists may show many items of one group, so that groups have hardly any floor
    k = min(k, n_items)
    floor, shown = gini_floor(n_lists, k, n_items), min(1.0, n_lists * k / n_items)
    for wish in goal.wishes:
        too_even = wish.kind == "gini" and wish.value < floor - MET_WITHIN
        if too_even or (wish.kind == "min_coverage" and wish.value > shown + MET_WITHIN):
            message = (
                f"out of reach: {wish} over {n_lists:,} users' lists; no lists of {k} for so many "
                f"users go below a Gini index of {floor:.3f}, nor show more than "
                f"{percent(shown)} of {n_items:,} items"
            )
            raise SolveError(message, hint="weaken the target, or make lists longer")


def _weaker(decision: Decision, test: BothLists) -> tuple[TriedMethod, ...]:
    """Say what a little less control gives, and what test users lose by it."""
    found = []
    for strength, measure, lists in decision.weaker:
        loss = test._replace(now=lists.ids).loss()
        found.append(TriedMethod(decision.method, strength, *measure[:2], loss, met=False))
    return tuple(found)


def _group_goal(
    groups: Source | None, shares: dict[str, Any], others: tuple[float | None, ...]
) -> GroupGoal | None:
    """Take the wishes for groups; without one, groups are only shown beside another target."""
    has_wish = any(share is not None for share in shares.values())
    if not has_wish and any(other is not None for other in others):
        return None
    return as_group_goal(groups, shares, {}, "auto")


def _read_named(groups: Source | None, split: Split) -> Groups | None:
    return None if groups is None else read_groups(groups, ids_to_arrow(split.train.item_ids))


def _search_notes(
    people: TargetPopulation,
    sitting: Sitting,
    decision: Decision,
    everybody: Everybody,
    confirmed: Confirmed,
) -> list[str]:
    """Say with how many users and items the search was done, and what that changed, if not all."""
    notes, searched, n_items = [], sitting.users.n_users, len(everybody.model.item_ids)
    of = "" if sitting.providers is None else " of groups"
    if searched < people.n_distinct and not people.held_out_alone:
        notes.append(
            f"The strength was searched for with {searched:,} of {people.n_distinct:,} users: at "
            f"{decision.strength:.4g} their lists had a Gini index{of} of {decision.gini:.3f}. "
            f"For all users the strength is {confirmed.strength:.4g}."
        )
    if sitting.n_items < n_items:
        notes.append(
            f"Figures of held-out users are over the {sitting.n_items:,} items of training users."
        )
    if decision.met and not confirmed.met:
        reached = confirmed.providers.get(f"group_gini@{everybody.k}", confirmed.now.gini)
        notes.append(f"The target was missed over all users: the Gini is {reached:.3f}.")
    return notes
