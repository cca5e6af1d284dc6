"""What all re-rankers share: rankings in, lists out, and a way to stand in for a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.models.base import Batch
from limelight.recommend.topk import Lists, batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from limelight.data.candidates import Candidates
    from limelight.models.base import Model
    from limelight.models.config import Settings
    from limelight.models.learned import Learned
    from limelight.recommend.ranking import Ranking


class Memory(NamedTuple):
    """What a re-ranker knows beside its settings."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


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

    def memory(self) -> Memory:
        """Return what it knows beside its settings, to be saved."""
        return Memory({}, {})

    def remember(self, memory: Memory) -> None:
        """Take over what another one knew."""
        del memory

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
        ranking = self.ranking(histories, users=users, filter_seen=filter_seen)
        return self.reranker.rerank(ranking, k)

    def ranking(
        self, histories: Any = None, *, users: Any = None, filter_seen: bool = True
    ) -> Ranking:
        """Return what the model itself ranks, before anything is re-ranked.

        Parameters
        ----------
        histories, users, filter_seen
            As for a model's ``ranking``.
        """
        return self.model.ranking(histories, users=users, filter_seen=filter_seen)

    def recommend_batches(
        self,
        histories: Any = None,
        k: int = 10,
        *,
        users: Any = None,
        filter_seen: bool = True,
        batch_size: int = 8192,
    ) -> Iterator[Batch]:
        """Make the lists of all users together, and hand them out a batch at a time.

        Parameters
        ----------
        histories, k, users, filter_seen, batch_size
            As for a model's ``recommend_batches``.
        """
        ids, scores = self.recommend(histories, k, users=users, filter_seen=filter_seen)
        for rows in batches(len(ids), batch_size):
            yield Batch(rows, Lists(ids[rows], scores[rows]))

    @property
    def user_ids(self) -> NDArray[Any]:
        """The id of each training user."""
        return np.asarray(self.model.user_ids)

    @property
    def item_ids(self) -> NDArray[Any]:
        """The id of each item."""
        return np.asarray(self.model.item_ids)

    @property
    def learned(self) -> Learned:
        """Everything that the fit of the model left behind."""
        return self.model.learned

    def save(self, path: str | Path, *, history: bool = True) -> None:
        """Write both to a folder that ``ll.load`` reads.

        Parameters
        ----------
        path, history
            As for a model's ``save``.
        """
        from limelight.rerank.files import save_reranked

        save_reranked(self, path, history=history)
