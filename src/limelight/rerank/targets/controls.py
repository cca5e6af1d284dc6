"""Methods whose strength can be turned up and down over the same users.

A dial whose turns are kept on disk, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import DataError
from limelight._base.signals import Terminated, finishing
from limelight.metrics.exposure import coverage, gini
from limelight.metrics.lists import position_weights
from limelight.recommend.ranking import CandidateRanking
from limelight.rerank.market.ledger import Ledger
from limelight.rerank.market.market import Market, choose
from limelight.rerank.methods.allocate import Auction, Bounds, repair
from limelight.rerank.methods.fairrec import FairRec
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.targets.goal import Measure
from limelight.store.arrays import load_arrays, save_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.reranker import Reranker
    from limelight.rerank.welfare import Welfare
    from limelight.store.checkpoint import Checkpoint


_MARKET = "market/"
_FIRST_SWEEPS, _SWEEPS = 3, 2
"""How often users choose at the first strength, and at each later one, from where they are."""


@dataclass(frozen=True)
class Setting:
    """Whose lists are made, and how."""

    pool: Pool
    k: int
    threads: int
    seed: int


class Dial(ABC):
    """A method over a pool, at the strength to which it was turned last."""

    whole = False
    """Whether strengths are whole numbers."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        pool, k = setting.pool, setting.k
        self._ledger = Ledger(pool, position_weights(k), threads=setting.threads, seed=setting.seed)
        self._ledger.open()
        self._own = self._ledger.relevance()

    @property
    def places(self) -> Int32:
        """Everybody's list: places among her candidates."""
        return self._ledger.places

    @property
    def most(self) -> float:
        """The largest strength that makes sense."""
        return 1e4

    def turn(self, strength: float) -> Measure:
        """Make the lists of a strength, and measure them."""
        if strength == 0:
            self._ledger.open()
        else:
            self._ledger.places = self._make(strength)
            self._ledger.exposure = self._ledger.exposure_of(self._ledger.places)
        exposure = self._ledger.exposure
        loss = 1 - self._ledger.relevance() / self._own if self._own else 0.0
        return Measure(gini(exposure), coverage(exposure), loss)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the next turn depends on, beside the lists."""
        return self._ledger.state()

    def restore(self, places: Int32, state: Mapping[str, NDArray[Any]]) -> None:
        """Put the dial back to where it stood."""
        self._ledger.restore(places, state)

    def notes(self) -> list[str]:
        """Say what a reader should know of the lists."""
        return []

    @abstractmethod
    def _make(self, strength: float) -> Int32:
        """Return everybody's list."""


