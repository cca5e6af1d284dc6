"""What all re-rankers share: rankings in, lists out, and a way to stand in for a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.data.candidates import Candidates
    from limelight.models.base import Model
    from limelight.models.config import Settings
    from limelight.recommend.ranking import Ranking
    from limelight.recommend.topk import Lists


class Reranker(ABC):
    """Makes the lists of many users together, so that items share the exposure."""

    config: Settings

    @abstractmethod
    def rerank(self, ranking: Ranking | Candidates, k: int) -> Lists:
        """Return lists of k places, one row for each user of the ranking.

        Parameters
        ----------
        ranking
            Who ranks what, such as ``model.ranking(histories)``, or candidates, such as
            ``limelight.data.read_candidates(file)``.
        k
            Length of the lists. Where fewer items are left, a row ends in -1 and -inf.
        """

    def over(self, model: Model) -> Reranked:
        """Return a model's lists as this re-ranker makes them, for ``ll.evaluate`` and others.

        Examples
        --------
        >>> import limelight as ll
        >>> market = ll.marketplace(600, 100, 9000)
        >>> split = ll.split_users(market.interactions, validation=50, test=100)
        >>> model = ll.Popularity().fit(split.train)
        >>> fair = ll.FairRec(alpha=0.5).over(model)
        >>> ll.evaluate(fair, split.test, k=10)["coverage@10"]
        1.0
        """
        return Reranked(self, model)

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.config.changed().items())
        return f"{type(self).__name__}({settings})"


class Reranked:
    """A model and the re-ranker that makes its lists.

    Parameters
    ----------
    reranker
        Makes the lists.
    model
        Ranks the items. It has been fitted.
    """

    def __init__(self, reranker: Reranker, model: Model) -> None:
        self.reranker = reranker
        self.model = model

    def __repr__(self) -> str:
        """Show both."""
        return f"{self.reranker!r} over {self.model!r}"

    def recommend(
        self, histories: Any = None, k: int = 10, *, users: Any = None, filter_seen: bool = True
    ) -> Lists:
        """Make the lists of all these users together.

        Parameters
        ----------
        histories, k, users, filter_seen
            As for a model's ``recommend``. A list depends on who else asks.
        """
        ranking = self.model.ranking(histories, users=users, filter_seen=filter_seen)
        return self.reranker.rerank(ranking, k)
