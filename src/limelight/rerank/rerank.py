"""``ll.rerank``: anybody's candidates in, lists that meet a target out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.progress import progress_bar
from limelight._base.seeds import seed_of
from limelight._base.settings import check_choice, check_integer
from limelight._native import resolve_threads
from limelight.data.candidates.candidates import MEMORY, Candidates, aligned_pairs, read_candidates
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.models.base import Model
from limelight.recommend.candidates import candidates_of, leave_out_seen
from limelight.recommend.ranking import CandidateRanking, Ranking
from limelight.rerank.market.pool import Pool
from limelight.rerank.measured import RerankFront, measured
from limelight.rerank.methods import offered
from limelight.rerank.methods.group_shares import GroupShares
from limelight.rerank.relevance import ScoreRelevance, by_scores, calibrate
from limelight.rerank.targets.choice import choose_exponent, choose_variant
from limelight.rerank.targets.controls import (
    BestResponseControl,
    Control,
    PoolControl,
    Resumable,
    SearchContext,
    Watched,
    control_of,
)
from limelight.rerank.targets.groups import check_share
from limelight.rerank.targets.providers import Providers, check_providers, read_providers
from limelight.rerank.targets.search import (
    FIRST,
    MET_WITHIN,
    NEAR,
    STRIDE,
    TRIES,
    Goal,
    as_goal,
    meet,
)
from limelight.store.checkpoint import as_checkpoint

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Int32
    from limelight._base.seeds import RandomState
    from limelight.data.sources import Source
    from limelight.rerank.market.pool import Law
    from limelight.rerank.reranker import Reranked
    from limelight.rerank.result import RerankResult
    from limelight.rerank.targets.groups import Share
    from limelight.rerank.targets.search import Trial
    from limelight.store.checkpoint import Place


_SETTINGS = {"group_cap": "at_most", "group_floor": "at_least", "group_shares": "target"}


class GroupGoal(NamedTuple):
    """What was wished, by its name, and which items the groups have."""

    groups: Source
    wishes: dict[str, Any]


def as_group_goal(
    groups: Source | None, wishes: dict[str, Any], others: dict[str, Any], method: str
) -> GroupGoal | None:
    """Take the wishes that were given for groups; None if there are none.

    Examples
    --------
    >>> as_group_goal("studios.csv", {"group_cap": 0.03}, {"gini": None}, "auto")
    GroupGoal(groups='studios.csv', wishes={'group_cap': 0.03})
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    if not given:
        if groups is not None:
            message = f"groups have no target: {str(groups)[:100]}"
            hint = "give group_cap, group_floor or group_shares; result.group_changes shows gains"
            raise ConfigError(message, hint=hint)
        return None
    if groups is None:
        message = f"{next(iter(given))} needs groups, and none were given"
        raise ConfigError(message, hint="give a table item_id,group[,weight] as groups")
    targets = [*given, *(name for name, value in others.items() if value is not None)]
    if len(targets) > len(given) or ("group_shares" in given and len(given) > 1):
        message = f"give one target, not {len(targets)}: {', '.join(targets)}"
        hint = "only group_cap and group_floor go together; fit_to takes them beside others"
        raise ConfigError(message, hint=hint)
    if method != "auto":
        message = f"groups have a method of their own: {method!r}"
        raise ConfigError(message, hint="leave method out")
    for name in ("group_cap", "group_floor"):
        if name in given and not isinstance(given[name], Mapping):
            check_share(name, given[name])
    return GroupGoal(groups, given)


def group_settings(goal: GroupGoal) -> dict[str, Any]:
    """Return what was wished as settings of ``GroupShares``."""
    return {_SETTINGS[name]: value for name, value in goal.wishes.items()}


def reach_groups(context: SearchContext, goal: GroupGoal, law: Law) -> tuple[Int32, dict[str, Any]]:
    """Return lists with the shares that were wished, or the nearest, and what a result says."""
    pool = context.pool
    members = read_groups(goal.groups, ids_to_arrow(pool.candidates.item_ids))
    method = GroupShares(
        **group_settings(goal),
        relevance=law,
        random_state=context.seed,
        num_threads=context.threads,
    )
    _, found = method.solve(pool, context.k, members)
    outcome = method.outcome_
    shares = sorted(outcome.shares, key=lambda share: share.before - share.after)
    return found.places, {
        "method": "group prices",
        "strength": float(np.abs(found.prices).max(initial=0.0)),
        "goal": goal.wishes,
        "groups": tuple(shares),
        "notes": (*outcome.notes, str(outcome)),
    }


