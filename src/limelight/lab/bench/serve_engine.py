"""What one request costs an engine: beside a bare matrix-vector product, and by catalogue.

``python -m limelight.lab.bench.serve_engine`` prints JSON. Times are of the processor, medians of
rounds in which all take turns. With ``--requests`` it also compares that many random searches with
and without a first pass, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._native import kernels, use_variant, variant
from limelight.lab.bench.timing import CLOCKS, Candidate, calls_for, held_to, take_turns
from limelight.models.ials import IALS
from limelight.recommend.index import LEAST_ITEMS
from limelight.recommend.ranking import empty_lists
from limelight.rerank.relevance import ScoreRelevance
from limelight.serve import Engine, Ledger, Request, RequestControl
from limelight.serve.control import ControlConfig
from limelight.solve.problem import sparse_rows
from limelight.solve.state import pad_factors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from limelight._base.arrays import Float32, Int32
    from limelight._native._kernels import Catalogue, Csr

_USERS = 1000
_VARIETY = 256
"""So many requests are made before the first comes again."""
LISTED, _CANDIDATES = 20, 500
CATALOGUES = 10_000, 1_000_000
"""Over which a choice among the same number of candidates must cost the same."""


def made_up_model(n_items: int, factors: int, seed: int = 0) -> IALS:
    """Make a model of random vectors, as if it were fitted.

    Items differ in length, as those of a fit do by their popularity.

    Examples
    --------
    >>> made_up_model(50, 8)
    IALS(factors=8, regularization=0.01, unobserved_weight=0.1) fitted to 1,000 users x 50 items
    """
    generator = np.random.default_rng(seed)
    items = generator.standard_normal((n_items, factors), dtype=np.float32)
    items *= 0.1 * generator.gamma(2.0, 0.5, (n_items, 1)).astype(np.float32)
    users = generator.standard_normal((_USERS, factors), dtype=np.float32)
    model: IALS = IALS(factors=factors, regularization=0.01, unobserved_weight=0.1)
    model.restore(
        arrays={
            "user_factors": users,
            "item_factors": items,
            "mean_user": users.mean(axis=0, dtype=np.float64),
            "dual": np.zeros(factors),
        },
        user_ids=np.arange(_USERS),
        item_ids=np.arange(n_items),
        fingerprint="made up",
        seen=sparse_rows(np.arange(_USERS + 1), generator.integers(0, n_items, _USERS), n_items),
    )
    return model


def request_costs(
    *, n_items: int, factors: int, history: int, candidates: int, rounds: int
) -> dict[str, Any]:
    """Measure one request of an unseen user, and the product of her vector with all items.

    With ``candidates`` there is control, which chooses from so many and counts what it chose.
    """
    model = made_up_model(n_items, factors)
    items, user = model.item_factors, model.user_factors[0]
    generator = np.random.default_rng(1)
    asked = [
        Request(history=generator.choice(n_items, history, replace=False).tolist())
        for _ in range(_VARIETY)
    ]
    runs: dict[str, Callable[[], object]] = {"bare product": lambda: items @ user}
    for name, first_pass in (("without first pass", False), ("with first pass", True)):
        control = _control(n_items) if candidates else None
        settings: dict[str, Any] = {"n_candidates": candidates} if candidates else {}
        engine = Engine(model, k=LISTED, control=control, first_pass=first_pass, **settings)
        runs[name] = _answering(engine, asked, Ledger(n_items, window=3600.0))
    spent = _medians(runs, rounds)
    bare = spent.pop("bare product")
    return {
        "items": n_items,
        "factors": factors,
        "history": history,
        "k": LISTED,
        "candidates": candidates,
        "cpu_ms": {name: _milliseconds(t) for name, t in ({"bare product": bare} | spent).items()},
        "times_the_product": {name: round(seconds / bare, 3) for name, seconds in spent.items()},
    }


def _answering(engine: Engine, asked: Sequence[Request], ledger: Ledger) -> Callable[[], object]:
    turns, counted = cycle(asked), None if engine.control is None else ledger
    return lambda: engine.answer([next(turns)], counted)


def _control(n_items: int) -> RequestControl:
    config = ControlConfig(n_items=n_items, law=ScoreRelevance(), unit=0.5, length=LISTED)
    return RequestControl(config, strength=0.5)


def _milliseconds(seconds: float) -> float:
    return round(1e3 * seconds, 4)


def control_costs(*, rounds: int) -> dict[str, Any]:
    """Measure a choice among candidates and its count in the ledger, over two catalogues."""
    spent = _medians({f"{n:,} items": _choosing(n) for n in CATALOGUES}, rounds)
    small, large = spent.values()
    return {
        "candidates": _CANDIDATES,
        "k": LISTED,
        "cpu_ms": {name: _milliseconds(seconds) for name, seconds in spent.items()},
        "large_over_small": round(large / small, 3),
    }


def _choosing(n_items: int) -> Callable[[], object]:
    control, ledger = _control(n_items), Ledger(n_items, window=3600.0)
    generator = np.random.default_rng(0)
    # More numbers than caches hold: what a request finds there must not decide.
    turns = cycle(
        [
            (
                generator.choice(n_items, _CANDIDATES, replace=False).astype(np.int32),
                -np.sort(-generator.random(_CANDIDATES, dtype=np.float32)),
            )
            for _ in range(8 * _VARIETY)
        ]
    )

    def choose() -> None:
        items, scores = next(turns)
        choice = control.choose(items, scores, LISTED, ledger)
        shown = items[choice.places]
        ledger.count(shown, time=1.0, plain=choice.plain, shown=choice.shown)

    return choose


def _medians(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    candidates = [Candidate(name, run, calls=calls_for(run)) for name, run in runs.items()]
    entries = take_turns(candidates, rounds=rounds, clock=CLOCKS["cpu"])
    return {entry.who: float(np.median(entry.rounds)) for entry in entries}


class Searches(NamedTuple):
    """Some random users who are looked up in one random catalogue."""

    items: Float32
    users: Float32
    hidden: Csr | None
    k: int


def random_searches(generator: np.random.Generator, n_users: int) -> Searches:
    """Draw a catalogue and users: of any width, with ties, with items of any length."""
    n_items, width = int(generator.integers(LEAST_ITEMS, 20_000)), int(generator.integers(2, 97))
    items, users = (
        generator.standard_normal((n, width), dtype=np.float32) for n in (n_items, n_users)
    )
    # Coarse numbers are exact in sums of 32 bits, so that many scores are equal.
    levels = generator.choice([0, 1, 2, 16])
    if levels:
        items, users = np.rint(levels * items) / levels, np.rint(levels * users) / levels
    else:
        items *= generator.lognormal(0, generator.uniform(0, 2), (n_items, 1)).astype(np.float32)
    if generator.random() < 0.5:  # items that are there twice
        items = items[generator.integers(0, n_items, n_items)]
    hidden = None
    if generator.random() < 0.7:
        hidden = _hidden(generator, n_users, n_items)
    k = int(generator.choice([1, 5, 20, 40, 100]))
    return Searches(items.astype(np.float32), users.astype(np.float32), hidden, k)


def _hidden(generator: np.random.Generator, n_users: int, n_items: int) -> Csr:
    lengths = generator.integers(0, 100, n_users)
    rows = [np.sort(generator.choice(n_items, n, replace=False)) for n in lengths]
    return sparse_rows(np.append(0, np.cumsum(lengths)), np.concatenate(rows), n_items)


def count_differences(n_requests: int, *, users_a_catalogue: int = 500, seed: int = 0) -> Exactness:
    """Compare random searches with and without a first pass; those without come in tiles.

    Examples
    --------
    >>> found = count_differences(60, users_a_catalogue=20)
    >>> found.requests, found.different
    (60, 0)
    """
    requests = different = of_use = 0
    for number in range(-(-n_requests // users_a_catalogue)):
        generator = np.random.default_rng([seed, number])
        found = random_searches(generator, min(users_a_catalogue, n_requests - requests))
        plain, users = kernels.Catalogue(pad_factors(found.items), 1), pad_factors(found.users)
        quick = plain.with_first_pass(1)
        expected, _ = _search(plain, users, found.hidden, found.k)
        for rows in _few_at_once(generator, len(users)):
            lists, helped = _search(quick, users[rows], _rows(found.hidden, rows), found.k)
            different += int((lists != expected[:, rows]).any(axis=(0, 2)).sum())
            of_use += helped
        requests += len(found.users)
    return Exactness(requests, different, of_use)


class Exactness(NamedTuple):
    """How many requests were compared, and how many lists or scores differed in a bit."""

    requests: int
    different: int
    by_first_pass: int
    """How many a first pass was of use to; the others were searched for plainly after all."""


def _search(catalogue: Catalogue, users: Float32, hidden: Csr | None, k: int) -> tuple[Int32, int]:
    """Return ids and the bits of scores, and how many searches a first pass was of use to."""
    ids, scores = empty_lists(len(users), k)
    of_use = catalogue.top_k(users, hidden, ids=ids, scores=scores, threads=1)
    return np.stack([ids, scores.view(np.int32)]), of_use


def _few_at_once(generator: np.random.Generator, n_rows: int) -> Iterator[slice]:
    start = 0
    while start < n_rows:
        stop = min(n_rows, start + int(generator.integers(1, 9)))
        yield slice(start, stop)
        start = stop


def _rows(hidden: Csr | None, rows: slice) -> Csr | None:
    if hidden is None:
        return None
    starts = hidden.indptr[rows.start : rows.stop + 1]
    entries = hidden.indices[starts[0] : starts[-1]]
    return sparse_rows(starts - starts[0], entries, hidden.n_columns)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says; fails if a list differed."""
    parser = argparse.ArgumentParser(
        prog="python -m limelight.lab.bench.serve_engine",
        description="Measure what one request costs an engine.",
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--history", type=int, default=50, help="items of the unseen user")
    parser.add_argument(
        "--candidates", type=int, nargs="+", default=[0, 1000], help="0: without control"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=0, help="random searches to compare")
    parser.add_argument("--seed", type=int, default=0, help="of these")
    asked = parser.parse_args(arguments)
    record: dict[str, Any] = {"kernel": variant()}
    different = 0
    with held_to(1):
        record["requests"] = [
            request_costs(
                n_items=asked.items,
                factors=asked.factors,
                history=asked.history,
                candidates=candidates,
                rounds=asked.rounds,
            )
            for candidates in asked.candidates
        ]
        record["control"] = control_costs(rounds=asked.rounds)
        if asked.requests:
            record["exactness"] = {}
            for name in kernels.variants():
                with use_variant(name):
                    found = count_differences(asked.requests, seed=asked.seed)
                record["exactness"][name] = found._asdict()
                different += found.different
    sys.stdout.write(json.dumps(record, indent=2) + "\n")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
