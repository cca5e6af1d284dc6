"""What all re-rankers share: rankings in, lists out, and a way to stand in for a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from limelight._base.arrays import batches
from limelight._base.documents import Document, Table, pairs
from limelight._base.errors import DataError
from limelight._base.settings import check_number
from limelight._base.text import settings, short
from limelight.metrics.lists import Lists
from limelight.models.base import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from limelight._base.settings import Settings
    from limelight.data.candidates.candidates import Candidates
    from limelight.models.base import Learned, Model
    from limelight.recommend.ranking import Ranking


class Memory(NamedTuple):
    """What a re-ranker knows beside its settings."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def number(self, name: str) -> float:
        """Return a number from 0 up, or refuse it."""
        check_number(name, self.values.get(name))
        return float(self.values[name])

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of finite numbers of a shape, or refuse it."""
        found = self.arrays.get(name)
        if found is None or found.shape != shape or found.dtype.kind != "f":
            what = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
            message = f"{name} must be numbers of shape {shape}: {what}"
            raise DataError(message, hint="save the model again")
        # What is finite in 64 bits may not be in the 32 that the kernels work in.
        if not (np.abs(found) <= np.finfo(np.float32).max).all():
            message = f"{name} holds values that are not finite"
            raise DataError(message, hint="save the model again")
        return found


class Reranker(ABC):
    """Makes the lists of many users together, so that items share the exposure."""

    config: Settings
    by_user: ClassVar[bool] = False
    """Whether a list depends on who the user is: ``rerank`` then takes ``user_ids``."""

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

    def remember(self, memory: Memory, n_items: int) -> None:
        """Take over what another one knew, of so many items."""
        del memory, n_items

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        return f"{type(self).__name__}({settings(self.config.changed())})"

    def _repr_html_(self) -> str:
        return Document(type(self).__name__, [self.summary()], self._as_usual()).html()

    def summary(self) -> Table:
        """Tabulate the settings that differ from the defaults."""
        return pairs((name, short(value)) for name, value in self.config.changed().items())

    def _as_usual(self) -> list[str]:
        return [] if self.config.changed() else ["All settings are the defaults."]


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

    def _repr_html_(self) -> str:
        above, below = type(self.reranker).__name__, type(self.model).__name__
        tables = {above: self.reranker.summary(), below: self.model.summary()}
        named = [Table((name, ""), found.rows) for name, found in tables.items()]
        return Document(f"{above} over {below}", named).html()

    @property
    def by_user(self) -> bool:
        """Whether a list depends on who the user is."""
        return self.reranker.by_user

    def recommend(
        self,
        histories: Any = None,
        k: int = 10,
        *,
        users: Any = None,
        filter_seen: bool = True,
        user_ids: Any = None,
    ) -> Lists:
        """Make the lists of all these users together.

        Parameters
        ----------
        histories, k, users, filter_seen
            As for a model's ``recommend``. A list depends on who else asks.
        user_ids
            Who the users are, for ``Prices``. Known of training users and of interactions; of a
            matrix, row numbers stand for them unless they are given.
        """
        ranking = self.ranking(histories, users=users, filter_seen=filter_seen)
        if not self.by_user:
            return self.reranker.rerank(ranking, k)
        if user_ids is None:
            user_ids = self._ids_of(histories, users)
        return self.reranker.rerank(ranking, k, user_ids=user_ids)  # type: ignore[call-arg]

    def _ids_of(self, histories: Any, users: Any) -> Any:
        if histories is not None:
            return getattr(histories, "user_ids", None)
        return self.user_ids if users is None else self.user_ids[np.atleast_1d(users)]

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
        first: int = 0,
    ) -> Iterator[Batch]:
        """Make the lists of all users together, and hand them out a batch at a time.

        Parameters
        ----------
        histories, k, users, filter_seen, batch_size, first
            As for a model's ``recommend_batches``.
        """
        ids, scores = self.recommend(histories, k, users=users, filter_seen=filter_seen)
        for rows in batches(len(ids), batch_size):
            if rows.start >= first:
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
        from limelight.rerank.folder import save_reranked

        save_reranked(self, path, history=history)
