"""Exposure against merit: whether an item gets the attention that it earns.

Merit is any number from 0 up, such as how many people chose an item. With the shares
e_j = exposure_j / sum of exposure and m_j = merit_j / sum of merit, an item is treated
according to its merit if e_j = m_j. Items without merit (m_j = 0) are not left out: their
exposure is exposure without merit, and every measure here counts it as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy  # loads its packages when they are used

from limelight._base.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight.metrics.lists import FloatArray


def merit_ratio(exposure: ArrayLike, merit: ArrayLike) -> FloatArray:
    """Give the exposure per unit of merit of every item, e_j / m_j.

    1 is exposure according to merit, 2 twice as much. An item without merit has inf if it is
    exposed and nan if it is not.

    Examples
    --------
    >>> merit_ratio([2, 1, 1, 0], [1, 2, 0, 0])
    array([1.5 , 0.375,   inf,   nan])
    """
    exposure_share, merit_share = _shares(exposure, merit)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(exposure_share / merit_share)


def merit_lorenz(exposure: ArrayLike, merit: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Give the Lorenz curve of exposure against merit.

    Items stand in the order of exposure per unit of merit, lowest first, those without merit
    last. With merit spread evenly this is the usual Lorenz curve.

    Returns
    -------
    merit_share, exposure_share
        Two arrays of length n + 1 from 0 to 1: the items that are treated worst and hold
        `merit_share` of the merit get `exposure_share` of the exposure.

    Examples
    --------
    >>> merit_lorenz([2, 2, 0], [2, 1, 1])
    (array([0.  , 0.25, 0.75, 1.  ]), array([0. , 0. , 0.5, 1. ]))
    """
    exposure_share, merit_share = _shares(exposure, merit)
    ratio = merit_ratio(exposure, merit)
    order = np.argsort(np.where(np.isnan(ratio), np.inf, ratio), kind="stable")
    curves = (np.append(0.0, np.cumsum(shares[order])) for shares in (merit_share, exposure_share))
    across, up = curves
    return across, up


def merit_gini(exposure: ArrayLike, merit: ArrayLike) -> float:
    """Measure how far exposure is from being proportional to merit; 0 if it is.

    The Gini index of the Lorenz curve of exposure against merit: 1 - 2 * area under it, which is

        sum_j sum_l |o_j m_l - o_l m_j| / (2 sum(o) sum(m))   for exposure o and merit m

    It is the usual Gini if all items have the same merit, and 1 if all exposure goes to items
    without merit.

    Examples
    --------
    >>> merit_gini([2, 4, 6], [1, 2, 3]), merit_gini([0, 1], [1, 0])
    (0.0, 1.0)
    """
    across, up = merit_lorenz(exposure, merit)
    return max(0.0, float(1.0 - np.diff(across) @ (up[1:] + up[:-1])))


def merit_distance(exposure: ArrayLike, merit: ArrayLike) -> float:
    """Give the share of all exposure that would have to move to match merit.

    The total-variation distance of the shares, sum_j |e_j - m_j| / 2: 0 if they are the same, 1
    if no exposed item has merit.

    Examples
    --------
    >>> merit_distance([3, 1, 0], [2, 1, 1])
    0.25
    """
    exposure_share, merit_share = _shares(exposure, merit)
    return float(np.abs(exposure_share - merit_share).sum() / 2.0)


def merit_correlation(exposure: ArrayLike, merit: ArrayLike) -> float:
    """Give Spearman's rank correlation of exposure and merit over all items.

    Ties share their mean rank. Where all exposures or all merits are equal there is nothing to
    correlate, and the answer is 0.

    Examples
    --------
    >>> merit_correlation([1, 5, 20], [2, 3, 4])
    1.0
    """
    ranks = [scipy.stats.rankdata(shares) for shares in _shares(exposure, merit)]
    across, up = (rank - rank.mean() for rank in ranks)
    scale = np.sqrt((across @ across) * (up @ up))
    return float(across @ up / scale) if scale else 0.0


def _shares(exposure: ArrayLike, merit: ArrayLike) -> tuple[FloatArray, FloatArray]:
    given = np.asarray(exposure, dtype=np.float64), np.asarray(merit, dtype=np.float64)
    if given[0].shape != given[1].shape or given[0].ndim != 1:
        shapes = f"{given[0].shape} and {given[1].shape}"
        message = f"exposure and merit must hold one number per item each, got shapes {shapes}"
        raise DataError(message, hint="number the items of both the same way")
    for name, values in zip(("exposure", "merit"), given, strict=True):
        if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
            message = f"{name} must be finite, never negative, and above 0 somewhere"
            raise DataError(message, hint=f"check the {name} of each item")
    return given[0] / given[0].sum(), given[1] / given[1].sum()
