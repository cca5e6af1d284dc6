"""What everything that recommends shares: models, and models whose lists are re-ranked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError
from limelight._base.settings import check_integer
from limelight.models.folder import save_model
from limelight.recommend.fold_in import history_rows, take_rows
from limelight.recommend.ranking import empty_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from limelight.data.interactions import Ids
    from limelight.metrics.lists import Lists
    from limelight.models.base import Learned, Model
    from limelight.recommend.ranking import Ranking
    from limelight.store.model_folder import StoredControl

Serves: TypeAlias = Literal["alone", "together", "stream"]
"""Whether a list depends on nobody else, on all who ask at once, or on those who came before."""
_BATCH = 8192
"""How many users are served at once."""


class Batch(NamedTuple):
    """Lists of some of the users, and which rows of the question they answer."""

    rows: slice
    lists: Lists


class Answer(NamedTuple):
    """What gives lists of some rows of a question, and how many rows it has."""

    n_users: int
    lists: Callable[[slice], Lists]


class Recommender(ABC):
    """Makes ranked lists: a fitted model, or a model whose lists are re-ranked."""

    serves: Serves = "alone"
    """What a list depends on, beside its user."""
    by_user: bool = False
    """Whether a list depends on who its user is: ``recommend`` then looks at ``user_ids``."""
    reranker: Any = None
    """What re-ranks the lists; None for a model itself."""
    lists: Lists | None = None
    """What training users are shown, where that was decided before; see ``Reranked``."""
    promise: dict[str, Any] | None = None
    """What was asked of the exposure of whom, and what was reached: saved and loaded with it."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """What ranks the catalogue: the model itself, or the one whose lists are re-ranked."""

    @abstractmethod
    def _lists(
        self, histories: Any, k: int, users: Any, user_ids: Any, *, filter_seen: bool
    ) -> Answer:
        """Return what gives the lists of k items of unseen users, or of training users."""

    def _control(self) -> StoredControl | None:
        """Return what a folder says of the re-ranker, if there is one."""
        return None

    def keeps_lists(self, k: int, *, filter_seen: bool = True) -> bool:
        """Tell whether lists of this length are kept for training users."""
        return self.lists is not None and self.lists.ids.shape[1] == k and filter_seen

    def fresh(self) -> Self:
        """Return what may serve without changing this one's memory of who was served."""
        return self

    def use_threads(self, threads: int) -> None:
        """Let it use so many threads; what it recommends does not depend on them."""
        for part in (self.model, self.reranker):
            if part is not None and any(own.name == "num_threads" for own in fields(part.config)):
                part.config = replace(part.config, num_threads=threads)

    @property
    def learned(self) -> Learned:
        """Everything that the fit of the model left behind."""
        return self.model.learned

    @property
    def user_ids(self) -> Ids:
        """The id of each training user."""
        return self.learned.user_ids

    @property
    def item_ids(self) -> Ids:
        """The id of each item."""
        return self.learned.item_ids

    def recommend(
        self,
        histories: Any = None,
        k: int = 10,
        *,
        users: Any = None,
        filter_seen: bool = True,
        user_ids: Any = None,
    ) -> Lists:
        """Rank items for unseen users by their histories, or for users of the training data.

        Parameters
        ----------
        histories : sparse matrix or Interactions, optional
            Users to fold in, one row each.
        k
            Length of the lists.
        users
            Row numbers of training users; with neither ``histories`` nor ``users``, all of them.
        filter_seen
            Whether to leave out the items of a user's history.
        user_ids
            Who the users are, for re-rankers such as ``Prices``. Known of training users and of
            interactions; of a matrix, row numbers stand for them unless they are given.

        Returns
        -------
        ids, scores
            Two arrays of users x k. Item numbers are columns of the training matrix. Where fewer
            than k items are left, a row ends in -1 and -inf. Where lists are re-ranked, a list may
            depend on who else asks.
        """
        check_integer("k", k, least=1)
        ids = self._ids_of(histories, users, user_ids)
        n_users, lists = self._lists(histories, k, users, ids, filter_seen=filter_seen)
        found = empty_lists(n_users, k)
        for rows in batches(n_users, _BATCH):
            found.ids[rows], found.scores[rows] = lists(rows)
        return found

    def recommend_batches(
        self,
        histories: Any = None,
        k: int = 10,
        *,
        users: Any = None,
        filter_seen: bool = True,
        user_ids: Any = None,
        batch_size: int = _BATCH,
        first: int = 0,
    ) -> Iterator[Batch]:
        """Recommend as :meth:`recommend` does, one batch of users at a time.

        Batches that begin before row ``first`` are left out; the others are the same. A re-ranker
        makes the lists of all users first.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> model = ll.IALS(factors=8, epochs=2).fit(data)
        >>> [batch.lists.ids.shape for batch in model.recommend_batches(k=5, batch_size=200)]
        [(200, 5), (100, 5)]
        """
        check_integer("k", k, least=1)
        check_integer("batch_size", batch_size, least=1)
        ids = self._ids_of(histories, users, user_ids)
        n_users, lists = self._lists(histories, k, users, ids, filter_seen=filter_seen)
        for rows in batches(n_users, batch_size):
            if rows.start >= first:
                yield Batch(rows, lists(rows))

    def _ids_of(self, histories: Any, users: Any, given: Any) -> Any:
        """Tell who the users are, where lists depend on it."""
        if given is not None or not self.by_user:
            return given
        if histories is not None:
            return getattr(histories, "user_ids", None)
        return self.user_ids if users is None else self.user_ids[np.atleast_1d(users)]

    def ranking(
        self,
        histories: Any = None,
        *,
        users: Any = None,
        filter_seen: bool = True,
        hidden: Any = None,
    ) -> Ranking:
        """Return what ranks the catalogue for some users; re-rankers start from it.

        Parameters
        ----------
        histories, users, filter_seen
            As for :meth:`recommend`.
        hidden
            What must not be shown to unseen users, one row each, if not their histories.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> model = ll.Popularity().fit(data)
        >>> model.ranking(users=[3, 5]).top(np.array([1]), k=4).ids.shape
        (1, 4)
        """
        if histories is not None and users is not None:
            message = "histories and users were both given"
            raise ConfigError(message, hint="pass histories for unseen users, users for known ones")
        model = self.model
        if histories is not None:
            known = history_rows(histories, self.item_ids, weighted=self.learned.weighted)
            # What is hidden is so by any weight.
            seen = known if hidden is None else history_rows(hidden, self.item_ids, weighted=True)
            return model._ranking(known, np.arange(known.n_rows), seen if filter_seen else None)
        chosen = model._known_users(users)
        hidden = model._seen() if filter_seen else None
        if hidden is not None and users is not None:
            hidden = take_rows(hidden, chosen)
        return model._ranking(None, chosen, hidden)

    def save(self, path: str | Path, *, history: bool = True) -> None:
        """Write it to a folder for ``ll.load``; ``history=False`` leaves training histories out."""
        control, promise = self._control(), self.promise
        save_model(self.model, path, history=history, control=control, promise=promise)
