"""Arenas of the bench of re-rankers: made of data sets by a fit, or of anybody's candidates."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from limelight._base.errors import ConfigError, DataError
from limelight.control.population import as_population, sitting_of
from limelight.data.candidates.candidates import Candidates, aligned_pairs, read_candidates
from limelight.data.candidates.storage import MemoryArray, PairRows
from limelight.data.groups import read_groups
from limelight.data.held_out import HeldOut, as_unseen
from limelight.data.split import Split, split_users
from limelight.lab.bench.providers import evenness, providers_of, score_ndcg, utilities
from limelight.lab.bench.rerankers import Arena
from limelight.metrics import exposure
from limelight.models import IALS
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking
from limelight.report.exhibit import measure_lists
from limelight.rerank.relevance import ScoreRelevance, calibrate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from limelight._base.arrays import Int64
    from limelight.data.interactions import Interactions
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.recommend.ranking import Ranking

K = 20
_KNOWN = 10_000
"""How many training users, at most, warm up beside the held-out users."""


@dataclass(frozen=True)
class Protocol:
    """Whose exposure counts, and whose lists are measured."""

    kind: Literal["paper", "served"] = "paper"
    """Held-out users alone, or within all users who are served."""
    part: Literal["validation", "test"] = "test"
    """Who is measured. Settings are chosen on validation users."""
    k: int = K


def bench_split(data: Interactions, validation: int, test: int, protocol: Protocol) -> Split:
    """Hold users out: those of ``validation`` calibrate, those of ``test`` are measured.

    Where validation users are measured, others take their place, who then do not train: as many,
    or a quarter of the training users if these are fewer. Test users are left out of it.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 50, 5000).interactions
    >>> split = bench_split(data, 40, 60, Protocol(part="validation"))
    >>> split.train.n_users, split.validation.n_users, split.test.n_users
    (160, 40, 40)
    """
    if protocol.part == "test":
        return split_users(data, validation=validation, test=test)
    others = min(validation, max(1, (data.n_users - validation - test) // 4))
    # Users are shuffled and the last ones are held out, so that the last of more users are the
    # validation users.
    found = split_users(data, validation=others + validation, test=test)
    first, second = np.split(np.arange(others + validation), [others])
    held_out = found.validation
    return replace(found, validation=held_out.take(first), test=held_out.take(second))


@contextmanager
def fitted_arena(
    split: Split, settings: dict[str, Any], seed: int, protocol: Protocol
) -> Iterator[Arena]:
    """Fit iALS, calibrate on validation users, and serve test users, alone or among all."""
    k = protocol.k
    model = IALS(**settings, random_state=seed).fit(split.train, show_progress=False)
    past = split.validation
    popularity = split.train.matrix.getnnz(axis=0)
    law = calibrate(model.ranking(past.history), past.targets, k, popularity=popularity)
    training = as_unseen(split.train.matrix, _KNOWN)
    known = model.ranking(sparse.vstack([past.history, training], format="csr"))
    with ExitStack() as stack:
        ranking, rows = _who_is_served(model, split, protocol, stack)
        served = stack.enter_context(candidates_of(ranking))

        def measure(lists: Lists) -> tuple[float, float, dict[str, float]]:
            own = lists.ids if rows is None else lists.ids[rows]
            everybody = None if rows is None else lists.ids
            _, found = measure_lists(own, split.test, k, everybody=everybody)
            return found[f"ndcg@{k}"], found[f"gini@{k}"], {}

        kept = stack.enter_context(candidates_of(known))
        yield Arena(ranking, served, k, law, measure, kept, seed=seed)


def _who_is_served(
    model: Model, split: Split, protocol: Protocol, stack: ExitStack
) -> tuple[Ranking, Int64 | None]:
    """Return what those who are served rank, and the rows of those who are measured."""
    if protocol.kind == "paper":
        return model.ranking(split.test.history), None
    everyone = as_population("everyone", split)
    sitting = sitting_of(everyone, split, lambda: model, protocol.k, parts=("test",))
    stack.callback(sitting.close)
    return sitting.users.ranking, sitting.parts["test"].rows


@contextmanager
def table_arena(
    candidates: Path, groups: Path | None, held_out: Path | None, protocol: Protocol
) -> Iterator[Arena]:
    """Serve the users of a table of candidates.

    Without held-out pairs accuracy is the nDCG against the scores themselves, which then are the
    relevance. With them, one half of the users calibrates and the other is measured. With groups,
    exposure is that of providers, as FairDiverse measures it.
    """
    if protocol.kind == "served" and held_out is None:
        message = "without held-out pairs all users are measured, so there is one protocol"
        raise ConfigError(message, hint="leave --protocol out, or give --held-out")
    with read_candidates(candidates) as found:
        _check_width(found, protocol.k)
        pairs = None if held_out is None else aligned_pairs(held_out, found, "held-out pairs")
        arena = _scored(found, protocol) if pairs is None else _found(found, pairs, protocol)
        if groups is not None:
            arena = _among_providers(arena, providers_of(*_members(groups, found)))
        yield arena


def _check_width(candidates: Candidates, k: int) -> None:
    fewest = int(candidates.counts.min(initial=k))
    if fewest < k:
        message = f"a user has {fewest:,} candidates, fewer than the {k:,} places of a list"
        raise DataError(message, hint=f"use -k {fewest} or less, or give users more candidates")


def _members(groups: Path, candidates: Candidates) -> tuple[Any, int]:
    return read_groups(groups, candidates.item_ids), candidates.n_items


def _scored(candidates: Candidates, protocol: Protocol) -> Arena:
    ranking, k = CandidateRanking(candidates), protocol.k
    own = ranking.top(np.arange(ranking.n_users), k)

    def measure(lists: Lists) -> tuple[float, float, dict[str, float]]:
        given = exposure.exposure(lists.ids, candidates.n_items)
        return score_ndcg(lists, own, k), exposure.gini(given), {}

    return Arena(ranking, candidates, k, ScoreRelevance(), measure)


def _found(candidates: Candidates, pairs: Any, protocol: Protocol) -> Arena:
    k, shuffled = protocol.k, np.random.default_rng(0).permutation(candidates.n_users)
    past, rows = (np.sort(half) for half in np.array_split(shuffled, 2))
    if not (pairs[past].nnz and pairs[rows].nnz):
        message = "too few held-out pairs: one half of the users calibrates, the other is measured"
        raise DataError(message, hint="hold out items of more users")
    known = _of_users(candidates, past)
    law = calibrate(CandidateRanking(known), pairs[past], k)
    alone = protocol.kind == "paper"
    served = _of_users(candidates, rows) if alone else candidates
    part = HeldOut(pairs[rows], pairs[rows], np.asarray(candidates.user_ids)[rows])

    def measure(lists: Lists) -> tuple[float, float, dict[str, float]]:
        own, everybody = (lists.ids, None) if alone else (lists.ids[rows], lists.ids)
        _, found = measure_lists(own, part, k, everybody=everybody)
        return found[f"ndcg@{k}"], found[f"gini@{k}"], {}

    return Arena(CandidateRanking(served), served, k, law, measure, known)


def _of_users(candidates: Candidates, users: Int64) -> Candidates:
    """Return the candidates of some users, in memory."""
    indptr, items, scores = candidates.take(users)
    rows = PairRows(MemoryArray(items), MemoryArray(scores))
    return Candidates(indptr, rows, np.asarray(candidates.user_ids)[users], candidates.item_ids)


def _among_providers(arena: Arena, providers: Int64) -> Arena:
    """Measure how evenly providers are treated, instead of items."""
    accuracy = arena.measure

    def measure(lists: Lists) -> tuple[float, float, dict[str, float]]:
        figures = evenness(utilities(lists, providers))
        return accuracy(lists)[0], figures.pop("gini"), figures

    return replace(arena, measure=measure, providers=providers)
