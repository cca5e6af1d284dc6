"""One exposure, many Ginis: what other libraries would call the same lists.

limelight counts every item of the catalogue and divides by n. Others leave items out, divide by
n - 1, turn the scale round or weight ranks in another way. All but the last follow from
`gini_uniform`, the number n of items and the number s of items that are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.metrics.exposure import gini

if TYPE_CHECKING:
    from limelight.metrics.accumulate import Tally


def recbole_gini(gini_uniform: float) -> float:
    """Give RecBole's `giniindex`, also irspack's and LensKit's `ListGini`: ours, uniform weight.

    RecBole itself counts its padding item as one more item that nobody is shown, which makes it
    (n * gini + 1) / (n + 1).
    """
    return gini_uniform


def holisticai_gini(gini_uniform: float, n_items: int) -> float:
    """Give holisticai's Gini: divided by n - 1, so that 1 is one item with everything.

    Examples
    --------
    >>> round(holisticai_gini(0.7, n_items=10), 3)
    0.778
    """
    return gini_uniform * n_items / (n_items - 1) if n_items > 1 else 0.0


def elliot_gini(gini_uniform: float, n_items: int) -> float:
    """Give Elliot's Gini: 1 minus holisticai's, so that 1 is equal and 0 is one item with all.

    Examples
    --------
    >>> round(elliot_gini(0.7, n_items=10), 3)
    0.222
    """
    return 1.0 - holisticai_gini(gini_uniform, n_items)


def evidently_gini(gini_uniform: float, n_items: int, n_shown: int) -> float:
    """Give evidently's Gini: only over items that are shown, divided by their number minus 1.

    Items that no list shows are as good as absent, so it may fall while coverage shrinks.

    Examples
    --------
    >>> round(evidently_gini(0.7, n_items=10, n_shown=6), 3)
    0.6
    """
    if n_shown == 1:
        return 0.0
    return max(0.0, (n_items * gini_uniform - n_items + n_shown) / (n_shown - 1))


def conventions(exposure: Tally) -> dict[str, float]:
    """Name what each library would report for the same lists and catalogue.

    Examples
    --------
    >>> import numpy as np
    >>> from limelight.metrics.accumulate import tally
    >>> found = conventions(tally(np.array([0, 0, 1]), np.array([1, 1, 2]), n_items=3))
    >>> {library: round(figure, 3) for library, figure in found.items()}
    {'recbole': 0.444, 'lenskit_list_gini': 0.444, 'lenskit_exposure_gini': 0.468,
     'holisticai': 0.667, 'elliot': 0.333, 'evidently': 0.333}
    """
    ours, n_items = gini(exposure.shown), len(exposure.shown)
    return {
        "recbole": recbole_gini(ours),
        "lenskit_list_gini": ours,
        "lenskit_exposure_gini": gini(exposure.patient),
        "holisticai": holisticai_gini(ours, n_items),
        "elliot": elliot_gini(ours, n_items),
        "evidently": evidently_gini(ours, n_items, int((exposure.shown > 0).sum())),
    }
