"""What everything that recommends shares: models, and models whose lists are re-ranked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from limelight._base.arrays import batches
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_integer
from limelight._base.text import count
from limelight.models.folder import save_model
from limelight.recommend.explain import explanation
from limelight.recommend.fold_in import history_rows, take_rows
from limelight.recommend.ranking import empty_lists
from limelight.recommend.request import ITEM_HINT, items_left, numbers_of
from limelight.recommend.similar import similar_items
from limelight.solve.problem import sparse_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from limelight._base.arrays import Int32, Int64
    from limelight.data.interactions import Ids
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.models.learned import Learned
    from limelight.recommend.explain import Explanation
    from limelight.recommend.ranking import Ranking
    from limelight.recommend.similar import SimilarItems
    from limelight.store.model_folder import StoredControl

Serves: TypeAlias = Literal["alone", "together", "stream"]
"""Whether a list depends on nobody else, on all who ask at once, or on those who came before."""
USER_HINT = "pass histories= of unseen users"
_HISTORY = "pass history=[…] with the items of an unseen user"
_BATCH = 8192
"""How many users are served at once."""


class Batch(NamedTuple):
    """Lists of some of the users, and which rows of the question they answer."""

    rows: slice
    lists: Lists


class ListAnswer(NamedTuple):
    """What gives lists of some rows of a question, and how many rows it has."""

    n_users: int
    lists: Callable[[slice], Lists]


class ListRequest(NamedTuple):
    """Who asks, and for what."""

    histories: Any
    users: Any
    """Rows of the training data."""
    user_ids: Any
    """Who they are, where lists depend on it."""
    filter_seen: bool
    items: Int32 | None
    """The items that may be listed, if not all."""

    def ranking(self, recommender: Recommender) -> Ranking:
        """Return what ranks the items for those who ask."""
        found = recommender.ranking(self.histories, users=self.users, filter_seen=self.filter_seen)
        return found if self.items is None else found.among(self.items)


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
    def _lists(self, asked: ListRequest, k: int) -> ListAnswer:
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

    @property
    def has_ids(self) -> bool:
        """Whether items have ids of their own, not the numbers of a matrix's columns."""
        return self.learned.has_ids

    def recommend(
        self,
        histories: Any = None,
        k: int = 20,
        *,
        users: Any = None,
        filter_seen: bool = True,
        user_ids: Any = None,
        exclude: Any = None,
        allow: Any = None,
    ) -> Lists:
        """Rank items for unseen users by their histories, or for users of the training data.

        Users without a history get the most popular items, whose score is the share of the
        training users who have them, and a ``LimelightWarning`` says so.

        Parameters
        ----------
        histories : sparse matrix or Interactions, optional
            Users to fold in, one row each.
        k
            Length of the lists.
        users
            Row numbers of training users; without ``histories``, ``users`` and ``user_ids``, all
            of them.
        filter_seen
            Whether to leave out the items of a user's history.
        user_ids
            Own ids of training users, who get the lists. Beside ``histories`` or ``users``: who
            these are, for re-rankers such as ``Prices``. Known of training users and of
            interactions; of a matrix, row numbers stand for them unless they are given.
        exclude, allow
            Own ids of items that no list of this request shows, or of the only ones that it may
            show; ids that the model does not know are passed over. Re-ranked lists are then made
            anew: those that were kept for a target are not used, and what the target promised does
            not hold.

        Returns
        -------
        ids, scores
            Two arrays of users x k. Item numbers are columns of the training matrix. Where fewer
            than k items are left, a row ends in -1 and -inf. Where lists are re-ranked, a list may
            depend on who else asks.

        Examples
        --------
        >>> import limelight as ll
        >>> model = ll.Popularity().fit(ll.marketplace(300, 100, 4000).interactions)
        >>> ids, scores = model.recommend(user_ids=[17, 42], k=3, exclude=[0, 1])
        >>> model.item_ids[ids].shape
        (2, 3)
        """
        check_integer("k", k, least=1)
        asked = self._request(histories, users, user_ids, exclude, allow, filter_seen=filter_seen)
        n_users, lists = self._lists(asked, k)
        found = empty_lists(n_users, k)
        for rows in batches(n_users, _BATCH):
            found.ids[rows], found.scores[rows] = lists(rows)
        return found

    def recommend_batches(  # noqa: PLR0913
        self,
        histories: Any = None,
        k: int = 20,
        *,
        users: Any = None,
        filter_seen: bool = True,
        user_ids: Any = None,
        exclude: Any = None,
        allow: Any = None,
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
        asked = self._request(histories, users, user_ids, exclude, allow, filter_seen=filter_seen)
        n_users, lists = self._lists(asked, k)
        for rows in batches(n_users, batch_size):
            if rows.start >= first:
                yield Batch(rows, lists(rows))

    def _request(
        self,
        histories: Any,
        users: Any,
        user_ids: Any,
        exclude: Any,
        allow: Any,
        *,
        filter_seen: bool,
    ) -> ListRequest:
        if histories is None and users is None and user_ids is not None:
            users, user_ids = self._rows_of(user_ids), None
        who = self._ids_of(histories, users, user_ids)
        return ListRequest(
            histories, users, who, filter_seen, items_left(self.item_ids, exclude, allow)
        )

    def _rows_of(self, user_ids: Any) -> Int64 | None:
        """Return the rows of training users; None for all of them, whose ids need no search."""
        if user_ids is self.user_ids:
            return None
        return numbers_of(user_ids, self.user_ids, "user", USER_HINT)

    def _ids_of(self, histories: Any, users: Any, given: Any) -> Any:
        """Tell who the users are, where lists depend on it."""
        if given is not None:
            _check_count(given, users if histories is None else histories)
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
            shown = known if hidden is None else history_rows(hidden, self.item_ids, weighted=True)
            hidden = shown if filter_seen else None
            return model._rank(known, np.arange(known.n_rows), hidden, known)
        chosen, seen = model._known_users(users), self.learned.seen
        hidden = model._seen() if filter_seen else None
        if hidden is not None and users is not None:
            seen = hidden = take_rows(hidden, chosen)
        elif seen is not None and users is not None:
            seen = take_rows(seen, chosen)
        return model._rank(None, chosen, hidden, seen)

    def similar_items(self, items: Any, k: int = 10) -> SimilarItems:
        """Return the items that are most alike to each of some items, by their own ids.

        Parameters
        ----------
        items
            An id, or several.
        k
            How many to return for each; at most all others.

        Returns
        -------
        ids, scores
            Two arrays, one row for each item: own ids, the most alike first, and how alike they
            are. For models of vectors that is the cosine of the angle between two items, for EASE
            their partial correlation; an item that nobody has is like no other, and scores 0.

        Examples
        --------
        >>> import limelight as ll
        >>> model = ll.IALS(factors=8).fit(ll.marketplace(300, 100, 4000).interactions)
        >>> ids, scores = model.similar_items([3, 5], k=4)
        >>> ids.shape, bool(scores.max() <= 1)
        ((2, 4), True)
        """
        check_integer("k", k, least=1)
        return similar_items(self.model._similarities, self.item_ids, items, k)

    def explain(self, user: Any = None, item: Any = None, *, history: Any = None) -> Explanation:
        """Say what each item of a history adds to the score of an item.

        The score is that of the history folded in. A training user's list may have a slightly
        different one, because items moved once more after her vector was found.

        Parameters
        ----------
        user
            Own id of a training user, whose history the model has.
        item
            Own id of the item whose score is explained.
        history
            Own ids of items, instead of a user.

        Examples
        --------
        >>> import limelight as ll
        >>> model = ll.IALS(factors=8).fit(ll.marketplace(300, 100, 4000).interactions)
        >>> found = model.explain(item=7, history=[3, 5])
        >>> bool(np.isclose(sum(part for _, part in found.parts), found.score))
        True
        """
        if item is None or (user is None) == (history is None):
            message = "explain takes an item, and either a user or a history"
            raise ConfigError(
                message, hint="write explain(user, item), or explain(item=…, history=[…])"
            )
        ids, model = self.item_ids, self.model
        [number] = numbers_of([item], ids, "item", ITEM_HINT)
        if history is None:
            rows = take_rows(model._seen(), numbers_of([user], self.user_ids, "user", _HISTORY))
        else:
            chosen = np.unique(numbers_of(history, ids, "item", ITEM_HINT)).astype(np.int32)
            rows = sparse_rows(np.array([0, len(chosen)]), chosen, len(ids))
        if not rows.n_entries:
            whose = "an empty history" if history is not None else f"user {user!r}"
            message = f"there is no history to explain a score by: {whose}"
            raise DataError(message, hint="users without a history get the most popular items")
        return explanation(model._contributions(rows, int(number)), rows.indices, int(number), ids)

    def save(self, path: str | Path, *, history: bool = True) -> None:
        """Write it to a folder for ``ll.load``; ``history=False`` leaves training histories out."""
        control, promise = self._control(), self.promise
        save_model(self.model, path, history=history, control=control, promise=promise)


def _check_count(user_ids: Any, asked: Any) -> None:
    """Refuse ids that are not one for each user who asks."""
    expected = asked.shape[0] if hasattr(asked, "shape") else np.size(asked)
    if hasattr(asked, "n_users"):
        expected = asked.n_users
    if np.size(user_ids) != expected:
        message = f"{np.size(user_ids):,} user ids for {count(expected, 'user')}"
        raise DataError(message, hint="beside histories or users, give one id for each of them")
