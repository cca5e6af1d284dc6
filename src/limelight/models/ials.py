"""iALS: exact alternating least squares for implicit feedback (Rendle et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight._base.settings import hyperparameters
from limelight.models.config import FactorConfig
from limelight.models.factor_model import FactorModel
from limelight.solve.epochs import FactorMethod, ials_epoch

if TYPE_CHECKING:
    from limelight._base.arrays import Float32
    from limelight._native._kernels import Csr


@dataclass(frozen=True, kw_only=True)
class IALSConfig(FactorConfig):
    """The settings of :class:`IALS`: those that all factor models have."""


class IALS(FactorModel):
    """Implicit alternating least squares, without exposure control.

    An observed pair should score 1, all others 0 with a small weight. Every update is exact. The
    regularisation of a row grows with the data behind it.

    Parameters are the fields of :class:`~limelight.models.ials.IALSConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.IALS(factors=8, epochs=5).fit(data)
    >>> ids, scores = model.recommend(users=[0, 7], k=3)
    >>> ids.shape
    (2, 3)
    """

    config: IALSConfig
    __init__ = hyperparameters(IALSConfig)

    def _method(self, n_users: int) -> FactorMethod:
        """Alternate exact solves; the weight of exposure is 0 for any number of users."""
        del n_users
        return FactorMethod(0.0, ials_epoch)

    def _fold_in(self, rows: Csr) -> Float32:
        return self._fold_in_alone(rows)
