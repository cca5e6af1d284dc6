"""Baselines without training: the most popular items, and items in random order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from limelight._base.settings import hyperparameters, setting
from limelight.data.interactions import as_interactions
from limelight.models.base import Model, VectorModel
from limelight.models.config import Config
from limelight.models.factor_model import learned, training_rows
from limelight.models.grow import united
from limelight.recommend.ranking import RandomRanking

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.recommend.ranking import Ranking
    from limelight.store.checkpoint import Place


class WithoutEpochs(Model):
    """A model that is fitted by looking at the interactions once."""

    ranks_by_history = False
    _similarities = Model._similarities

    @abstractmethod
    def _counted(self, rows: Csr) -> dict[str, NDArray[Any]]:
        """Return the arrays that a fit leaves behind."""

    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        callback: Any = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Take in the catalogue, the histories and how often every item was chosen.

        Parameters
        ----------
        X : Interactions or sparse matrix
            Users x items. The weights of interactions are added up where pairs are counted.
        weight
            ``"values"`` takes the values of a matrix for such weights; without it all must be 1.
        callback, show_progress, checkpoint
            As for all models; there are no epochs to tell of.
        """
        del callback, show_progress, checkpoint
        return self._count(as_interactions(X, weight=weight))

    def partial_fit(self, new: Any) -> Self:
        """Take in new users, items and pairs, as a fit to all of them would.

        Examples
        --------
        >>> from scipy import sparse
        >>> model = Popularity().fit(sparse.csr_matrix([[1, 1, 0], [0, 1, 0]]))
        >>> model.partial_fit(sparse.csr_matrix([[0, 0, 1]])).learned.arrays["item_counts"]
        array([1, 2, 1])
        """
        return self._count(united(self.learned, new))

    def _count(self, data: Interactions) -> Self:
        rows = training_rows(data)
        self._learned = learned(data, rows, self._counted(rows))
        return self


@dataclass(frozen=True, kw_only=True)
class PopularityConfig(Config):
    """The settings of :class:`Popularity`."""


class Popularity(WithoutEpochs, VectorModel):
    """Shows everybody the items with the most interactions, each counted by its weight.

    Parameters are the fields of :class:`~limelight.models.popularity.PopularityConfig`, by name.

    Examples
    --------
    >>> from scipy import sparse
    >>> model = Popularity().fit(sparse.csr_matrix([[1, 1, 0], [0, 1, 0], [1, 1, 1]]))
    >>> model.recommend(users=[1], k=2).ids
    array([[0, 2]], dtype=int32)
    """

    config: PopularityConfig
    __init__ = hyperparameters(PopularityConfig)

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""
        del n_users
        return {"item_counts": (n_items,)}

    def _counted(self, rows: Csr) -> dict[str, NDArray[Any]]:
        return {"item_counts": np.bincount(rows.indices, rows.weights, minlength=rows.n_columns)}

    def _item_vectors(self) -> Float32:
        return self.learned.arrays["item_counts"].astype(np.float32)[:, None]

    def _user_vectors(self, histories: Csr | None) -> Callable[[Int64], Float32]:
        del histories
        return lambda rows: np.ones((len(rows), 1), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class RandomConfig(Config):
    """The settings of :class:`Random`."""

    random_state: int = setting(
        # A user's order depends on it and on the user's row alone.
        0,
        "The same seed gives the same result.",
        flag="--seed",
    )


class Random(WithoutEpochs):
    """Shows everybody items in an order of chance.

    Parameters are the fields of :class:`~limelight.models.popularity.RandomConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> ids, scores = ll.Random(random_state=7).fit(data).recommend(users=[0, 1], k=5)
    >>> bool((ids[0] == ids[1]).all())
    False
    """

    config: RandomConfig
    __init__ = hyperparameters(RandomConfig)

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit leaves behind: there is none."""
        del n_users, n_items
        return {}

    def _counted(self, rows: Csr) -> dict[str, NDArray[Any]]:
        del rows
        return {}

    def _ranking(self, histories: Csr | None, chosen: Int64, hidden: Csr | None) -> Ranking:
        del histories
        return RandomRanking(
            chosen, n_items=len(self.item_ids), hidden=hidden, seed=self.config.random_state
        )
