"""Re-rankers over the best iALS, searched as models are: on validation users, for each cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight.lab.paper.methods import Range
from limelight.lab.paper.plan import BEST_RESPONSE, FAIRREC
from limelight.metrics.lists import Lists
from limelight.rerank.methods.best_response import BestResponse
from limelight.rerank.methods.fairrec import FairRec, largest_guarantee

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limelight.data import Split
    from limelight.models.base import Model

    MakeLists = Callable[[Model, Any, Mapping[str, Any], int], Lists]

_LONGEST = 10
"""FairRec's lists are at most so many times as long as what is left of them."""


@dataclass(frozen=True)
class RerankedLists:
    """Lists of whoever asks together, by a re-ranker with some settings over a model."""

    model: Model
    settings: Mapping[str, Any]
    make: MakeLists

    def recommend(self, histories: Any, k: int) -> Lists:
        """Return item numbers and scores, users x k."""
        return self.make(self.model, histories, self.settings, k)


@dataclass(frozen=True, kw_only=True)
class RerankingMethod:
    """A re-ranker over a fitted model: what is searched, and what is tried first."""

    model: Model
    make: MakeLists
    space: Mapping[str, Range]
    first: Sequence[Mapping[str, float]]
    controls: bool = True
    is_kept: bool = False

    def defaults(self) -> dict[str, Any]:
        """Return nothing: all that is searched is among what is tried first."""
        return {}

    def fit(self, settings: Mapping[str, Any], split: Split) -> RerankedLists:
        """Return what makes lists; nothing is learnt."""
        del split
        return RerankedLists(self.model, settings, self.make)


def fairrec_lists(model: Model, histories: Any, settings: Mapping[str, Any], k: int) -> Lists:
    """Make FairRec's lists of a length of their own, and cut them to k.

    The guarantee is a share of the most that so many lists of that length can give every item, and
    may be a fraction. With ``forced``, what the guarantee put into a list comes first, as in the
    published code, so that it survives the cut.
    """
    n_items = len(model.item_ids)
    length = max(k, min(int(settings["length"]), n_items))
    most = largest_guarantee(histories.shape[0], length, n_items)
    order = "forced" if settings["forced"] else "relevance"
    fair = FairRec(guarantee=settings["scale"] * most, order=order)
    lists = fair.over(model).recommend(histories, k=length)
    return Lists(lists.ids[:, :k], lists.scores[:, :k])


def best_response_lists(model: Model, histories: Any, settings: Mapping[str, Any], k: int) -> Lists:
    """Let all who ask choose their lists together."""
    lists = BestResponse(strength=settings["strength"]).over(model).recommend(histories, k=k)
    return Lists(lists.ids, lists.scores)


RERANKER_SHARES = {FAIRREC: 0.06, BEST_RESPONSE: 0.05}
"""Of the time for tuning, all cutoffs together."""


def first_settings(name: str, k: int) -> list[dict[str, float]]:
    """Return what is tried of a re-ranker before the search."""
    if name == BEST_RESPONSE:
        return [{"strength": strength} for strength in (0.01, 0.1, 0.3, 1.0)]
    scales = (0.01, 0.1, 0.3, 0.6, 0.8, 1.0)
    return [{"length": k, "scale": scale, "forced": 0} for scale in scales]


def reranking_method(name: str, model: Model, k: int) -> RerankingMethod:
    """Return how a re-ranker is searched at a cutoff.

    Of FairRec the paper searches the length of the lists and the scale of the guarantee, by
    decades.
    """
    first = first_settings(name, k)
    if name == BEST_RESPONSE:
        space = {"strength": Range(1e-3, 10.0)}
        return RerankingMethod(model=model, make=best_response_lists, space=space, first=first)
    longest = max(k, min(_LONGEST * k, len(model.item_ids)))
    space = {
        "length": Range(k, longest, whole=True),
        "scale": Range(0.01, 1.0),
        "forced": Range(0, 1, log=False, whole=True),
    }
    return RerankingMethod(model=model, make=fairrec_lists, space=space, first=first)
