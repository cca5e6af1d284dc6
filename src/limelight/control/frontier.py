"""The whole trade-off: accuracy and exposure along a method's control."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.progress import progress_bar
from limelight._base.settings import check_choice, check_integer
from limelight.control.frontier_folder import PLAIN, FrontierFolder
from limelight.control.frontier_methods import RERANKERS, Served, Training, Tried, next_strength
from limelight.control.frontier_result import (
    Frontier,
    FrontierPoint,
    Measured,
    exhibit_of,
    mark_front,
)
from limelight.control.held_out_users import as_split
from limelight.data.interactions import as_interactions
from limelight.models.exadmm import ExADMM
from limelight.report.exhibit import measure_lists

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from limelight.control.frontier_methods import Made, Method
    from limelight.data.split import Split

METHODS = ("exadmm", *RERANKERS)
_OURS = (
    "exposure_weight", "exposure_strength", "solver", "penalty", "learning_rate", "fold_in"
)  # fmt: skip
_FEWEST = 3


def frontier(
    data: Any,
    *,
    methods: Sequence[str] = ("exadmm", "best-response"),
    points: int = 12,
    at: int = 20,
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool | None = None,
    random_state: int = 0,
    **settings: Any,
) -> Frontier:
    """Trace what evenness of exposure costs in accuracy, along the control of some methods.

    The first point of every method is the plain model. Further points go where the curve has its
    widest gap. Validation users decide where points go and which of them are on the front; test
    users are only measured. Each fit of exADMM starts from the nearest one before it and needs an
    eighth of the epochs, so that twelve points cost two to three fits from nothing.

    Parameters
    ----------
    data : Split, Interactions or sparse matrix
        What to learn from and to measure with. Unless it is split, a tenth of the users is held
        out for validation and another for the test, at most 5,000 each.
    methods
        "exadmm" controls exposure in training, by ``exposure_strength``. The others re-rank the
        plain model: "best-response" for users who are served together, "online" for one after the
        other, "prices" without any state.
    points
        How many points each method has.
    at
        Length of the lists.
    folder
        Where to write every point as soon as it is found, and in the end ``frontier.parquet``,
        ``frontier.json``, ``frontier.png``, the models on the front and ``exhibit``, of which
        ``limelight report`` makes a page. The same call goes on
        where it was interrupted.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.
    random_state
        The same seed gives the same front.
    **settings
        Of the factor model, such as ``factors``, ``epochs``, ``regularization`` and
        ``unobserved_weight``; see :class:`~limelight.models.exadmm.ExADMMConfig`.

    Returns
    -------
    Frontier
        The points, as a table with ``to_table()``, as a figure with ``plot(path)`` and as a page
        to look at with ``report(path)``.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(600, 100, 9000).interactions
    >>> front = ll.frontier(data, methods=["best-response"], points=4, at=10, factors=8)
    >>> [round(point.strength, 2) for point in front.points]
    [0.0, 0.1, 0.55, 3.0]
    >>> front.best(max_ndcg_loss=0.2).test.gini < front.points[0].test.gini
    True
    """
    names = _check_methods(methods)
    check_integer("points", points, least=_FEWEST)
    plain = _plain(settings, random_state)
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    about = _about(plain, split) | {"methods": names, "points": points, "at": at}
    kept = FrontierFolder(folder, about)
    n_points = 1 + len(names) * (points - 1)
    with (
        Served(kept, split, at) as served,
        progress_bar("points", n_points, show=show_progress) as advance,
    ):
        training = Training(plain, split, at, kept)
        tracer = _Tracer(split, at, kept, advance)
        first = tracer.point(PLAIN, 0, 0.0, training.make_plain)
        found: list[FrontierPoint] = []
        for name in names:
            method = training if name == "exadmm" else RERANKERS[name](served)
            found += tracer.trace(name, method, first, points)
    front = Frontier(tuple(found), at)
    exhibit = exhibit_of(front, split, plain.get_params(), kept.sight)
    return kept.finish(replace(front, exhibit=exhibit))


class _Tracer:
    """Finds the points of one method after the other."""

    def __init__(
        self, split: Split, at: int, kept: FrontierFolder, advance: Callable[[], None]
    ) -> None:
        self._split, self._at, self._kept, self._advance = split, at, kept, advance

    def trace(
        self, name: str, method: Method, first: FrontierPoint, points: int
    ) -> list[FrontierPoint]:
        """Find so many points, the first of which is known; from strength 0 up."""
        found = [replace(first, method=name)]
        base = first.validation.ndcg or 1.0
        while len(found) < points:
            tried = [
                Tried(point.strength, point.validation.ndcg / base, point.validation.gini)
                for point in found
            ]
            strength = next_strength(tried, method.first)
            make = partial(method.make, strength, [point.strength for point in found])
            found.append(self.point(name, len(found), strength, make))
        return sorted(mark_front(found), key=lambda point: point.strength)

    def point(
        self, name: str, number: int, strength: float, make: Callable[[], Made]
    ) -> FrontierPoint:
        """Make the lists of a strength and measure them, unless that was done before."""

        def find_out() -> FrontierPoint:
            started = time.perf_counter()
            made = make()
            _, validation = measure_lists(made.validation, self._split.validation, self._at)
            sight, test = measure_lists(made.test, self._split.test, self._at, made.trace)
            seconds = time.perf_counter() - started
            self._kept.see(f"{name}-{number}", sight)
            before, after = (Measured.of(figures, self._at) for figures in (validation, test))
            return FrontierPoint(
                name, number, strength, before, after, made.seconds, seconds, made.epochs
            )

        found = self._kept.once(f"{name}-{number}", find_out)
        self._advance()
        return found


def _check_methods(methods: Sequence[str]) -> list[str]:
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        check_choice("method", name, METHODS)
    if not names or len(set(names)) < len(names):
        message = f"methods must be one or several different names: {names!r}"
        raise ConfigError(message, hint=f"choose from: {', '.join(METHODS)}")
    return names


def _plain(settings: dict[str, Any], random_state: int) -> ExADMM:
    """Make the model without control, which is also the start of every other."""
    for name in _OURS:
        if name in settings:
            message = f"the front sets {name} by itself: {name}={settings[name]!r}"
            raise ConfigError(message, hint="leave it out; ExADMM takes it for a single model")
    plain: ExADMM = ExADMM(**settings, random_state=random_state, solver="exact", fold_in="price")
    return plain


def _about(plain: ExADMM, split: Split) -> dict[str, Any]:
    """Say what a front is of; the number of threads makes no difference to it."""
    held_out = [
        as_interactions(matrix).fingerprint()
        for part in (split.validation, split.test)
        for matrix in (part.history, part.targets)
    ]
    about = {"data": " ".join([split.train.fingerprint(), *held_out])} | plain.get_params()
    del about["num_threads"]
    return about
