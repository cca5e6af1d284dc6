"""The whole trade-off: accuracy and exposure along a method's control."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.progress import progress_bar
from limelight._base.seeds import seed_of
from limelight._base.settings import check_choice, check_integer
from limelight._native import resolve_threads
from limelight.control.controls import ExposureControl, Located, RerankControl, next_strength
from limelight.control.decide import law_of
from limelight.control.frontier_folder import PLAIN, FrontierFolder
from limelight.control.frontier_result import (
    Frontier,
    FrontierPoint,
    PointFigures,
    ShownFrontier,
    mark_front,
)
from limelight.control.population import as_population, sitting_of
from limelight.data.interactions import Interactions
from limelight.data.split import as_split
from limelight.models.ease import EASE
from limelight.models.exadmm import ExADMM
from limelight.report.exhibit import measure_lists
from limelight.rerank.targets.serving import Served
from limelight.store.checkpoint import digest

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from limelight._base.arrays import Int32
    from limelight._base.seeds import RandomState
    from limelight.control.controls import ModelControl
    from limelight.control.population import For, Sitting, TargetPopulation
    from limelight.data.split import Split
    from limelight.rerank.relevance import Relevance
    from limelight.rerank.targets.serving import Serve

_EXPOSURE = {"exadmm": ExADMM, "ease": EASE}
_RERANKERS: dict[str, Serve] = {
    "best-response": "batch", "online": "stream", "prices": "stateless"
}  # fmt: skip
METHODS = (*_EXPOSURE, *_RERANKERS)
_OURS = (
    "exposure_weight", "exposure_strength", "solver", "penalty", "learning_rate", "fold_in"
)  # fmt: skip
_FEWEST = 3
_PARTS = ("validation", "test")


def frontier(  # noqa: PLR0913
    data: Any,
    *,
    methods: Sequence[str] | None = None,
    model: ExADMM | EASE | None = None,
    points: int = 12,
    at: int = 20,
    population: For = "everyone",
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool | None = None,
    random_state: RandomState = 0,
    **settings: Any,
) -> Frontier:
    """Trace what evenness of exposure costs in accuracy, along the control of some methods.

    Exposure is that of everybody's lists, unless told otherwise; accuracy is that of held-out
    users, who are served among all others. The first point of every method is the plain model.
    Further points go where the curve has its widest gap. Validation users decide where points go
    and which of them are on the front; test users are only measured. Each fit of exADMM starts
    from the nearest one before it and has at most an eighth of the epochs that a fit from scratch
    may have; those of EASE follow from one fit.

    Parameters
    ----------
    data : Split, Interactions or sparse matrix
        What to learn from and to measure with. Unless it is split, a tenth of the users is held
        out for validation and another for the test, at most 5,000 each.
    methods
        "exadmm" and "ease" control exposure in training, by ``exposure_strength``. The others
        re-rank the plain model: "best-response" for users who are served together, "online" for one
        after the other, "prices" without any state. Unless given, the model's own and
        "best-response".
    model
        An ``EASE`` or an ``ExADMM`` without control, in place of ``settings``.
    points
        How many points each method has.
    at
        Length of the lists.
    population
        Whose lists exposure is of, as for ``ll.fit_to``; of more than 20,000 users, so many stand
        for all. "held-out" is the published protocol: validation and test users each alone.
    folder
        Where to write every point as soon as it is found, and in the end ``frontier.parquet``,
        ``frontier.json``, ``frontier.png``, the models on the front and ``exhibit``, of which
        ``limelight report`` makes a page. The same call goes on where it was interrupted.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.
    random_state
        The same seed gives the same front.
    **settings
        Of the factor model, such as ``factors``, ``epochs``, ``regularization`` and
        ``unobserved_weight``; see :class:`~limelight.models.exadmm.ExADMMConfig`. With ``model``,
        it has them.

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
    seed = seed_of(random_state)
    plain = _plain(settings, seed) if model is None else _checked_model(model, settings)
    own = type(plain).__name__.lower()
    names = _check_methods((own, "best-response") if methods is None else methods, own)
    check_integer("points", points, least=_FEWEST)
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    people = as_population(population, split)
    about = _about(plain, split) | {"methods": names, "points": points, "at": at}
    about["population"] = f"{people}, {digest(people.rows)}"
    kept = FrontierFolder(folder, about)
    n_points = 1 + len(names) * (points - 1)
    with (
        ExitStack() as stack,
        progress_bar("points", n_points, show=show_progress) as advance,
    ):
        tracer = _Tracer(plain, split, people, at, kept, advance, stack, seed)
        first = tracer.point(PLAIN, 0, 0.0, tracer.fit_plain)
        if kept.checkpoint is not None:
            kept.checkpoint.remove()
        found = [point for name in names for point in tracer.trace(name, first, points)]
        measured = tracer.sittings["test"].users.n_users
    lists = {point: kept.shown_at(point) for point in found}
    shown = ShownFrontier(split, plain.get_params(), lists)
    result = Frontier(tuple(found), at, population=str(people), users=measured, shown=shown)
    return kept.finish(result)


