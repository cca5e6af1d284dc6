"""Controls: methods that make lists at any strength, so that a search can find the right one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from limelight._base.signals import Terminated, finishing
from limelight.metrics.lists import position_weights
from limelight.rerank.market.ledger import Ledger
from limelight.rerank.market.market import Market, cooling_plan
from limelight.rerank.methods import offered
from limelight.rerank.methods.allocate import Auction, Bounds, repair
from limelight.rerank.methods.fairrec import FairRec, largest_guarantee
from limelight.rerank.methods.market_config import GroupAccountsReranker
from limelight.rerank.targets.search import Measure, Trial
from limelight.rerank.welfare import as_welfare
from limelight.store.arrays import load_arrays, save_arrays
from limelight.store.snapshot_fields import refuse_damaged, stored_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int32
    from limelight.rerank.market.market import Plan
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.targets.providers import Providers
    from limelight.rerank.welfare import WelfareName
    from limelight.store.checkpoint import Checkpoint


_MARKET = "market/"
_FIRST: Plan = cooling_plan(3)
_LATER: Plan = ((1.6, False), (1.0, False), (1.0, True))
"""How users choose at the first strength, and at each later one, from where they are."""
_THOROUGH_LATER: Plan = ((1.6, False), (1.6, False), *((1.0, False),) * 3)


class Control(ABC):
    """A method whose lists share exposure the more evenly, the greater its strength is."""

    whole = False
    """Whether strengths are whole numbers."""
    most = 1e4
    """The largest strength that makes sense."""
    settles = False
    """Whether the lists of a strength start from those of the last one, so that they settle."""

    @abstractmethod
    def try_at(self, strength: float) -> Trial:
        """Make lists at a strength, and measure them; at 0, everybody's own."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what the next strength starts from, beside the lists of the last one."""
        return {}

    def restore(self, trial: Trial, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a trial, and from the state after it."""
        del trial, state

    def notes(self, trial: Trial) -> list[str]:
        """Say what a reader should know of the lists of a trial."""
        del trial
        return []


@dataclass(frozen=True)
class SearchContext:
    """Whose lists a search makes, how long they are, and what a method may use and draw with."""

    pool: Pool
    k: int
    threads: int
    seed: int
    providers: Providers | None = None
    """Groups of items whose exposure a search is for; None is for that of items."""

    def held(self, exposure: Float64) -> Float64:
        """Return the exposure that a search is for, from that of items."""
        return exposure if self.providers is None else self.providers.held(exposure)


class PoolControl(Control):
    """A re-ranker over the users of a pool, whose relevance is worked out once for all strengths.

    ``make`` returns the lists of a strength: everybody's places among her candidates. With
    ``whole``, a strength is the number of lists that every item is guaranteed.
    """

    def __init__(
        self,
        context: SearchContext,
        make: Callable[[SearchContext, float], Int32],
        *,
        whole: bool = False,
    ) -> None:
        pool, k = context.pool, context.k
        self.context, self.whole, self._make = context, whole, make
        if whole:
            self.most = float(pool.n_users * min(k, pool.n_items) // max(pool.n_items, 1))
        # This ledger only adds up the exposure and the relevance of lists. A method chooses them
        # in a ledger of its own.
        self._ledger = Ledger(pool, position_weights(k), threads=context.threads, seed=context.seed)
        self._ledger.open()
        self._own = self._ledger.relevance()
        self.last: Trial | None = None
        """The last trial of a strength above 0."""

    def try_at(self, strength: float) -> Trial:
        """Make everybody's list, and measure them."""
        if strength:
            places = self._make(self.context, strength)
        else:
            places = self.context.pool.own_places(self.context.k)
        trial = self.measured(strength, places)
        self.last = trial if strength else self.last
        return trial

    def measured(self, strength: float, places: Int32) -> Trial:
        """Measure everybody's list."""
        self._ledger.places = places
        exposure, worth = self._ledger.exposure_of(places), self._ledger.relevance()
        return Trial(strength, Measure.of(self.context.held(exposure), worth, self._own), places)

    def restore(self, trial: Trial, state: Mapping[str, NDArray[Any]]) -> None:
        """Take a trial for the last one."""
        del state
        self.last = trial if trial.strength else self.last


class BestResponseControl(PoolControl):
    """Best response, from the lists of the strength before."""

    settles = True

    def __init__(
        self,
        context: SearchContext,
        welfare: WelfareName = "log",
        *,
        order: Literal["relevance", "subsidised"] = "relevance",
        thorough: bool = False,
    ) -> None:
        super().__init__(context, self._respond)
        self._thorough = thorough
        accounts: dict[str, Any] = {"order": float(order == "subsidised")}
        if context.providers is not None:
            accounts = context.providers.accounts(context.pool.n_items)
        self._market = Market(
            context.pool,
            context.k,
            as_welfare(welfare),
            threads=context.threads,
            seed=context.seed,
            by_place=True,
            **accounts,
        )

    def _respond(self, context: SearchContext, strength: float) -> Int32:
        del context
        ledger, plan = self._market.ledger, _LATER
        if not ledger.served:
            ledger.open()
            plan = _FIRST
        if self._thorough:
            plan = _THOROUGH_LATER if plan is _LATER else cooling_plan(3, thorough=True)
        self._market.settle(strength, plan)
        return ledger.places.copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the exposure from which users choose again, and the state of the generator."""
        ledger = self._market.ledger
        return {f"{_MARKET}{name}": values for name, values in ledger.state().items()}

    def restore(self, trial: Trial, state: Mapping[str, NDArray[Any]]) -> None:
        """Put users back to the lists that they chose last."""
        super().restore(trial, state)
        if self.last is not None:
            ledger, own = self._market.ledger, _below(_MARKET, state)
            for name, expected in ledger.state().items():
                stored_array(own, name, expected.shape, expected.dtype)
            ledger.restore(self.last.lists, own)


class AllocateControl(PoolControl):
    """Least-loss allocation: every item is guaranteed so many lists."""

    def __init__(self, context: SearchContext) -> None:
        super().__init__(context, _allocate, whole=True)

    def notes(self, trial: Trial) -> list[str]:
        """Say how many items are short of the guarantee."""
        pool, level = self.context.pool, int(trial.strength)
        ids = pool.lists(trial.lists).ids
        short = int((np.bincount(ids[ids >= 0], minlength=pool.n_items) < level).sum())
        return [f"{short:,} items stand in fewer than {level:,} lists."]


class FairRecControl(PoolControl):
    """FairRec: every item is guaranteed so many lists, which need not be a whole number."""

    def __init__(self, context: SearchContext) -> None:
        fair = FairRec(random_state=context.seed)
        super().__init__(context, lambda at, s: fair.at(s).places_from(at.pool, at.k))
        self.most = largest_guarantee(context.pool.n_users, context.k, context.pool.n_items)


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, by the rest of their names."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays[name] for name in names}


def _allocate(at: SearchContext, strength: float) -> Int32:
    n_items = at.pool.n_items
    bounds = Bounds(np.full(n_items, strength), np.full(n_items, np.inf))
    auction = Auction(at.pool, at.k, bounds, threads=at.threads, seed=at.seed)
    auction.run()
    repair(auction)
    return auction.ledger.places


_OWN: dict[str, Callable[[SearchContext], PoolControl]] = {
    "best-response": BestResponseControl,
    "allocate": AllocateControl,
    "fairrec": FairRecControl,
}
"""Methods that start from the strength before, say something of their lists, or have an end."""


def control_of(method: str, context: SearchContext) -> PoolControl:
    """Return the control of a method that ``ll.rerank`` offers."""
    if method in _OWN:
        return _OWN[method](context)
    reranker = offered()[method].usual(seed=context.seed, threads=context.threads)
    groups = context.providers

    def make(at: SearchContext, strength: float) -> Int32:
        found = reranker.at(strength)
        if groups is not None and isinstance(found, GroupAccountsReranker):
            found = groups.helped_by(found)
        return found.places_from(at.pool, at.k)

    return PoolControl(context, make, whole=reranker.strength_is_count)


class Watched(Control):
    """A control whose every trial is shown to somebody, such as the front of a page."""

    def __init__(self, control: Control, see: Callable[[Trial], None]) -> None:
        self._control, self._see = control, see
        self.whole, self.most, self.settles = control.whole, control.most, control.settles

    def try_at(self, strength: float) -> Trial:
        """Try a strength, and show what it gave."""
        trial = self._control.try_at(strength)
        self._see(trial)
        return trial

    def notes(self, trial: Trial) -> list[str]:
        """Return the notes of the control."""
        return self._control.notes(trial)


class Resumable(Control):
    """Keeps every trial of a control on disk, so that an interrupted search goes on from there.

    A search asks for the same strengths in the same order again, so the n-th trial is the n-th
    file. ``about`` says what the trials are of; a checkpoint of anything else is refused.
    """

    def __init__(
        self, control: PoolControl, checkpoint: Checkpoint, about: Mapping[str, Any]
    ) -> None:
        self._control, self._path, self._trials = control, checkpoint.path, 0
        self.whole, self.most, self.settles = control.whole, control.most, control.settles
        if checkpoint.load(about) is None:
            checkpoint.save({}, {})

    def try_at(self, strength: float) -> Trial:
        """Read the trial of a strength, or make it; a signal waits until that is written."""
        file = self._path / f"turn-{self._trials:05d}.safetensors"
        self._trials += 1
        if file.is_file():
            return self._read(file, strength)
        try:
            with finishing():
                trial = self._control.try_at(strength)
                self._keep(file, trial)
        except (KeyboardInterrupt, Terminated) as end:
            end.add_note("the same command with --resume goes on from here")
            raise
        return trial

    def notes(self, trial: Trial) -> list[str]:
        """Return the notes of the control."""
        return self._control.notes(trial)

    def _keep(self, file: Path, trial: Trial) -> None:
        arrays = {"strength": np.array([trial.strength]), "measure": np.array(trial.measure)}
        state = {f"state/{name}": values for name, values in self._control.state().items()}
        save_arrays(file, arrays | {"places": trial.lists} | state)

    def _read(self, file: Path, strength: float) -> Trial:
        arrays, at = load_arrays(file), self._control.context
        try:
            trial = Trial(strength, Measure(*arrays["measure"].tolist()), arrays["places"])
            if arrays["strength"].item() != strength:
                self._refuse()
            stored_array(arrays, "places", (at.pool.n_users, at.k), np.int32)
            lengths = np.diff(at.pool.candidates.indptr)[:, None]
            if ((trial.lists < -1) | (trial.lists >= lengths)).any():
                self._refuse()
            self._control.restore(trial, _below("state/", arrays))
        except (KeyError, TypeError, ValueError):
            self._refuse()
        return trial

    def _refuse(self) -> NoReturn:
        refuse_damaged(f"{str(self._path)!r} is not of this search")
