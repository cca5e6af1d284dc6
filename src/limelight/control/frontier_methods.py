"""Where along its control a method is tried next: where the curve has its widest gap.

The methods that a front can be traced with: lists of any strength, for held-out users.
"""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from limelight.control.controls import warm_fit
from limelight.control.frontier_folder import PLAIN
from limelight.control.held_out_users import as_unseen
from limelight.recommend.candidates import candidates_of, usual_width
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.frank_wolfe import FrankWolfe
from limelight.rerank.relevance import calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Int32
    from limelight.control.frontier_folder import FrontierFolder
    from limelight.data.candidates.candidates import Candidates
    from limelight.data.split import Split
    from limelight.models.exadmm import ExADMM
    from limelight.rerank.market.pool import Law


_DOWN = 8.0
"""How much smaller than the smallest strength the next one towards 0 is."""


class Tried(NamedTuple):
    """A strength, and where it led."""

    strength: float
    accuracy: float
    """As a share of what the plain lists have, so that it is of the size of a Gini index."""
    gini: float


def next_strength(tried: Sequence[Tried], first: Sequence[float]) -> float:
    """Say which strength to try next.

    After the first ones, the two neighbours that lie furthest apart in the plane of accuracy and
    Gini get a point between them: few points where nothing happens, many where the curve bends.

    Parameters
    ----------
    tried
        What is known, in any order.
    first
        What to try at first, rising from 0.

    Examples
    --------
    >>> ends = [Tried(0, 1.0, 0.9), Tried(0.1, 0.99, 0.8), Tried(10, 0.7, 0.4)]
    >>> next_strength(ends[:2], first=(0, 0.1, 10))
    10
    >>> next_strength(ends, first=(0, 0.1, 10))
    1.0
    """
    if len(tried) < len(first):
        return first[len(tried)]
    weaker, stronger = max(pairwise(sorted(tried)), key=lambda pair: _distance(*pair))
    return between(weaker.strength, stronger.strength)


def between(weaker: float, stronger: float) -> float:
    """Return the middle of two strengths, which are felt in proportion and not by difference.

    Examples
    --------
    >>> between(0.1, 10), between(0, 8)
    (1.0, 1.0)
    """
    return math.sqrt(weaker * stronger) if weaker else stronger / _DOWN


def nearest(strengths: Sequence[float], strength: float) -> int:
    """Return the place of the strength that is nearest in proportion; of two, the weaker.

    Nothing is as near as it gets to 0, unless there is nothing else.

    Examples
    --------
    >>> nearest([0, 10, 0.1], 1.0), nearest([0], 0.1)
    (2, 0)
    """

    def far(place: int) -> tuple[float, float]:
        other = strengths[place]
        return (abs(math.log(other / strength)) if other else math.inf, other)

    return min(range(len(strengths)), key=far)


def _distance(a: Tried, b: Tried) -> float:
    return math.hypot(a.accuracy - b.accuracy, a.gini - b.gini)


_KNOWN = 15_000
"""How many training users, at most, are known before the held-out ones come."""


class Made(NamedTuple):
    """The lists of one strength, and what they took."""

    validation: Int32
    test: Int32
    seconds: float
    epochs: int = 0
    trace: Sequence[Any] = ()
    """How the fit went, where there was one."""


class Method(ABC):
    """Makes the lists of held-out users at any strength."""

    first: ClassVar[tuple[float, float, float]] = (0.0, 0.1, 3.0)
    """The strengths to begin with: none, a middle one and a strong one."""

    @abstractmethod
    def make(self, strength: float, before: Sequence[float]) -> Made:
        """Make the lists of a strength above 0.

        Parameters
        ----------
        strength
            How much exposure counts.
        before
            The strengths that were tried before, in that order; the first is 0.
        """


class Training(Method):
    """ExADMM: exposure is controlled where the factors are learnt.

    Each fit starts from the factors of the nearest strength.

    Parameters
    ----------
    plain
        The model without control, not fitted.
    split, at
        Whom to learn from and to make lists for, and their length.
    folder
        Where models are kept.
    """

    first = (0.0, 0.1, 10.0)

    def __init__(self, plain: ExADMM, split: Split, at: int, folder: FrontierFolder) -> None:
        self._plain, self._split, self._at, self._folder = plain, split, at, folder

    def make_plain(self) -> Made:
        """Fit the model without control, from nothing."""
        kept = self._folder.checkpoint
        model = self._plain.fit(self._split.train, show_progress=False, checkpoint=kept)
        made = self._lists(PLAIN, model)
        if kept:
            kept.remove()
        return made

    def make(self, strength: float, before: Sequence[float]) -> Made:
        """Fit with control, from the nearest model."""
        near = nearest(before, strength)
        start = self._folder.model(f"exadmm-{near}" if near else PLAIN)
        model = warm_fit(self._plain.config, start, self._split.train, strength)
        return self._lists(f"exadmm-{len(before)}", model)

    def _lists(self, name: str, model: ExADMM) -> Made:
        self._folder.keep(name, model)
        last = model.trace_[-1]
        validation, test = (
            model.recommend(part.history, self._at).ids
            for part in (self._split.validation, self._split.test)
        )
        return Made(validation, test, last.seconds, last.epoch, model.trace_)


