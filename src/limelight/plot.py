"""Figures: who holds how much of the exposure, and what evenness costs.

Each function returns matplotlib axes, and draws into those of a figure of your own with ``ax=``.
Matplotlib is an extra: ``pip install 'limelight[plot]'``.

>>> import limelight as ll
>>> ax = ll.plot.lorenz({"plain": [7, 2, 1, 0], "controlled": [3, 3, 2, 2]})
>>> [text.get_text() for text in ax.get_legend().get_texts()]
['plain (Gini 0.55)', 'controlled (Gini 0.10)']
"""

from limelight.report.figures.convergence import convergence
from limelight.report.figures.exposures import exposure, lorenz
from limelight.report.figures.front import front
from limelight.report.figures.groups import groups
from limelight.report.figures.inputs import Point
from limelight.report.figures.style import save

__all__ = ["Point", "convergence", "exposure", "front", "groups", "lorenz", "save"]
