"""Why an item scores as it does: what each item of a history adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.documents import Document, Table, cut_middle
from limelight._base.errors import SolveError
from limelight._base.text import percent
from limelight.solve.problem import gramian
from limelight.solve.state import pad_factors

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.data.interactions import Ids
    from limelight.solve.problem import Problem


class Contributions(NamedTuple):
    """What the items of a history add to a score, in their order, and what exposure adds."""

    parts: Float64
    exposure: float | None = None
    """None for a model without control of exposure, or with control in each part; else below 0."""


@dataclass(frozen=True)
class Explanation:
    """A score, and what it is made of: the parts and what exposure adds sum to it.

    Examples
    --------
    >>> found = Explanation("Alien", 0.5, (("Aliens", 0.75), ("Cats", -0.125)), exposure=-0.125)
    >>> print(found)
    Score of 'Alien': 0.5
    history                   adds  share of the score
    Aliens                    0.75               150 %
    Cats                    -0.125               -25 %
    (control of exposure)   -0.125               -25 %
    """

    item_id: Any
    score: float
    parts: tuple[tuple[Any, float], ...]
    """Own ids of the items of the history and what each adds, the largest first."""
    exposure: float | None = None
    """What the control of exposure adds, usually below 0; None for a model without it."""

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        rows, gap = cut_middle([(str(item), part) for item, part in self.parts], "items")
        if self.exposure is not None:
            rows.append(("(control of exposure)", self.exposure))
        # Shares of a score that is 0 or below would change their sign.
        shares = [percent(part / self.score, 0) if self.score > 0 else "" for _, part in rows]
        shown = [(*row, share) for row, share in zip(rows, shares, strict=True)]
        table = Table(("history", "adds", "share of the score"), shown)
        return Document(f"Score of {self.item_id!r}: {self.score:.4g}", [table], gap)

    def __str__(self) -> str:
        title, tables, notes = self.document()
        return "\n".join([title, *(table.text() for table in tables), *notes])

    def _repr_html_(self) -> str:
        return self.document().html()


def explanation(found: Contributions, history: Int32, item: int, item_ids: Ids) -> Explanation:
    """Name what was found by the items' own ids."""
    order = np.argsort(-found.parts, kind="stable")
    ids, parts = item_ids[history[order]].tolist(), found.parts[order].tolist()
    score = float(found.parts.sum()) + (found.exposure or 0.0)
    return Explanation(
        item_ids[[item]].tolist()[0], score, tuple(zip(ids, parts, strict=True)), found.exposure
    )


def fold_in_parts(
    problem: Problem, V: Float32, item: int, price: Float64 | None = None
) -> Contributions:
    """Take a score apart that fold-in gives to the only user of a problem.

    Her score is v_j^T A^-1 (sum_i w_i v_i - price), so that item i adds w_i v_j^T A^-1 v_i,
    exactly; without weights w_i is 1.
    """
    G = gramian(pad_factors(V), problem.threads)[: V.shape[1], : V.shape[1]]
    H = V[problem.rows.indices].astype(np.float64)
    weights = problem.rows.weights
    weighted = H if weights is None else H * weights[:, None]
    A = problem.unobserved_weight * G + H.T @ weighted
    A[np.diag_indices_from(A)] += problem.users.regularization[0]
    try:
        toward = np.linalg.solve(A, V[item].astype(np.float64))
    except np.linalg.LinAlgError as error:
        message = "the vector of this history is not determined, so no score can be explained"
        raise SolveError(message, hint=problem.advice) from error
    return Contributions(weighted @ toward, None if price is None else -float(price @ toward))
