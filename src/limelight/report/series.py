"""The exposures that figures compare, from whatever holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from limelight._errors import DataError
from limelight.evaluate.exposure import coverage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from limelight._arrays import Float64


@runtime_checkable
class Exposed(Protocol):
    """What knows the exposure of items: an audit, or re-ranked lists."""

    def exposures(self) -> Mapping[str, Float64]:
        """Return the exposure of every item, by the name of the series; "" if there is one."""


Exposure: TypeAlias = "ArrayLike | Exposed"
Exposures: TypeAlias = "Exposure | Mapping[str, Exposure]"

_HINT = "pass for example {'iALS': ll.exposure(ids, n_items)}"


def exposures_of(given: Exposures) -> dict[str, Float64]:
    """Return the exposure of every item, by the name of the series.

    Parameters
    ----------
    given
        The exposure of every item or an audit, alone or by name; re-ranked lists are two series,
        before and after.

    Examples
    --------
    >>> exposures_of([3, 1])
    {'': array([3., 1.])}
    """
    if isinstance(given, Exposed):
        return {name: _checked(one) for name, one in given.exposures().items()}
    if not isinstance(given, Mapping):
        return {"": _checked(given)}
    if not given:
        message = "no exposures to draw: {}"
        raise DataError(message, hint=_HINT)
    return {str(name): _checked(one) for name, one in given.items()}


def named(name: str, remark: str) -> str:
    """Put a remark behind a name, if there is one.

    Examples
    --------
    >>> named("iALS", "Gini 0.70"), named("", "Gini 0.70")
    ('iALS (Gini 0.70)', 'Gini 0.70')
    """
    return f"{name} ({remark})" if name else remark


def _checked(given: Any) -> Float64:
    values = given.exposures().get("", given) if isinstance(given, Exposed) else given
    try:
        exposure = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"not the exposure of items: {type(given).__name__}"
        raise DataError(message, hint=_HINT) from error
    coverage(exposure)  # refuses what is not one number an item, from 0 up, and all of them 0
    return exposure
