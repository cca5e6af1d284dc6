"""What a fit is to aim at, item by item or group by group, in place of equally small scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from limelight._errors import DataError
from limelight.solve.exposure_term import ExposureTerm

if TYPE_CHECKING:
    from limelight._arrays import Float64


@dataclass(frozen=True, kw_only=True, eq=False)
class ExposureTargets:
    """Mean scores that items, or groups of items, are to get, and how much each matters.

    The mean score of an item is the mean of what it scores with all users; that of a group is the
    sum over its items. A fit pays ``weight * (mean score - target)^2`` for each, all of it times
    ``exposure_weight * n_users^2 / 2``. Items are columns of the training matrix.

    Parameters
    ----------
    weights
        One number from 0 up for each item or, with groups, each group; without them all are 1.
    targets
        One number for each item or group; without them all are 0.
    groups
        Group numbers of the items, -1 for an item that belongs to none and is left alone. Or a
        sparse matrix of groups x items: each entry says how much of an item counts in a group, and
        an item may be in several.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> studios = np.arange(100) // 25
    >>> wanted = ll.ExposureTargets(groups=studios, targets=[2.0, 2.0, 1.0, 1.0])
    >>> model = ll.ExADMM(factors=8, solver="exact", exposure_weight=1.0, epochs=20)
    >>> scores = model.fit(data, exposure=wanted).item_factors @ model.mean_user_
    >>> np.bincount(studios, scores).round(2)
    array([2., 2., 1., 1.])
    """

    weights: Any = None
    targets: Any = None
    groups: Any = None

    def term(self, n_items: int) -> ExposureTerm:
        """Check everything against the number of items and put it into arrays."""
        if self.groups is None:
            W = sparse.csr_array(sparse.eye_array(n_items))
        elif sparse.issparse(self.groups):
            W = _memberships(self.groups, n_items)
        else:
            W = _partition(self.groups, n_items)
        what = "item" if self.groups is None else "group"
        weights = _numbers("weights", self.weights, W.shape[0], what, default=1.0)
        targets = _numbers("targets", self.targets, W.shape[0], what, default=0.0)
        _refuse_negative("weights", weights)
        return ExposureTerm.weighted(W, weights, targets)


def _numbers(name: str, given: Any, n: int, what: str, *, default: float) -> Float64:
    """Read one finite number for each item or group."""
    if given is None:
        return np.full(n, default)
    values = np.asarray(given)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        message = (
            f"exposure {name} must be numbers, one for each of {n:,} {what}s: "
            f"{values.dtype} of shape {values.shape}"
        )
        raise DataError(message, hint=f"{what}s are counted as the training matrix and groups do")
    _refuse_infinite(name, values)
    return values.astype(np.float64)


def _partition(groups: Any, n_items: int) -> sparse.csr_array:
    """Turn group numbers into a matrix of groups x items."""
    numbers = np.asarray(groups)
    if numbers.shape != (n_items,) or numbers.dtype.kind not in "iu":
        message = (
            f"exposure groups must be whole numbers, one for each of {n_items:,} items: "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
        hint = "number the groups from 0 up, or pass a sparse matrix of groups x items"
        raise DataError(message, hint=hint)
    if (numbers < -1).any():
        message = f"exposure groups must be -1 or more: {numbers.min()}"
        raise DataError(message, hint="-1 is an item without a group")
    members = np.flatnonzero(numbers >= 0)
    shape = (int(numbers.max(initial=-1)) + 1, n_items)
    return sparse.csr_array((np.ones(len(members)), (numbers[members], members)), shape)


def _memberships(groups: Any, n_items: int) -> sparse.csr_array:
    """Check a matrix of groups x items."""
    W = sparse.csr_array(groups)
    if W.ndim != 2 or W.shape[1] != n_items:
        message = f"exposure groups must have one column for each of {n_items:,} items: {W.shape}"
        raise DataError(message, hint="rows are groups, columns those of the training matrix")
    if W.dtype.kind not in "biuf":
        message = f"exposure groups must hold numbers, not {W.dtype}"
        raise DataError(message, hint="an entry says how much of an item counts in a group")
    _refuse_infinite("groups", W.data)
    _refuse_negative("groups", W.data)
    W = W.astype(np.float64)
    W.sum_duplicates()
    return W


def _refuse_infinite(name: str, values: np.ndarray) -> None:
    bad = values[~np.isfinite(values)]
    if len(bad):
        message = f"exposure {name} must be finite: {bad[0]}"
        raise DataError(message, hint="leave an item out with weight 0, or group -1")


def _refuse_negative(name: str, values: np.ndarray) -> None:
    if (values < 0).any():
        message = f"exposure {name} must be 0 or more: {values.min()}"
        raise DataError(message, hint="0 leaves an item or a group alone")
