"""EASE: item weights in closed form, with exposure control in closed form, too.

Steck (2019), "Embarrassingly Shallow Autoencoders for Sparse Data". The penalty on the scores of
the average user is exADMM's; here it moves every column of the weights along one vector.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from limelight._base.errors import DataError
from limelight._base.memory import require, resident
from limelight._base.settings import hyperparameters, setting
from limelight._native import resolve_threads
from limelight.data.interactions import as_interactions
from limelight.models.base import Model
from limelight.models.config import Config, robust_weights
from limelight.models.factor_model import learned, training_rows
from limelight.recommend.explain import Contributions
from limelight.recommend.ranking import ItemToItemRanking, ItemWeights
from limelight.solve.ease import ItemInverse, exposure_pulls, inverse_bytes, invert_gramian
from limelight.solve.problem import padded_width

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.exadmm import ExposureTargets
    from limelight.recommend.ranking import Ranking
    from limelight.store.checkpoint import Place

_HISTORIES = 6.0
"""How many times the mean history the usual regularization is."""


@dataclass(frozen=True, kw_only=True)
class EASEConfig(Config):
    """The settings of :class:`EASE`."""

    regularization: float | Literal["auto"] = setting(
        "auto",
        "Weight of the squared norms of what is learnt; auto: six times the mean history.",
        above=0,
        search=(0.25, 4.0),
    )
    exposure_strength: float = setting(
        # kappa = strength * n_users: how much the squared score that the average user gives an item
        # counts beside the scores that all users give it.
        0.0,
        "How strongly unequal exposure is held down, the same for data of any size.",
    )


class EASE(Model):
    """Item weights that score every item by the items of a history, solved for at once.

    The weights B, with a diagonal of zeros, minimise
    ``|X - X B|^2 + regularization |B|^2 + exposure_strength n_users |mean scores|^2``. The mean
    score of an item is the mean of what it scores with all users. There are no epochs and no random
    numbers. X has the weights of the interactions as its values, or ones. The usual regularization
    is six times the mean number of items in a history; with weights, the mean sum of their squares.
    A fit inverts one matrix of items x items; any other strength then follows from a few vectors:
    see :meth:`at_strength`.

    Parameters are the fields of :class:`~limelight.models.ease.EASEConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.EASE(regularization=20).fit(data)
    >>> model.recommend(users=[0, 1], k=5).ids.shape
    (2, 5)
    >>> even = model.at_strength(10.0)
    >>> bool(np.abs(even.mean_scores_).max() < np.abs(model.mean_scores_).max())
    True
    """

    config: EASEConfig
    __init__ = hyperparameters(EASEConfig)
    _refit_hint = "fit it again, to all interactions: that is one inversion"

    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        exposure: ExposureTargets | None = None,
        callback: Any = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Learn the item weights.

        Parameters
        ----------
        X : Interactions or sparse matrix
            Users x items. The weights of interactions are the values that are learnt to predict.
        weight
            ``"values"`` takes the values of a matrix for such weights; without it all must be 1.
        exposure
            Mean scores that items or groups are to get, instead of small ones for all; what they
            ask counts ``exposure_strength * n_users`` times.
        show_progress
            Whether to show a bar on standard error; None does so on a terminal.
        callback, checkpoint
            As for all models; there are no epochs to tell of, and nothing to go on from.

        Returns
        -------
        Self
            The model itself, fitted.
        """
        del callback, checkpoint
        data, regularization = as_interactions(X, weight=weight), self.config.regularization
        rows, threads = training_rows(data), resolve_threads(self.config.num_threads)
        term = None if exposure is None else exposure.term(data.n_items)
        require_memory(data, threads)
        chosen = {}
        if regularization == "auto":
            regularization = chosen["regularization"] = auto_regularization(data)
        solved = invert_gramian(rows, regularization, threads, show_progress=show_progress)
        pulls = exposure_pulls(solved, self._kappa(data.n_users), term)
        arrays = {**solved._asdict(), "pulls": pulls}
        self._learned, self.chosen_ = learned(data, rows, arrays), chosen
        return self

    def at_strength(self, strength: float, exposure: ExposureTargets | None = None) -> EASE:
        """Return the model that a fit with another exposure strength gives, without a new fit.

        The inverse, by far the largest part of a model, is shared with this one. ``exposure`` is as
        for :meth:`fit`; a model does not keep what its own fit was asked for.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> model = ll.EASE().fit(data).at_strength(0.5)
        >>> model
        EASE(exposure_strength=0.5) fitted to 300 users x 100 items
        """
        found, known = copy(self), self.learned
        found.config = replace(self.config, exposure_strength=strength)
        term = None if exposure is None else exposure.term(len(self.item_ids))
        pulls = exposure_pulls(self._solved, found._kappa(len(self.user_ids)), term)
        found._learned = replace(known, arrays={**known.arrays, "pulls": pulls})
        return found

    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""
        del n_users
        vectors = dict.fromkeys(("means", "response", "pulls"), (n_items,))
        return {"inverse": (n_items, padded_width(n_items)), **vectors}

    def item_weights(self) -> Float32:
        """Return the weights B, a new array of items x items: a history x has the scores x B.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> ll.EASE().fit(data).item_weights().shape
        (100, 100)
        """
        inverse, *vectors = self._weights
        gains, pulls, response = (vector.astype(np.float32) for vector in vectors)
        weights = inverse[:, : len(gains)] * gains
        weights -= response[:, None] * pulls
        np.fill_diagonal(weights, 0)
        return weights

    @property
    def mean_scores_(self) -> Float64:
        """The mean of what each item scores with the training users, which control acts on."""
        solved = self._solved
        own = solved.response / solved.diagonal
        return (
            solved.means
            - own
            - self._pulls * (solved.means @ solved.response - own * solved.response)
        )

    def ranking_of(self, rows: Int64, seen: Csr | None, *, filter_seen: bool = True) -> Ranking:
        """Rank for training users by their histories, which is all that the model knows of."""
        del rows
        found = self._seen() if seen is None else seen
        return self._rank(found, np.arange(found.n_rows), found if filter_seen else None, found)

    def _ranking(self, histories: Csr | None, chosen: Int64, hidden: Csr | None) -> Ranking:
        return ItemToItemRanking(
            self._weights,
            self._seen() if histories is None else histories,
            chosen,
            hidden=hidden,
            threads=resolve_threads(self.config.num_threads),
        )

    def _similarities(self, items: Int64) -> Float32:
        """Return partial correlations: what an item says of another that no third one says.

        They are the geometric mean of the weights without control of both directions, with the sign
        of these. Control is left out, because it lowers popular items beside any other.
        """
        found, lengths = self._solved.inverse, np.sqrt(self._solved.diagonal).astype(np.float32)
        alike: Float32 = -found[items, : len(lengths)] / (lengths[items, None] * lengths)
        return alike.clip(-1, 1)

    def _contributions(self, rows: Csr, item: int) -> Contributions:
        inverse, gains, pulls, response = self._weights
        history = rows.indices
        column = inverse[history, item] * gains[item] - response[history] * pulls[item]
        column[history == item] = 0
        return Contributions(column if rows.weights is None else column * rows.weights)

    def _seen(self) -> Csr:
        if self.learned.seen is None:
            message = "the model was saved without histories, which it needs to serve its own users"
            raise DataError(message, hint="pass histories= of these users")
        return self.learned.seen

    @property
    def _solved(self) -> ItemInverse:
        arrays = self.learned.arrays
        return ItemInverse(arrays["inverse"], arrays["means"], arrays["response"])

    @property
    def _pulls(self) -> Float64:
        return self.learned.arrays["pulls"]

    @property
    def _weights(self) -> ItemWeights:
        solved = self._solved
        gains = (self._pulls * solved.response - 1) / solved.diagonal
        return ItemWeights(solved.inverse, gains, self._pulls, solved.response)

    def _kappa(self, n_users: int) -> float:
        return self.config.exposure_strength * n_users


def auto_regularization(data: Interactions) -> float:
    """Return what "auto" comes to: six times the mean length of a history.

    Validation users of five sets, with 16 to 176 items a history, were served best by five to
    eight times that length, and nearly as well by six, whatever the numbers of users and items.
    A weight counts by its square, so that weights in another unit give the same lists; the largest
    of every thousand are cut off, so that one wrong weight does not decide.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> auto_regularization(as_interactions(csr_array([[1, 1, 1], [0, 1, 0]])))
    12.0
    """
    squares = float(data.nnz)
    if data.weights is not None:
        squares = np.square(robust_weights(data.weights), dtype=np.float64).sum()
    return _HISTORIES * float(squares) / data.n_users


def require_memory(data: Interactions, threads: int) -> int:
    """Refuse a fit that does not fit into memory; return about how much the process will hold."""
    n_entries = data.nnz * (1 if data.weights is None else 2)  # a weight is as long
    needed = resident() + inverse_bytes(data.n_items, n_entries, threads)
    what = f"EASE of {data.n_items:,} items"
    require(needed, what, hint="keep fewer items: --min-item, min_item=, or use IALS")
    return needed