@dataclass
class _Tracer:
    """Finds the points of one method after the other."""

    unfitted: ExADMM | EASE
    """The model without control."""
    split: Split
    people: TargetPopulation
    at: int
    kept: FrontierFolder
    advance: Callable[[], None]
    """Called after every point."""
    stack: ExitStack
    """Closes candidates."""
    seed: int

    def __post_init__(self) -> None:
        both = None if self.people.held_out_alone else self._sitting(*_PARTS)
        self.sittings = {part: both or self._sitting(part) for part in _PARTS}

    def _sitting(self, *parts: str) -> Sitting:
        found = sitting_of(self.people, self.split, lambda: self._plain, self.at, parts)
        self.stack.callback(found.close)
        return found

    def trace(self, name: str, first: FrontierPoint, points: int) -> list[FrontierPoint]:
        """Find so many points, the first of which is known; from strength 0 up."""
        strengths = ExposureControl.first if name in _EXPOSURE else RerankControl.first
        found = [replace(first, method=name)]
        base = first.validation.ndcg or 1.0
        while len(found) < points:
            tried = [
                Located(point.strength, point.validation.ndcg / base, point.validation.gini)
                for point in found
            ]
            strength = next_strength(tried, strengths)
            found.append(self.point(name, len(found), strength, partial(self._control, name)))
        return sorted(mark_front(found), key=lambda point: point.strength)

    def point(
        self, name: str, number: int, strength: float, build: Callable[[Sitting], ModelControl]
    ) -> FrontierPoint:
        """Make the lists of a strength and measure them, unless that was done before."""

        def find_out() -> FrontierPoint:
            started = time.perf_counter()
            different = {id(one): one for one in self.sittings.values()}
            controls = {key: build(sitting) for key, sitting in different.items()}
            begun = time.perf_counter()
            made = {key: _lists(control, strength) for key, control in controls.items()}
            seconds = time.perf_counter() - begun
            [trace, *_] = [control.trace(strength) for control in controls.values()]
            (_, validation), (shown, test) = (
                self._measure(part, made[id(self.sittings[part])], trace) for part in _PARTS
            )
            wall_seconds = time.perf_counter() - started
            self.kept.keep_shown(f"{name}-{number}", shown)
            return FrontierPoint(
                name,
                number,
                strength,
                validation=PointFigures.of(validation, self.at),
                test=PointFigures.of(test, self.at),
                seconds=trace[-1].seconds if trace else seconds,
                wall_seconds=wall_seconds,
                epochs=trace[-1].epoch if trace else 0,
            )

        found = self.kept.once(f"{name}-{number}", find_out)
        if name in (PLAIN, *_EXPOSURE):
            self.kept.fits.add_known(strength)
        self.advance()
        return found

    def _measure(self, part: str, ids: Int32, trace: Any) -> Any:
        """Measure held-out users who were served among all others."""
        rows, users = self.sittings[part].parts[part]
        return measure_lists(ids[rows], users, self.at, trace, everybody=ids)

    def fit_plain(self, sitting: Sitting) -> ExposureControl:
        """Fit the model without control, from scratch."""
        if 0.0 not in self.kept.fits:
            train, checkpoint = self.split.train, self.kept.checkpoint
            self.kept.fits[0.0] = self.unfitted.fit(
                train, show_progress=False, checkpoint=checkpoint
            )
        return self._exposure(sitting)

    def _exposure(self, sitting: Sitting) -> ExposureControl:
        config, fits = self.unfitted.config, self.kept.fits
        name = type(self.unfitted).__name__.lower()
        return ExposureControl(name, sitting, config, self.split.train, fits)

    def _control(self, name: str, sitting: Sitting) -> ModelControl:
        """Return a control; a re-ranker's candidates are there before a point is timed."""
        if name in _EXPOSURE:
            return self._exposure(sitting)
        config = self._plain.config
        settings = {
            "candidates": sitting.users.width,
            "random_state": self.seed,
            "num_threads": config.num_threads,
        }
        sitting.users.pool(self._law)
        served = Served(_RERANKERS[name], self._law, settings=settings)
        return RerankControl(name, sitting, served, resolve_threads(config.num_threads))

    @cached_property
    def _plain(self) -> ExADMM | EASE:
        fitted: ExADMM | EASE = self.kept.fits[0.0]
        return fitted

    @cached_property
    def _law(self) -> Relevance:
        """What candidates are worth, by what validation users were found to like."""
        return law_of(self._plain, self.split, self.at)


