"""Lists that meet a target, for more users than one machine holds."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.progress import progress_bar
from limelight.audit.parts import are_apart, digests, join_ids, refuse_repeats
from limelight.data.catalogue import read_catalogue
from limelight.data.files import files_of
from limelight.data.ids import ids_from_arrow
from limelight.jobs.rerank_controls import BestResponseShards, PricesShards, ShardControl
from limelight.jobs.rerank_shards import FromFiles, FromModel, ListItems, Shards, Stage, Sums
from limelight.jobs.service import PER_PIECE, Service
from limelight.metrics.lists import Lists
from limelight.rerank.market.market import OwnListSurvey
from limelight.rerank.measured import ExampleLists, Figures, examples_of, figures, result_of
from limelight.rerank.relevance import ScoreRelevance, by_scores
from limelight.rerank.rerank import check_lengths, check_search, reach
from limelight.rerank.targets.choice import WholePopulation, choose_variant
from limelight.rerank.targets.controls import SearchContext
from limelight.rerank.targets.search import FIRST, NEAR, STRIDE, TRIES, as_goal
from limelight.store.checkpoint import digest_ids
from limelight.store.lists import ListWriter, gather_parts, part_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from limelight._base.executor import Executor
    from limelight.data.interactions import Ids
    from limelight.data.sources import Source
    from limelight.jobs.rerank_shards import Facts, Origin
    from limelight.rerank.result import RerankResult
    from limelight.rerank.targets.search import Goal
    from limelight.store.checkpoint import Checkpoint

_IN_TURN = {
    "online": "serves one user after the other",
    "fairrec": "lets users take turns, item by item",
    "allocate": "moves prices whenever a user chooses",
}
"""Methods that serve users in turn: what one chooses depends on all who chose before."""


@dataclass(frozen=True)
class DigestShard:
    """Digests the ids of a shard's users."""

    shards: Shards
    name = "rerank: users"

    def __call__(self, number: int) -> np.ndarray:
        """Digest the users of a shard."""
        return digests(self.shards.user_ids(number))


class Written(NamedTuple):
    """The figures of a shard's lists, and the lists of some example users before and after."""

    found: Figures
    examples: ExampleLists
    user_ids: Ids
    lists: Lists


@dataclass(frozen=True)
class WriteLists:
    """Writes the lists of a shard as a part, and measures them."""

    shards: Shards
    lists: str
    item_ids: Ids
    name = "rerank: write"

    def __call__(self, number: int) -> Written:
        """Write the lists of a shard; only those of examples go back."""
        user_ids = self.shards.user_ids(number)
        with self.shards.pool(number) as pool:
            places = self.shards.places(pool, self.lists, number)
            with ListWriter(self.shards.folder / part_name(number)) as writer:
                for rows, ids, scores, _ in pool.chosen(places):
                    writer.write(user_ids[rows], self.item_ids, ids, scores)
            examples = examples_of(pool.candidates, self.shards.k)
            lists = pool.lists(places)
            found = figures(pool, places)
        at = examples.rows
        shown = Lists(lists.ids[at], lists.scores[at])
        return Written(found, ExampleLists(np.arange(len(at)), examples.own), user_ids[at], shown)


