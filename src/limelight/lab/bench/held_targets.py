"""How near a service stays to its target while traffic, users, items and models change.

Requests come at Poisson times over ten days, by users drawn by their activity. The window is one
day. The target is the mean of the Gini index of plain lists and the lowest that best response
reaches over one window. Lists are made as a service makes them, from a table of candidates instead
of a model, because that is the same for best response. Run it with
``python -m limelight.lab.bench.held_targets NAME=FILE``; it ends with 1 if a promise was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from limelight._base.text import percent
from limelight.data.candidates.candidates import Candidates
from limelight.data.candidates.storage import MemoryArray, PairRows
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.data.synthetic import marketplace
from limelight.lab.bench.task import SHAPES, read_named
from limelight.metrics.exposure import gini
from limelight.metrics.lists import position_weights
from limelight.models import IALS
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance.laws import ScoreRelevance, by_scores
from limelight.rerank.targets.controls import BestResponseControl, SearchContext
from limelight.serve.control import ControlConfig, RequestControl
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.targets.goal import ServedGoal
from limelight.serve.targets.holder import TargetHolder

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.data.interactions import Interactions

DAY, DAYS, K = 86_400.0, 10, 20
WIDTH, NEW = 500, 0.1
EVENTS = {"burst": 2.5, "taste": 4.0, "new items": 6.0, "restart": 7.5, "reload": 8.5}
"""In days: what changes, and when. What lists cost is measured over the last window before the next
event; another taste has two windows, because lists of the first are priced by the old one."""
NEAR, SWING, EXCESS, ABOVE = 0.01, 0.03, 0.05, 0.002
"""What is promised: how near to a Gini index, how far from it at most after an event, how much more
loss than best response has, and how far above a cap a share may be."""
_SETTINGS = {"factors": 64, "regularization": 0.003, "unobserved_weight": 0.1, "epochs": 16}
_SPARE = 1.2  # more candidates are kept, so that there are enough without the new items


class TargetPlan(NamedTuple):
    """What is tried."""

    a_day: int
    seed: int
    halves: str
    strength: float
    is_even: bool
    """Whether a Gini index is asked for."""
    cap: float | None
    groups: Groups | None


@dataclass(frozen=True)
class Checked:
    """What was seen after an event, up to the next one."""

    event: str
    largest: float
    """Distance from the target."""
    windows_to_return: float
    """Until it is below 0.01 for good."""
    largest_later: float
    """After one window."""
    loss: float
    """Of the last window before the next event."""
    batch_loss: float | None = None
    """Of best response over the same lists, at the same Gini index."""
    largest_share: float | None = None
    """Of a group, in any window."""

    @property
    def excess(self) -> float:
        """How much more relevance is lost than by best response."""
        return self.loss / self.batch_loss - 1 if self.batch_loss else 0.0

    def misses(self, plan: TargetPlan) -> list[str]:
        """Say what of the promises was not kept."""
        said = []
        if plan.is_even:
            if self.largest_later > NEAR or (self.event == "steady" and self.largest > NEAR):
                said.append(f"{self.event}: {self.largest_later:.4f} away after a window")
            if self.largest > SWING:
                said.append(f"{self.event}: {self.largest:.4f} away")
            if self.excess > EXCESS:
                said.append(f"{self.event}: {percent(self.excess)} more loss than best response")
        share = self.largest_share
        if plan.cap is not None and share is not None and share > plan.cap + ABOVE:
            said.append(f"{self.event}: a group has {percent(share, 2)}")
        return said


class Crowd:
    """What users could be shown, and what that is worth to them, by one model."""

    def __init__(self, data: Interactions, seed: int) -> None:
        model = IALS(**_SETTINGS, random_state=seed).fit(data)
        width = min(int(_SPARE * WIDTH), data.n_items)
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


def requests(activity: Float64, half: np.ndarray, plan: TargetPlan) -> tuple[Float64, Int64]:
    """Draw times and users: ten times as many for an hour, then the other half of the users."""
    generator = np.random.default_rng(plan.seed)
    times = generator.uniform(0, DAYS * DAY, generator.poisson(DAYS * plan.a_day))
    extra = generator.poisson(9 * plan.a_day / 24)
    hour = EVENTS["burst"] * DAY + generator.uniform(0, 3600, extra)
    times = np.sort(np.append(times, hour))
    users = np.zeros(len(times), dtype=np.int64)
    for which, rows in (
        (half, times < EVENTS["taste"] * DAY),
        (~half, times >= EVENTS["taste"] * DAY),
    ):
        chance = activity * which
        users[rows] = generator.choice(len(activity), int(rows.sum()), p=chance / chance.sum())
    return times, users


class SimulatedService:
    """A ledger, a control and a holder, through all that happens to them."""

    def __init__(self, crowd: Crowd, there: np.ndarray, goal: ServedGoal, plan: TargetPlan) -> None:
        self.crowd, self.goal, self.plan = crowd, goal, plan
        self._see(there)
        self.ledger = Ledger(int(there.sum()), window=DAY, groups=self.groups)
        self.control = self._control(plan.strength if plan.is_even else 0.0)
        self.holder = TargetHolder(goal, self.control, self.ledger, window=DAY)

    def _see(self, there: np.ndarray) -> None:
        self.there, self.numbers = there, (np.cumsum(there) - 1).astype(np.int32)
        self.groups = None
        if (groups := self.plan.groups) is not None:
            kept = there[groups.items]
            self.groups = groups._replace(
                items=self.numbers[groups.items[kept]],
                groups=groups.groups[kept],
                weights=groups.weights[kept],
            )

    def _control(self, strength: float) -> RequestControl:
        config = ControlConfig(
            n_items=int(self.there.sum()),
            law=ScoreRelevance(),
            unit=self.crowd.unit,
            length=K,
            groups=self.groups,
        )
        return RequestControl(config, strength)

    def answer(self, user: int, time: float) -> None:
        """Answer one request, in the order in which a service does it."""
        self.ledger.advance(time)
        items, relevance = self.crowd.of(user, self.there)
        items = self.numbers[items]
        chosen = self.control.choose(items, relevance, K, self.ledger)
        shown = items[chosen.places]
        self.ledger.count(shown, time=time, plain=chosen.plain, shown=chosen.shown)
        self.holder.tick(time)

    def restart(self, time: float) -> None:
        """End, and begin anew with what was stored."""
        ledger, holder = self.ledger.state(), json.loads(json.dumps(self.holder.state()))
        self.ledger = Ledger(self.ledger.n_items, window=DAY, groups=self.groups, time=time)
        self.ledger.restore(ledger)
        self.control = self._control(0.1 if self.plan.is_even else 0.0)
        self.holder = TargetHolder(self.goal, self.control, self.ledger, window=DAY)
        self.holder.restore(holder)

    def reload(self, crowd: Crowd, there: np.ndarray) -> None:
        """Go on with another model, maybe of more items."""
        old = self.there
        self._see(there)
        self.ledger.renumber(self.numbers[old], int(there.sum()), self.groups)
        self.crowd = crowd
        self.control = self._control(0.1 if self.plan.is_even else 0.0)
        self.holder.serve_with(self.control, self.ledger)

    @property
    def gini(self) -> float:
        """Of the window."""
        return gini(self.ledger.totals)

    @property
    def loss(self) -> float:
        """Of relevance, in the window."""
        return 1 - self.ledger.shown / self.ledger.plain

    @property
    def largest_share(self) -> float:
        """Of all groups, in the window."""
        return float(self.ledger.group_totals.max(initial=0) / self.ledger.totals.sum())


def halves(crowd: Crowd, by: str, seed: int) -> np.ndarray:
    """Cut users into halves: at random, or by how popular their first items are."""
    if by == "random":
        return np.random.default_rng(seed).random(len(crowd.items)) < 0.5
    first = crowd.items[:, :K]
    popular = np.bincount(first.ravel(), minlength=int(first.max()) + 1)
    score = np.log(popular[first]).mean(axis=1)
    return np.asarray(score > np.median(score))


class TargetRun:
    """Ten days of a service, and what was seen of it."""

    def __init__(self, data: Interactions, plan: TargetPlan) -> None:
        self.plan = plan
        self.crowds = Crowd(data, 0), Crowd(data, 1)
        activity = np.diff(data.matrix.indptr).astype(np.float64)
        half = halves(self.crowds[0], plan.halves, plan.seed)
        self.times, self.users = requests(activity, half, plan)
        self.every = np.ones(data.n_items, dtype=bool)
        self.old = np.random.default_rng(plan.seed + 1).random(data.n_items) >= NEW
        batch = self.crowds[0].batch(self.users[: plan.a_day], self.old)
        self.plain, _ = batch.try_at(0.0).measure, batch.try_at(10.0)
        self.lowest = batch.try_at(1000.0).measure
        self.target = (self.plain.gini + self.lowest.gini) / 2
        even = {"gini": self.target} if plan.is_even else {}
        capped = {} if plan.cap is None else {"group_cap": plan.cap}
        goal = ServedGoal(**even, **capped)
        self.service = SimulatedService(self.crowds[0], self.old, goal, plan)
        self.log: list[tuple[float, float]] = []
        self.shares: list[tuple[float, float]] = []
        self.found: list[Checked] = []

    def serve(self) -> None:
        """Answer all requests; look every 1,000 of them, and shares at every bucket."""
        service, bucket = self.service, 0
        waiting = [*EVENTS.items(), ("", DAYS)]
        last, start = "steady", 1.0
        for number, (time, user) in enumerate(
            zip(self.times.tolist(), self.users.tolist(), strict=True)
        ):
            while time >= waiting[0][1] * DAY:
                self._check(last, start, number)
                (last, start), *waiting = waiting
                self._happen(last, time)
            service.answer(user, time)
            now = service.ledger.bucket_of(time)
            if self.plan.groups is not None and (now > bucket or number % 1000 == 999):
                self.shares.append((time / DAY, service.largest_share))
            bucket = now
            if number % 1000 == 999:
                self.log.append((time / DAY, abs(service.gini - self.target)))
        self._check(last, start, len(self.times))

    def _happen(self, event: str, time: float) -> None:
        if event == "restart":
            self.service.restart(time)
        if event in ("new items", "reload"):
            self.service.reload(self.crowds[event == "reload"], self.every)

    def _check(self, event: str, start: float, number: int) -> None:
        """Sum up what was seen from an event to this request."""
        service, plan = self.service, self.plan
        days, off = np.array([row for row in self.log if row[0] >= start]).T
        outside = days[off > NEAR]
        shares = [share for day, share in self.shares if day >= start]
        least = None
        if plan.is_even and plan.groups is None:
            first = np.searchsorted(self.times, service.ledger.oldest * service.ledger.width)
            least = self._batch_loss(self.users[int(first) : number])
        self.found.append(
            Checked(
                event,
                float(off.max()),
                float(outside[-1] - start) if len(outside) else 0.0,
                float(off[days >= start + 1].max(initial=0.0)),
                service.loss,
                least,
                max(shares, default=None),
            )
        )

    def _batch_loss(self, users: Int64) -> float:
        """Return what best response over the lists of the window loses at the same Gini index."""
        service = self.service
        batch, wanted = service.crowd.batch(users, service.there), service.gini
        low = high = service.control.strength
        tried = [batch.try_at(low).measure]
        while tried[0].gini < wanted:
            low *= 0.9
            tried.insert(0, batch.try_at(low).measure)
        while tried[-1].gini > wanted:
            high *= 1.1
            tried.append(batch.try_at(high).measure)
        # Losses grow by about the same factor for each step of the Gini index.
        ginis, losses = zip(*sorted((one.gini, np.log(one.loss)) for one in tried), strict=True)
        return float(np.exp(np.interp(wanted, ginis, losses)))

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, and what was missed."""
        plan, service = self.plan, self.service
        return {
            "seed": plan.seed, "halves": plan.halves, "start": plan.strength, "cap": plan.cap,
            "requests": len(self.times), "plain": self.plain.gini, "lowest": self.lowest.gini,
            "target": self.target if plan.is_even else None,
            "gini_plain_live": service.holder.status().gini_plain,
            "events": [asdict(event) | {"excess": event.excess} for event in self.found],
            "misses": [miss for event in self.found for miss in event.misses(plan)],
        }  # fmt: skip


