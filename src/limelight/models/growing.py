"""Models that take in new users, items and pairs, and items that are known by their features."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from limelight._base.errors import ConfigError, DataError, LimelightWarning
from limelight.data.features import Encoding, read_item_features
from limelight.data.ids import positions
from limelight.models.base import VectorModel
from limelight.models.grow import NEW, kept_promise, united
from limelight.recommend.fold_in import as_weighted

if TYPE_CHECKING:
    from limelight.data.features import ItemFeatures
    from limelight.data.interactions import Ids, Interactions
    from limelight.models.grow import Grower
    from limelight.models.learned import Learned


_LEAST = 10
"""Items with features and interactions without which no map is learnt."""
_FEW = 0.5
"""The share of items with features below which a warning says so."""


class ColdExposure(NamedTuple):
    """How many items have no interactions, and which share of all places they take."""

    items: int
    share: float


class GrowingModel(VectorModel):
    """A model of vectors that more users and items can be added to."""

    _takes_features = True

    @abstractmethod
    def _grower(self, known: Learned) -> Grower:
        """Return what grows the vectors."""

    def partial_fit(self, new: Any, *, item_features: Any = None) -> Self:
        """Take in new users, items and pairs without a fit to all interactions.

        Only users and items that are new or have new pairs are solved for, against the vectors of
        the others; known items only if their histories grow by a tenth. New users and items are
        numbered after those that the model has. Exposure stays under control, but a promise that a
        target is met is dropped with a warning: nobody has looked at the new lists.

        Parameters
        ----------
        new : Interactions or sparse matrix
            Pairs of known or new users with known or new items, told apart by their ids; of a
            matrix, by the numbers of rows and columns. Pairs that the model has change nothing,
            unless it was fitted to weights: these are added up, and a pair without one weighs 1;
            of a matrix they are the values. A model without weights refuses them.
        item_features
            Features as the fit was given, of items that are to be shown before they have
            interactions; of a matrix, a row for each column of ``new``.

        Returns
        -------
        Self
            The model itself, grown; unchanged if this fails.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions.matrix
        >>> model = ll.IALS(factors=8, epochs=5).fit(data[:290])
        >>> model.partial_fit(data)
        IALS(factors=8, epochs=5) fitted to 300 users x 100 items
        """
        given = as_weighted(new, weighted=self.learned.weighted, what=NEW)
        features = self._read_features(item_features, given.item_ids)
        data = united(self.learned, given)
        grown = self._grower(self.learned).take_in(data)
        if features is not None:
            grown = self._grower(grown).add_items(features, grown.arrays["feature_map"])
        self._learned, self.promise = grown, kept_promise(self, grown)
        return self

    def add_items(self, item_features: Any) -> Self:
        """Add items that nobody has interacted with yet, by their features.

        Parameters
        ----------
        item_features
            A table with item ids and the columns that the fit was given. Items that have
            interactions are left as they are.

        Returns
        -------
        Self
            The model itself, with more items; unchanged if this fails.

        Examples
        --------
        >>> import limelight as ll
        >>> import pyarrow as pa
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> about = pa.table({"item_id": np.arange(100), "shelf": ["a", "b"] * 50})
        >>> model = ll.IALS(factors=8, epochs=5).fit(data, item_features=about)
        >>> model.add_items(pa.table({"item_id": [100], "shelf": ["b"]}))
        IALS(factors=8, epochs=5) fitted to 300 users x 101 items
        """
        features = self._read_features(item_features, None)
        if features is None:
            message = "there are no item features: None"
            raise DataError(message, hint="pass a table with item ids")
        grown = self._grower(self.learned).add_items(features, self.learned.arrays["feature_map"])
        self._learned, self.promise = grown, kept_promise(self, grown)
        return self

    def cold_exposure(self, k: int = 20) -> ColdExposure:
        """Count the items without interactions, and the places that training users give them.

        Parameters
        ----------
        k
            How long the lists are; 500 users are looked at, at most.

        Examples
        --------
        >>> import limelight as ll
        >>> data = ll.marketplace(300, 100, 4000).interactions
        >>> model = ll.IALS(factors=8, epochs=5).fit(data, item_features=np.eye(100)[:, :3])
        >>> model.cold_exposure()
        ColdExposure(items=0, share=0.0)
        """
        counts, n_users = self.learned.counts(), len(self.user_ids)
        if counts is None or counts.all():
            return ColdExposure(0, 0.0)
        some = np.unique(np.linspace(0, n_users - 1, min(n_users, 500)).astype(np.int64))
        ids = self.recommend(users=some, k=k).ids
        shown = ids[ids >= 0]
        return ColdExposure(int((counts == 0).sum()), float((counts[shown] == 0).mean()))

    def _features_of(self, given: Any, data: Interactions) -> ItemFeatures | None:
        """Read features of items; refuse those that no map can be learnt from."""
        if given is None:
            return None
        features = read_item_features(given, data.item_ids)
        places = positions(features.ids, data.item_ids)
        counts = np.bincount(data.indices, minlength=data.n_items)
        known = np.count_nonzero(counts[places[places >= 0]])
        of = f"{known:,} of {np.count_nonzero(counts):,}"
        if known < _LEAST:
            message = f"too few items with interactions have features: {of}"
            hint = f"use the same item ids in features and interactions; {_LEAST} are the least"
            raise DataError(message, hint=hint)
        if known < _FEW * np.count_nonzero(counts):
            message = f"only {of} items with interactions have features; check the item ids"
            warnings.warn(message, LimelightWarning, stacklevel=3)
        return features

    def _learn_features(self, features: ItemFeatures | None) -> Self:
        """Learn a map from features to vectors, and give vectors to items without interactions."""
        if features is not None:
            self._learned = self._grower(self.learned).add_items(features)
        return self

    def _read_features(self, given: Any, item_ids: Ids | None) -> ItemFeatures | None:
        """Read features of items as those of the fit were read."""
        if given is None:
            return None
        if self.learned.features is None:
            message = "the model was fitted without item features, so it cannot use them"
            raise ConfigError(message, hint="fit it with item_features=...")
        encoding = Encoding.of(self.learned.features)
        return read_item_features(given, item_ids, encoding=encoding)
