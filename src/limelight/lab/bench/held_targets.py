"""How near a service stays to its target while traffic, users, items and models change.

Requests come at Poisson times over ten days, by users drawn by their activity. The window is one
day. The target is the mean of the Gini index of plain lists and the lowest that best response
reaches over one window. Run it with ``python -m limelight.lab.bench.held_targets DATA``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight.data import read
from limelight.data.candidates.candidates import Candidates
from limelight.data.candidates.storage import MemoryArray, PairRows
from limelight.metrics.exposure import gini
from limelight.metrics.lists import position_weights
from limelight.models import IALS
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance.laws import ScoreRelevance, by_scores
from limelight.rerank.targets.controls import BestResponseControl, SearchContext
from limelight.serve.control import ControlConfig, RequestControl
from limelight.serve.goal import ServedGoal
from limelight.serve.ledger import Ledger
from limelight.serve.target import TargetHolder

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.interactions import Interactions

DAY, DAYS, A_DAY, K = 86_400.0, 10, 20_000, 20
WIDTH, NEW = 500, 0.1
EVENTS = {"burst": 3.0, "taste": 4.5, "new items": 6.0, "restart": 7.5, "reload": 8.5}
"""In days: what changes, and when."""
_SETTINGS = {"factors": 64, "regularization": 0.003, "unobserved_weight": 0.1, "epochs": 16}
_SPARE = 1.2  # more candidates are kept, so that there are enough without the new items


@dataclass(frozen=True)
class Checked:
    """The distance from the target after an event, up to the next one."""

    event: str
    largest: float
    windows_to_return: float
    """Until it is below 0.01 for good."""
    largest_later: float
    """After one window."""


class Crowd:
    """What users could be shown, and what that is worth to them, by one model."""

    def __init__(self, data: Interactions, seed: int) -> None:
        model = IALS(**_SETTINGS, random_state=seed).fit(data)
        width = int(_SPARE * WIDTH)
        candidates = candidates_of(model.ranking(), width, memory=1 << 33)
        law, shape = by_scores(candidates), (candidates.n_users, width)
        self.items: Int32 = np.full(shape, -1, dtype=np.int32)
        self.relevance: Float32 = np.zeros(shape, dtype=np.float32)
        for start in range(0, candidates.n_users, 4096):
            block = candidates.block(start, min(start + 4096, candidates.n_users))
            counts = np.diff(block.indptr)
            rows = np.repeat(np.arange(len(counts)), counts)
            at = start + rows, np.arange(len(rows)) - block.indptr[rows]
            self.items[at], self.relevance[at] = block.items, law(block)
        weights = position_weights(K)
        self.unit = float((self.relevance[:, :K] @ weights).mean() / weights.sum())

    def of(self, user: int, there: np.ndarray) -> tuple[Int32, Float32]:
        """Return the candidates of a user among the items that are there."""
        items = self.items[user]
        kept = np.flatnonzero(there[items] & (items >= 0))[:WIDTH]
        return items[kept], self.relevance[user, kept]

    def batch(self, users: Int64, there: np.ndarray) -> BestResponseControl:
        """Return best response over the lists of requests."""
        found = [self.of(user, there) for user in users.tolist()]
        indptr = np.append(0, np.cumsum([len(items) for items, _ in found])).astype(np.int64)
        numbers = (np.cumsum(there) - 1).astype(np.int32)
        items = numbers[np.concatenate([items for items, _ in found])]
        rows = PairRows(MemoryArray(items), MemoryArray(np.concatenate([r for _, r in found])))
        ids = np.arange(len(users)), np.arange(int(there.sum()))
        pool = Pool(Candidates(indptr, rows, *ids), ScoreRelevance(), memory=1 << 33)
        return BestResponseControl(SearchContext(pool, K, 1, 0))


def requests(activity: Float64, half: np.ndarray, seed: int) -> tuple[Float64, Int64]:
    """Draw times and users: ten times as many for an hour, then the other half of the users."""
    generator = np.random.default_rng(seed)
    times = generator.uniform(0, DAYS * DAY, generator.poisson(DAYS * A_DAY))
    hour = EVENTS["burst"] * DAY + generator.uniform(0, 3600, generator.poisson(9 * A_DAY / 24))
    times = np.sort(np.append(times, hour))
    users = np.zeros(len(times), dtype=np.int64)
    for which, rows in (
        (half, times < EVENTS["taste"] * DAY),
        (~half, times >= EVENTS["taste"] * DAY),
    ):
        chance = activity * which
        users[rows] = generator.choice(len(activity), int(rows.sum()), p=chance / chance.sum())
    return times, users


class Service:
    """A ledger, a control and a holder, through all that happens to them."""

    def __init__(self, crowd: Crowd, there: np.ndarray, goal: ServedGoal, strength: float) -> None:
        self.crowd, self.there, self.goal = crowd, there, goal
        self.ledger = Ledger(int(there.sum()), window=DAY)
        self.control = self._control(strength)
        self.holder = TargetHolder(goal, self.control, self.ledger, window=DAY)
        self.numbers = (np.cumsum(there) - 1).astype(np.int32)

    def _control(self, strength: float) -> RequestControl:
        config = ControlConfig(
            n_items=int(self.there.sum()), law=ScoreRelevance(), unit=self.crowd.unit, length=K
        )
        return RequestControl(config, strength)

    def answer(self, user: int, time: float) -> None:
        """Answer one request."""
        items, relevance = self.crowd.of(user, self.there)
        items = self.numbers[items]
        chosen = self.control.choose(items, relevance, K, self.ledger)
        self.ledger.advance(time)
        shown = items[chosen.places]
        self.ledger.count(shown, time=time, plain=chosen.plain, shown=chosen.shown)
        self.holder.tick(time)

    def restart(self, time: float) -> None:
        """End, and begin anew with what was stored."""
        ledger, holder = self.ledger.state(), json.loads(json.dumps(self.holder.state()))
        self.ledger = Ledger(self.ledger.n_items, window=DAY, time=time)
        self.ledger.restore(ledger)
        self.control = self._control(0.1)
        self.holder = TargetHolder(self.goal, self.control, self.ledger, window=DAY)
        self.holder.restore(holder)

    def reload(self, crowd: Crowd, there: np.ndarray) -> None:
        """Go on with another model, maybe of more items."""
        numbers = (np.cumsum(there) - 1).astype(np.int32)
        self.ledger.renumber(numbers[self.there], int(there.sum()))
        self.crowd, self.there, self.numbers = crowd, there, numbers
        self.control = self._control(self.control.strength)
        self.holder.serve_with(self.control, self.ledger)

    @property
    def gini(self) -> float:
        """Of the window."""
        return gini(self.ledger.totals)

    @property
    def loss(self) -> float:
        """Of relevance, in the window."""
        return 1 - self.ledger.shown / self.ledger.plain


def halves(crowd: Crowd, by: str, seed: int) -> np.ndarray:
    """Cut users into halves: at random, or by how popular their first items are."""
    if by == "random":
        return np.random.default_rng(seed).random(len(crowd.items)) < 0.5
    first = crowd.items[:, :K]
    popular = np.bincount(first.ravel(), minlength=int(first.max()) + 1)
    score = np.log(popular[first]).mean(axis=1)
    return np.asarray(score > np.median(score))


def checked(log: Float64) -> list[Checked]:
    """Summarise distances from the target between events; rows of ``log``: days, distance."""
    starts = {"steady": 1.0, **EVENTS}
    ends = [*list(starts.values())[1:], float(DAYS)]
    found = []
    for (event, start), end in zip(starts.items(), ends, strict=True):
        days, off = log[(log[:, 0] >= start) & (log[:, 0] < end)].T
        outside = days[off > 0.01]
        back = float(outside[-1] - start) if len(outside) else 0.0
        late = off[days >= start + 1]
        found.append(Checked(event, float(off.max()), back, float(late.max(initial=0.0))))
    return found


def run(path: Path, *, seed: int, by: str, strength: float) -> dict[str, Any]:
    """Serve ten days and say how near to the target it was."""
    data = read(path)
    crowd, later = Crowd(data, 0), Crowd(data, 1)
    activity = np.diff(data.matrix.indptr).astype(np.float64)
    times, users = requests(activity, halves(crowd, by, seed), seed)
    every = np.ones(data.n_items, dtype=bool)
    old = np.random.default_rng(seed + 1).random(data.n_items) >= NEW
    batch = crowd.batch(users[:A_DAY], old)
    plain, _ = batch.try_at(0.0), batch.try_at(10.0)
    lowest = batch.try_at(1000.0)
    target = (plain.measure.gini + lowest.measure.gini) / 2
    service = Service(crowd, old, ServedGoal(gini=target), strength)
    waiting = list(EVENTS.items())
    log, before, cost = [], 0, {}
    for number, (time, user) in enumerate(zip(times.tolist(), users.tolist(), strict=True)):
        while waiting and time >= waiting[0][1] * DAY:
            event, _ = waiting.pop(0)
            if event == "burst":
                cost = _cost(service, users[before:number], service.crowd, old)
            if event == "restart":
                service.restart(time)
            if event in ("new items", "reload"):
                service.reload(later if event == "reload" else crowd, every)
        service.answer(user, time)
        if time < (EVENTS["burst"] - 1) * DAY:
            before = number + 1
        if number % 1000 == 999:
            log.append((time / DAY, abs(service.gini - target)))
    return {
        "data": path.stem, "seed": seed, "halves": by, "start": strength,
        "plain": plain.measure.gini, "lowest": lowest.measure.gini, "target": target,
        "requests": len(times), **cost,
        "events": [asdict(event) for event in checked(np.array(log))],
    }  # fmt: skip


def _cost(service: Service, users: Int64, crowd: Crowd, there: np.ndarray) -> dict[str, float]:
    """Compare the loss of the last window with that of best response at the same Gini index."""
    batch, strength = crowd.batch(users, there), service.control.strength
    tried = [batch.try_at(factor * strength).measure for factor in (0.7, 0.85, 1.0, 1.15, 1.3)]
    ginis, losses = zip(*sorted((one.gini, one.loss) for one in tried), strict=True)
    least = float(np.interp(service.gini, ginis, losses))
    return {"loss": service.loss, "batch_loss": least, "excess": service.loss / least - 1}


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--halves", choices=("random", "popularity"), default="random")
    parser.add_argument("--strength", type=float, default=0.3)
    given = parser.parse_args()
    found = run(given.data, seed=given.seed, by=given.halves, strength=given.strength)
    print(json.dumps(found, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
