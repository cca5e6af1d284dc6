"""What tuning tried: the accuracy of every trial, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from limelight.report.figures.style import MUTED, add_legend, add_title, colour, drawing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


class TriedSettings(Protocol):
    """A trial: what it found, and in which round."""

    @property
    def ndcg(self) -> float:
        """The nDCG of validation users, the mean of their folds."""

    @property
    def series(self) -> str:
        """What it has in common with others, such as the number of factors."""


def tuning(
    trials: Sequence[TriedSettings], *, at: int, folds: int = 1, ax: Axes | None = None
) -> Axes:
    """Draw the nDCG of validation users trial by trial, and the best so far as a line."""
    values = [trial.ndcg for trial in trials]
    with drawing(ax) as axes:
        best = np.maximum.accumulate(values)
        numbers = np.arange(1, len(values) + 1)
        axes.step(numbers, best, where="post", color=MUTED, lw=1, label="best so far")
        for number, name in enumerate(dict.fromkeys(trial.series for trial in trials)):
            own = [i for i, trial in enumerate(trials) if trial.series == name]
            axes.plot(numbers[own], [values[i] for i in own], "o", color=colour(number), label=name)
        of = "validation users" if folds == 1 else f"{folds} folds of validation users"
        axes.set(xlabel="Trial", ylabel=f"nDCG@{at} of {of}")
        axes.locator_params(axis="x", integer=True)
        add_legend(axes, loc="lower right")
        add_title(axes, f"{len(values)} trials: nDCG@{at} from {values[0]:.4f} to {best[-1]:.4f}")
    return axes