def rerank(  # noqa: PLR0913
    candidates: Source | Candidates | Model | Ranking,
    k: int = 20,
    *,
    gini: float | None = None,
    min_coverage: float | None = None,
    max_relevance_loss: float | None = None,
    min_mmf: float | None = None,
    of: Source | None = None,
    groups: Source | None = None,
    group_cap: Share | None = None,
    group_floor: Share | None = None,
    group_shares: Literal["equal", "catalogue"] | Mapping[Any, float] | None = None,
    method: str = "auto",
    held_out: Source | None = None,
    relevance: Literal["auto", "score"] = "auto",
    history: Source | None = None,
    catalogue: Source | Sequence[Any] | None = None,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
    random_state: RandomState = 0,
    num_threads: int = 0,
    show_progress: bool | None = None,
    checkpoint: Place = None,
) -> RerankResult:
    """Make lists of anybody's candidates that meet a target at the least loss of relevance.

    Parameters
    ----------
    candidates
        ``user_id, item_id, score`` as a file, a folder of parts or a frame; what
        ``read_candidates`` returned; a fitted model, for the users of its training; or a ranking,
        such as ``model.ranking(histories)``, whose users and items have numbers instead of ids.
    k
        Length of the lists.
    gini, min_coverage, max_relevance_loss
        The target, one of them: the Gini index of exposure, the share of the catalogue that lists
        show, or the share of relevance that may be given up.
    min_mmf
        Or the max-min fairness of groups: the share of their exposure that the less exposed half of
        them should have, at most 0.5; it needs ``of``.
    of
        ``item_id, group[, weight]``: providers, or any groups of items, among whom exposure is to
        be shared. Gini index and coverage are then those of groups, and a loss is spent on evenness
        among groups. Items share what their group has about as they did before.
    groups
        ``item_id, group[, weight]``, as for ``ll.audit``, for the targets that follow.
    group_cap, group_floor, group_shares
        Instead of the targets above: the share of all exposure that no group may exceed, the share
        that each should have, or the share of the exposure of items with a group that each is to
        have; as for :class:`~limelight.rerank.methods.group_shares.GroupShares`. If they are out of
        reach, the lists are the nearest that were found, and the last note says so.
    method
        ``auto`` takes best response with the welfare, the order of lists and the thoroughness that
        lose least on a sample of the users; ``best-response``, ``online``, ``prices``,
        ``allocate`` and ``fairrec`` force one, the first three also ``of`` groups.
    held_out
        Pairs ``user_id, item_id`` that users liked and the recommender has not seen. They give
        scores their meaning. Without them the shape of positive scores is taken for it, and of
        scores that may be negative only their order counts.
    relevance
        ``score`` takes scores as they are, such as probabilities; not with ``held_out``.
    history
        Pairs ``user_id, item_id`` that must not be shown.
    catalogue
        All items that could be shown, as for ``ll.audit``. Without it only items that are
        somebody's candidates count.
    memory, folder
        How many bytes of candidates may be held in memory, and where the rest goes.
    random_state
        Seed of all that is drawn, or a NumPy generator that draws one.
    num_threads
        How many threads to use; 0 means all that the process may use.
    show_progress
        Whether to show a progress bar; left out, where standard error is a terminal.
    checkpoint
        A folder to keep every strength in that was tried. The same call goes on from there, to the
        same bits. Delete it once the lists are written.

    Raises
    ------
    DataError
        If the candidates cannot be used.
    SolveError
        If the target is out of reach; the message says how near it is.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.IALS(factors=8, epochs=5).fit(ll.marketplace(600, 100, 9000).interactions)
    >>> result = ll.rerank(model, k=10, gini=0.3)
    >>> round(result.metrics["gini@10"], 1)
    0.3
    """
    started = time.perf_counter()
    wishes = {"group_cap": group_cap, "group_floor": group_floor, "group_shares": group_shares}
    targets = {"gini": gini, "min_coverage": min_coverage, "max_relevance_loss": max_relevance_loss}
    check_choice("method", method, method_names())
    check_providers(of, min_mmf, method)
    if of is not None:
        targets["min_mmf"] = min_mmf
    others = targets | {"evenness of groups": of}
    goal = as_group_goal(groups, wishes, others, method) or as_goal(**targets)
    seed: int = seed_of(random_state)
    check_search(k, method, relevance, seed)
    if relevance == "score" and held_out is not None:
        message = "relevance='score' and held_out exclude each other"
        raise ConfigError(message, hint="held-out pairs say what scores mean")
    _check_names(candidates, held_out=held_out, history=history, groups=groups, of=of)
    room: dict[str, Any] = {"memory": memory, "folder": folder}
    with ExitStack() as stack:
        found = _open(candidates, catalogue, history, room, show_progress=show_progress)
        if found is not candidates:
            stack.enter_context(found)
        check_lengths(int(found.counts.max(initial=0)), k)
        law: Law = ScoreRelevance() if relevance == "score" else by_scores(found)
        if held_out is not None:
            pairs = aligned_pairs(held_out, found, "held-out pairs")
            law = calibrate(CandidateRanking(found), pairs, k, random_state=seed)
        pool = stack.enter_context(Pool(found, law, **room))
        advance = stack.enter_context(progress_bar("rerank", TRIES, show=show_progress))
        context = SearchContext(pool, k, resolve_threads(num_threads), seed)
        if of is not None and isinstance(goal, Goal):
            members = read_providers(of, np.asarray(found.item_ids))
            context = replace(context, providers=Providers(members))
            goal = goal.among(len(members.group_ids))
        if isinstance(goal, GroupGoal):
            places, known = reach_groups(context, goal, law)
        else:
            control, name, start = _control(context, goal, law, method, checkpoint)
            front = RerankFront(pool, k)
            watched = Watched(control, front.see)
            places, known = reach(watched, goal, name, start=start, advance=advance)
            known["front"] = front.points()
        known["catalogue_given"] = found.catalogue_given
        return measured(pool, places, started, providers=context.providers, **known)