class BestResponseDial(Dial):
    """Best response, from the lists of the strength before."""

    def __init__(self, setting: Setting, welfare: Welfare) -> None:
        super().__init__(setting)
        self._market = Market(
            setting.pool, setting.k, welfare, threads=setting.threads, seed=setting.seed
        )
        self._is_open = False

    def _make(self, strength: float) -> Int32:
        if not self._is_open:
            self._market.ledger.open()
        for _ in range(_SWEEPS if self._is_open else _FIRST_SWEEPS):
            self._market.sweep(strength)
        self._is_open = True
        return self._market.ledger.places.copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return where users stand who choose again."""
        ledger = self._market.ledger
        market = {f"{_MARKET}{name}": values for name, values in ledger.state().items()}
        found = super().state() | market | {"is_open": np.array([self._is_open])}
        if not np.array_equal(ledger.places, self.places):
            found["chosen"] = ledger.places
        return found

    def restore(self, places: Int32, state: Mapping[str, NDArray[Any]]) -> None:
        """Put users back to where they stood."""
        super().restore(places, state)
        # What users last chose is what the dial last showed, unless that was nobody's choice.
        names = {name for name in state if name.startswith(_MARKET)}
        market = {name.removeprefix(_MARKET): state[name] for name in names}
        self._market.ledger.restore(state.get("chosen", places), market)
        self._is_open = bool(state["is_open"].item())


class OnlineDial(Dial):
    """Everybody is served once, in the order of the rows."""

    def __init__(self, setting: Setting, welfare: Welfare) -> None:
        super().__init__(setting)
        self._welfare = welfare

    def _make(self, strength: float) -> Int32:
        at = self.setting
        market = Market(at.pool, at.k, self._welfare, threads=at.threads, seed=at.seed)
        market.serve(strength)
        return market.ledger.places


class PricesDial(Dial):
    """Everybody draws a set of prices."""

    def _make(self, strength: float) -> Int32:
        at = self.setting
        method = FrankWolfe(strength=strength, random_state=at.seed, num_threads=at.threads)
        prices = Prices(method.mix(at.pool, at.k), method.config)
        draws = prices.draw(at.pool.candidates.user_ids)
        return choose(at.pool, at.k, prices.mixture.subsidies, draws, at.threads)


class _GuaranteeDial(Dial):
    """Strength is the number of lists that every item is guaranteed."""

    whole = True

    @property
    def most(self) -> float:
        """As many as there are places."""
        return _most_lists(self.setting)


def _most_lists(setting: Setting) -> float:
    pool = setting.pool
    return float(pool.n_users * min(setting.k, pool.n_items) // max(pool.n_items, 1))


class AllocateDial(_GuaranteeDial):
    """Least-loss allocation."""

    _short = _level = 0

    def _make(self, strength: float) -> Int32:
        at, n_items = self.setting, self.setting.pool.n_items
        bounds = Bounds(np.full(n_items, strength), np.full(n_items, np.inf))
        auction = Auction(at.pool, at.k, bounds, threads=at.threads, seed=at.seed)
        auction.run()
        repair(auction)
        self._short, self._level = int(auction.short().sum()), int(strength)
        return auction.ledger.places

    def state(self) -> dict[str, NDArray[Any]]:
        """Return who is short of the guarantee, too."""
        return super().state() | {"short": np.array([self._short, self._level])}

    def restore(self, places: Int32, state: Mapping[str, NDArray[Any]]) -> None:
        """Put the dial back to where it stood."""
        super().restore(places, state)
        self._short, self._level = state["short"].tolist()

    def notes(self) -> list[str]:
        """Say who is short of the guarantee."""
        return [f"{self._short:,} items stand in fewer than {self._level:,} lists."]


class FairRecDial(_GuaranteeDial):
    """FairRec over the same candidates."""

    def _make(self, strength: float) -> Int32:
        method = FairRec(guarantee=int(strength), random_state=self.setting.seed)
        lists = method.rerank(CandidateRanking(self.setting.pool.candidates), self.setting.k)
        return self.setting.pool.places_of(lists.ids)


class RerankerDial(Dial):
    """Any re-ranker, made anew at every strength."""

    def __init__(self, setting: Setting, kind: type[Reranker]) -> None:
        super().__init__(setting)
        self._reranker = kind.usual(seed=setting.seed, threads=setting.threads)
        self.whole = kind.strength_is_count

    @property
    def most(self) -> float:
        """As many lists as an item can have, or the largest strength of all."""
        return _most_lists(self.setting) if self.whole else super().most

    def _make(self, strength: float) -> Int32:
        return self._reranker.at(strength).places_from(self.setting.pool, self.setting.k)


class KeptDial:
    """Turns a dial, or remembers what it came to.

    A search asks for the same strengths in the same order again, so the n-th turn is the n-th file.
    The dial itself is put back to where it stood after the last of them.

    Parameters
    ----------
    dial
        What is turned.
    checkpoint
        Where turns are kept.
    about
        What they are of. Those of anything else are refused.
    """

    def __init__(self, dial: Dial, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        self._dial, self._checkpoint = dial, checkpoint
        self.whole = dial.whole
        self._places: Int32 | None = None
        self._turns = 0
        if checkpoint.load(about) is None:
            checkpoint.save({}, {})
        while self._file(self._turns).is_file():
            self._turns += 1
        self._known, self._turns = self._turns, 0

    @property
    def most(self) -> float:
        """The largest strength that makes sense."""
        return self._dial.most

    @property
    def places(self) -> Int32:
        """Everybody's list at the last strength."""
        return self._dial.places if self._places is None else self._places

    def notes(self) -> list[str]:
        """Say what a reader should know of the lists."""
        return self._dial.notes()

    def turn(self, strength: float) -> Measure:
        """Remember what a strength came to, or find out. A signal waits until that is kept."""
        self._turns += 1
        if self._turns <= self._known:
            return self._remember(strength)
        self._places = None
        try:
            with finishing():
                measure = self._dial.turn(strength)
                self._keep(strength, measure)
        except (KeyboardInterrupt, Terminated) as end:
            end.add_note("the same command with --resume goes on from here")
            raise
        return measure

    def _keep(self, strength: float, measure: Measure) -> None:
        arrays = {"strength": np.array([strength]), "measure": np.array(measure)}
        arrays |= {"places": self._dial.places}
        state = {f"state/{name}": values for name, values in self._dial.state().items()}
        save_arrays(self._file(self._turns - 1), arrays | state)

    def _remember(self, strength: float) -> Measure:
        arrays = load_arrays(self._file(self._turns - 1))
        shape = self._dial.places.shape
        if arrays.keys() < {"strength", "measure", "places"} or arrays["places"].shape != shape:
            raise _damaged(self._checkpoint.path)
        if arrays["strength"].item() != strength:
            raise _damaged(self._checkpoint.path)
        self._places = arrays["places"]
        if self._turns == self._known:
            state = {
                name.removeprefix("state/"): values
                for name, values in arrays.items()
                if name.startswith("state/")
            }
            self._dial.restore(self._places, state)
        return Measure(*arrays["measure"].tolist())

    def _file(self, number: int) -> Path:
        return self._checkpoint.path / f"turn-{number:05d}.safetensors"


def _damaged(path: Path) -> DataError:
    message = f"the checkpoint {str(path)!r} is not of this search"
    return DataError(message, hint="delete it to start from the beginning")
