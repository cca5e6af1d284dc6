"""How a fit went: its objective, and how much each epoch still changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from limelight._base.errors import DataError
from limelight.report.figures.style import PALETTE, add_legend, add_title, colour, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CHANGES = {
    "residual_V": "items V",
    "residual_U": "users U",
    "residual_s": "mean user s",
    "residual_w": "dual w",
    "feasibility": "distance of s from mean(U)",
}
_QUALITY = {"ndcg": "nDCG@100 of validation users"}


@runtime_checkable
class Fitted(Protocol):
    """What was fitted, and kept a trace of it."""

    @property
    def learned(self) -> Any:
        """What the fit left behind, with its ``trace``."""


def convergence(
    model: Fitted | Sequence[Any], *, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how a fit went: the objective on the left axis, and what else was traced on the right.

    For factor models that is how much an epoch still changed, on a logarithmic axis; what never
    changed is left out. For neural models it is the accuracy for validation users. Points are the
    epochs that were measured: fit with ``trace_every=1`` to see all of them.

    Parameters
    ----------
    model
        A fitted model, or its ``trace_``.
    title
        What the figure shows; by default what the last measured epochs did to the objective.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Those of the objective.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(300, 100, 4000).interactions
    >>> model = ll.ExADMM(factors=8, exposure_weight=1e-3, trace_every=1).fit(data)
    >>> ax = ll.plot.convergence(model)
    >>> ax.get_xlabel()
    'Epoch'
    """
    trace = _trace_of(model)
    epochs = [record.epoch for record in trace]
    with drawing(ax) as axes:
        objective = [record.objective for record in trace]
        lines = axes.plot(epochs, objective, ".-", color=PALETTE[0], label="objective (left)")
        axes.set(xlabel="Epoch", ylabel="Objective")
        axes.locator_params(axis="x", integer=True)
        right = axes.twinx()
        right.grid(visible=False)
        lines += _draw_right(right, epochs, trace)
        # Curves may pass through every corner, so that only below the axes there is room.
        add_legend(right, handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
        add_title(axes, title or _change_title(trace))
    return axes


def _trace_of(model: Any) -> list[Any]:
    trace = model.learned.trace if isinstance(model, Fitted) else model
    if not isinstance(trace, Sequence) or not all(hasattr(one, "objective") for one in trace):
        message = f"not a model or its trace: {model!r}"
        raise DataError(message, hint="pass a fitted model, or model.trace_")
    if not trace:
        message = f"no trace to draw: {model!r}"
        raise DataError(message, hint="fit a model that learns by epochs")
    return list(trace)


def _draw_right(right: Axes, epochs: list[int], trace: Sequence[Any]) -> list[Any]:
    is_neural = hasattr(trace[0], "ndcg")
    shown = _QUALITY if is_neural else _changes(trace)
    right.set_yscale("linear" if is_neural else "log")
    right.set_ylabel("nDCG" if is_neural else "Change in the last epoch")
    lines = []
    for number, (name, label) in enumerate(shown.items(), start=1):
        values = [getattr(record, name) for record in trace]
        lines += right.plot(epochs, values, ".-", color=colour(number), label=label, lw=1)
    return lines


def _changes(trace: Sequence[Any]) -> dict[str, str]:
    """Name what ever changed; if s never did, its distance from mean(U) means nothing."""
    moved = {name for name in _CHANGES if any(getattr(record, name) > 0 for record in trace)}
    if "residual_s" not in moved:
        moved -= {"feasibility"}
    return {name: label for name, label in _CHANGES.items() if name in moved}


def _change_title(trace: Sequence[Any]) -> str:
    last = trace[-1]
    if len(trace) == 1:
        return f"Objective {last.objective:.6g} after epoch {last.epoch:.0f}"
    before = trace[-2]
    change = (last.objective - before.objective) / (abs(before.objective) or 1.0)
    verb = "raised" if change > 0 else "lowered"
    epochs = last.epoch - before.epoch
    which = "last epoch" if epochs == 1 else f"last {epochs:.0f} epochs"
    return f"The {which} {verb} the objective by {100 * abs(change):.2g} %"