def _lists(control: ModelControl, strength: float) -> Int32:
    """Make the lists of a point, which depend on no other point; those of a market settle."""
    if not strength and isinstance(control, RerankControl):
        return control.sitting.own
    ids = control.lists(strength)
    return control.lists(strength) if isinstance(control, RerankControl) else ids


def _check_methods(methods: Sequence[str], own: str) -> list[str]:
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        check_choice("method", name, METHODS)
        if name in _EXPOSURE and name != own:
            message = f"the front of {own} has no such method: {name!r}"
            raise ConfigError(
                message, hint=f"use {own!r}, or model=ll.{_EXPOSURE[name].__name__}()"
            )
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


def _checked_model(model: ExADMM | EASE, settings: dict[str, Any]) -> ExADMM | EASE:
    """Refuse a model that has no front, that has a strength already, or settings beside it."""
    if not isinstance(model, ExADMM | EASE):
        message = f"a front is traced with ExADMM or EASE: {model!r}"
        raise ConfigError(message, hint="for any other model, use fit_to with one target")
    given = {name: value for name, value in model.config.changed().items() if name in _OURS}
    for name, value in (settings | given).items():
        message = f"the model has the settings of its front, without control: {name}={value!r}"
        raise ConfigError(message, hint="leave it out, or pass it to the model if it is no control")
    exact = {"solver": "exact"} if isinstance(model, ExADMM) else {}
    plain: ExADMM | EASE = type(model)(**model.config.changed(), **exact)
    return plain


def _about(plain: ExADMM | EASE, split: Split) -> dict[str, Any]:
    """Say what a front is of; the number of threads makes no difference to it."""
    weight = None if split.train.weights is None else "values"
    held_out = [
        Interactions.from_matrix(matrix, weight=weight).fingerprint()
        for part in (split.validation, split.test)
        for matrix in (part.history, part.targets)
    ]
    data = " ".join([split.train.fingerprint(), *held_out])
    about = {"kind": "a frontier", "data": data} | plain.get_params()
    del about["num_threads"]
    return about