class Served(ExitStack):
    """What re-rankers start from: the candidates of the plain model, made once for all of them.

    Parameters
    ----------
    folder
        Where the plain model is kept.
    split, at
        Whom to make lists for, and their length.
    """

    def __init__(self, folder: FrontierFolder, split: Split, at: int) -> None:
        super().__init__()
        self.split, self.at, self._folder = split, at, folder
        held_out = max(split.validation.n_users, split.test.n_users)
        self._width = usual_width(max(held_out, _KNOWN))

    @cached_property
    def plain(self) -> ExADMM:
        """The model without control."""
        return self._folder.model(PLAIN)

    @cached_property
    def law(self) -> Law:
        """What candidates are worth, by what validation users were found to like."""
        part = self.split.validation
        return calibrate(self.plain.ranking(part.history), part.targets, self.at)

    @cached_property
    def validation(self) -> Candidates:
        """The candidates of the validation users."""
        return self._stage(self.split.validation.history)

    @cached_property
    def test(self) -> Candidates:
        """The candidates of the test users."""
        return self._stage(self.split.test.history)

    @cached_property
    def known(self) -> Candidates:
        """The candidates of users who came before: training users, as if they were unseen."""
        return self._stage(as_unseen(self.split.train.matrix, _KNOWN))

    def _stage(self, histories: Any) -> Candidates:
        return self.enter_context(candidates_of(self.plain.ranking(histories), self._width))


class Reranking(Method):
    """A re-ranker over the plain model.

    Parameters
    ----------
    served
        What it starts from.
    """

    needs: ClassVar[tuple[str, ...]] = ("validation", "test")
    """Whose candidates it wants."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def make(self, strength: float, before: Sequence[float]) -> Made:
        """Re-rank; nothing is taken over from other strengths."""
        del before
        served = self._served
        config = served.plain.config
        settings = {
            "strength": strength,
            "relevance": served.law,
            "random_state": config.random_state,
            "num_threads": config.num_threads,
        }
        # Made before the clock starts, so that no single point pays for the candidates of all.
        for part in self.needs:
            getattr(served, part)
        started = time.perf_counter()
        validation, test = self._lists(settings)
        return Made(validation, test, time.perf_counter() - started)

    @abstractmethod
    def _lists(self, settings: dict[str, Any]) -> tuple[Int32, Int32]:
        """Make the lists of validation and test users."""


class Batch(Reranking):
    """Best response: everybody at once."""

    def _lists(self, settings: dict[str, Any]) -> tuple[Int32, Int32]:
        method, at = BestResponse(**settings), self._served.at
        validation, test = (
            method.rerank(part, at).ids for part in (self._served.validation, self._served.test)
        )
        return validation, test


class Stream(Reranking):
    """Online: one after the other, after others who came before."""

    needs = ("validation", "test", "known")

    def _lists(self, settings: dict[str, Any]) -> tuple[Int32, Int32]:
        at = self._served.at
        warm = Online(**settings).warm_up(self._served.known, at)
        validation, test = (
            # Test users must not come after the validation users: each part has its own start.
            copy.deepcopy(warm).rerank(part, at).ids
            for part in (self._served.validation, self._served.test)
        )
        return validation, test


class Stateless(Reranking):
    """A mixture of prices that was found for others."""

    needs = ("validation", "test", "known")

    def _lists(self, settings: dict[str, Any]) -> tuple[Int32, Int32]:
        served, split = self._served, self._served.split
        prices = FrankWolfe(**settings).fit(served.known, served.at)
        validation, test = (
            prices.rerank(candidates, served.at, user_ids=part.user_ids).ids
            for candidates, part in (
                (served.validation, split.validation),
                (served.test, split.test),
            )
        )
        return validation, test


RERANKERS: dict[str, type[Reranking]] = {
    "best-response": Batch,
    "online": Stream,
    "prices": Stateless,
}
"""The re-rankers by name."""