def rerank(  # noqa: PLR0913
    source: Path,
    output: Path,
    *,
    executor: Executor,
    checkpoint: Checkpoint,
    k: int = 20,
    gini: float | None = None,
    min_coverage: float | None = None,
    max_relevance_loss: float | None = None,
    method: str = "auto",
    relevance: str = "auto",
    catalogue: Source | None = None,
    memory: int = 1 << 30,
    random_state: int = 0,
    num_threads: int = 1,
    per_shard: int = PER_PIECE,
) -> RerankResult:
    """Write a folder of lists that meet a target at the least loss of relevance.

    Parameters
    ----------
    source
        A model folder, for the users of its training, or a folder of candidates
        ``user_id, item_id, score``, in which all rows of a user are in one file.
    output
        The folder for the lists.
    executor
        Does the work.
    checkpoint
        Where candidates and lists are kept while strengths are tried, on the disk of the output.
    k, gini, min_coverage, max_relevance_loss, relevance, catalogue, memory, random_state
        As for :func:`limelight.rerank`.
    method
        ``best-response``, ``prices``, or ``auto``, which tries variants on the first shard.
    num_threads
        How many threads a piece may use.
    per_shard
        How many users of a model are a shard.

    Returns
    -------
    RerankResult
        Whose lists are those of some examples; all are in the folder.
    """
    started = time.perf_counter()
    goal = as_goal(gini=gini, min_coverage=min_coverage, max_relevance_loss=max_relevance_loss)
    check_search(k, method, relevance, random_state)
    if method in _IN_TURN:
        message = f"{method} {_IN_TURN[method]}, so it cannot be done in pieces"
        raise ConfigError(message, hint="use best-response or prices, or leave --executor out")
    origin = _origin(executor, source, catalogue, per_shard, num_threads)
    about = {
        "kind": "a re-ranking in pieces",
        "source": [
            [file.name, file.stat().st_size, file.stat().st_mtime_ns]
            for file in files_of(source.resolve())
        ],
        "goal": f"{goal}",
        "settings": [k, method, relevance, random_state, per_shard],
        "items": digest_ids(origin.item_ids),
    }
    if checkpoint.load(about) is None:
        checkpoint.save({}, {})
    law = ScoreRelevance()
    shards = Shards(checkpoint.path, len(origin.item_ids), k, law, memory, num_threads)
    if relevance == "auto":
        # The users of the first shard tell what scores are like.
        Stage(shards, origin).make(0)
        shards = replace(shards, law=by_scores(shards.candidates(0)))
    facts = _stage(executor, shards, origin)
    control, name, start = _control(executor, shards, facts, goal, method, random_state)
    with progress_bar("rerank", TRIES) as advance:
        lists, known = reach(control, goal, name, start=start, advance=advance)
    work, numbers = WriteLists(shards, lists, origin.item_ids), range(len(facts))
    written = list(executor.map(work, numbers, len(facts)))
    gather_parts(output, [shards.folder / part_name(number) for number in numbers])
    return result_of(
        Figures.total([part.found for part in written]),
        written[0].examples,
        lists=written[0].lists,
        user_ids=written[0].user_ids,
        item_ids=origin.item_ids,
        catalogue_given=catalogue is not None or isinstance(origin, FromModel),
        seconds=time.perf_counter() - started,
        **known,
    )


def _origin(
    executor: Executor, source: Path, catalogue: Source | None, per_shard: int, threads: int
) -> Origin:
    if (source / "config.json").is_file():
        found = Service(source.resolve(), 0).open()
        service = Service(source.resolve(), len(found.user_ids), threads=threads)
        n_shards = math.ceil(service.n_users / per_shard)
        return FromModel(n_shards, found.item_ids, service, per_shard)
    files = files_of(source.resolve())
    if catalogue is not None:
        item_ids: pa.Array = read_catalogue(catalogue)[0]
    else:
        item_ids = join_ids(list(executor.map(ListItems(), files, len(files))))
    return FromFiles(len(files), ids_from_arrow(item_ids), tuple(files))


def _stage(executor: Executor, shards: Shards, origin: Origin) -> list[Facts]:
    """Make the candidates of all shards, and refuse those that cannot be used."""
    numbers = range(origin.n_shards)
    facts = list(executor.map(Stage(shards, origin), numbers, origin.n_shards))
    check_lengths(max(fact.longest for fact in facts), shards.k)
    if not are_apart([fact.users for fact in facts]):
        refuse_repeats(executor.map(DigestShard(shards), numbers, origin.n_shards))
    return facts


def _control(
    executor: Executor, shards: Shards, facts: Sequence[Facts], goal: Goal, method: str, seed: int
) -> tuple[ShardControl, str, tuple[float, float]]:
    """Return the control of a method, what to call it, and how a search starts."""
    own = functools.reduce(Sums.plus, (fact.own for fact in facts))
    places, n_users = sum(fact.places for fact in facts), sum(fact.n_users for fact in facts)
    unit = own.relevance / places if places else 1.0
    survey = OwnListSurvey(unit, places / max(n_users, 1), np.zeros(shards.n_items))
    if method == "prices":
        return PricesShards(executor, shards, facts, survey, seed), method, (FIRST, STRIDE)
    control = BestResponseShards(executor, shards, facts, survey, seed)
    if method != "auto":
        return control, method, (FIRST, STRIDE)
    with shards.pool(0) as pool:
        context = SearchContext(pool, shards.k, shards.threads, seed)
        everybody = WholePopulation(n_users, control.try_at(0.0).measure)
        control.variant, first = choose_variant(
            context, goal, shards.law, everybody, thorough=False
        )
    return control, f"best-response ({control.variant})", (first, NEAR)