def read_any(text: str, groups: str | None) -> tuple[str, Interactions, Any]:
    """Read interactions and a table of groups, if there is one; made-up data have their own."""
    if text in SHAPES:
        market = marketplace(*SHAPES[text])
        return text, market.interactions, market.groups
    found = read_named(text if "=" in text.partition(",")[0] else f"data={text}")
    if groups is None:
        return found.name, found.interactions, None
    path, *names = groups.split(",")
    columns = {"item": "item_id", "group": "group"} | dict(name.split("=") for name in names)
    table = pq.read_table(path, columns=list(columns.values()))
    table = table.rename_columns(["item_id", "group"]).drop_null()
    return found.name, found.interactions, table


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data",
        help="NAME=FILE, then settings of read after commas, such as rating=rating,min-rating=8; "
        f"or made-up data: {', '.join(SHAPES)}",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--halves", choices=("random", "popularity"), default="random")
    parser.add_argument("--strength", type=float, default=0.3, help="to start with")
    parser.add_argument("--a-day", type=int, default=20_000, help="requests in one window")
    parser.add_argument("--cap", type=float, help="largest share of a group, such as 0.03")
    parser.add_argument(
        "--groups", help="FILE of item_id and group; other columns: FILE,item=COLUMN,group=COLUMN"
    )
    parser.add_argument("--no-gini", action="store_true", help="hold the cap alone")
    given = parser.parse_args()
    name, data, table = read_any(given.data, given.groups)
    groups = None
    if given.cap is not None:
        if table is None:
            parser.error("--cap needs --groups")
        groups = read_groups(table, ids_to_arrow(data.item_ids))
    elif given.no_gini:
        parser.error("--no-gini needs --cap")
    asked = given.a_day, given.seed, given.halves, given.strength
    plan = TargetPlan(*asked, not given.no_gini, given.cap, groups)
    run = TargetRun(data, plan)
    run.serve()
    found = {"data": name} | run.to_dict()
    print(json.dumps(found, indent=1))  # noqa: T201
    sys.exit(1 if found["misses"] else 0)


if __name__ == "__main__":
    main()