def check_search(k: int, method: str, relevance: str, random_state: Any) -> None:
    """Refuse lengths, names and seeds that a search cannot use."""
    check_choice("method", method, method_names())
    check_integer("k", k, least=1)
    check_integer("random_state", random_state, least=0)
    check_choice("relevance", relevance, ("auto", "score"))


def _open(
    source: Source | Candidates | Model | Ranking,
    catalogue: Source | Sequence[Any] | None,
    history: Source | None,
    room: dict[str, Any],
    *,
    show_progress: bool | None,
) -> Candidates:
    """Read candidates, or take them as they are, and leave out what users have seen."""
    if isinstance(source, Model):
        source = model_candidates(source, **room)
    if isinstance(source, (Candidates, Ranking)):
        found = candidates_of(source, **room)
    else:
        found = read_candidates(source, catalogue=catalogue, show_progress=show_progress, **room)
        catalogue = None
    if catalogue is not None:
        message = f"a catalogue was given beside {type(source).__name__}, which has its own"
        raise ConfigError(message, hint="leave it out, or pass a file or a frame of candidates")
    if history is None:
        return found
    return leave_out_seen(found, aligned_pairs(history, found, "history"), **room)


def model_candidates(model: Model | Reranked, **room: Any) -> Candidates:
    """Take the items that a model, before any re-ranker, ranks first for its training users.

    ``room`` has ``memory`` and ``folder``, as for :func:`rerank`.
    """
    return candidates_of(model.ranking(), ids=(model.user_ids, model.item_ids), **room)


def method_names() -> list[str]:
    """Return what ``method`` may be."""
    return ["auto", *offered()]


def _check_names(source: object, **pairs: object) -> None:
    """Refuse pairs of ids beside a ranking, which knows users and items by number only."""
    given = [name for name, value in pairs.items() if value is not None]
    if given and isinstance(source, Ranking) and not isinstance(source, CandidateRanking):
        message = f"{given[0]} has ids, and a ranking knows users and items by number only"
        raise ConfigError(message, hint="pass the model itself, or candidates with ids")


def check_lengths(longest: int, k: int) -> None:
    """Refuse lists that are longer than anybody's candidates."""
    if k > longest:
        message = f"k is larger than the candidates of any user: {k}, they have at most {longest:,}"
        raise DataError(message, hint="give users more candidates, or use a smaller k")


def _control(
    context: SearchContext, goal: Goal, law: Law, method: str, checkpoint: Place
) -> tuple[Control, str, tuple[float, float]]:
    """Return the control of a method, what to call it, and how a search starts.

    Automatic is best response, in the variant that loses least, of groups where they share.
    """
    name, first, stride = method, FIRST, STRIDE
    control: PoolControl
    if context.providers is not None:
        method = "best-response" if method == "auto" else method
        context, first = choose_exponent(context, goal, method, law)
        assert context.providers is not None
        name = f"{method} (groups, exponent {context.providers.exponent:g})"
        control = control_of(method, context)
    elif method == "auto":
        variant, first = choose_variant(context, goal, law)
        name, stride = f"best-response ({variant})", NEAR
        control = BestResponseControl(context, **vars(variant))
    else:
        control = control_of(method, context)
    place = as_checkpoint(checkpoint)
    if place is None:
        return control, name, (first, stride)
    about: dict[str, Any] = {"kind": "a re-ranking", "goal": f"{goal}", "method": name}
    about |= {"k": context.k, "seed": context.seed}
    about["candidates"] = context.pool.fingerprint()
    if context.providers is not None:
        about["groups"] = context.providers.fingerprint()
    return Resumable(control, place, about), name, (first, stride)


def _overshot(goal: Goal, met: Trial) -> tuple[str, ...]:
    """Say that lists are far more even than asked for, if they are."""
    if goal.lack(met.measure) >= -MET_WITHIN:
        return ()
    found = f"a Gini index of {met.measure.gini:.3f}"
    return (f"The lists are more even than asked for, with {found}: no strength comes nearer.",)


def reach(
    control: Control,
    goal: Goal,
    name: str,
    *,
    start: tuple[float, float],
    advance: Callable[[], None],
) -> tuple[Any, dict[str, Any]]:
    """Meet a goal with a control, called ``name``; return the lists, and fields of a result.

    ``start`` has the first strength and the stride; these and ``advance`` are as for ``meet``.
    """
    first, stride = start
    met = meet(control, goal, first=first, stride=stride, advance=advance)
    # A guarantee is a whole number of lists, which seldom meets a goal exactly, so that is no news.
    missed = () if control.whole else goal.notes(met.measure)
    if met.strength and not missed and not control.whole and goal.kind == "gini":
        missed = _overshot(goal, met)
    return met.lists, {
        "method": name,
        "strength": met.strength,
        "goal": goal.asked,
        "notes": (*control.notes(met), *missed),
    }
