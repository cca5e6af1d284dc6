"""Figures: who holds how much of the exposure, and what evenness costs.

Each function returns matplotlib axes, and draws into those of a figure of your own with ``ax=``.
Matplotlib is an extra: ``pip install 'limelight[plot]'``.

>>> import limelight as ll
>>> ax = ll.plot.lorenz({"plain": [7, 2, 1, 0], "controlled": [3, 3, 2, 2]})
>>> [text.get_text() for text in ax.get_legend().get_texts()]
['plain (Gini 0.55)', 'controlled (Gini 0.10)']
"""

from limelight.report.convergence import convergence
from limelight.report.exposure import exposure
from limelight.report.figures import save
from limelight.report.front import front
from limelight.report.groups import groups
from limelight.report.lorenz import lorenz
from limelight.report.points import Point

__all__ = ["Point", "convergence", "exposure", "front", "groups", "lorenz", "save"]
