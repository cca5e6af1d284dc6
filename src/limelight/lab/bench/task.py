"""The one learning problem of a race: its data, its loss, its first factors, and our own fits.

All libraries can minimise iALS's loss with one weight for all norms, which is the case
``regularization_exponent=0`` of ours. Frequency scaling would leave implicit and LensKit out, and
costs no time. Our fits run one epoch at a time, as the fitting loop does, but without its trace.

Floating-point operations are counted as a method needs them, for shares of the machine's peak: a
multiplication and an addition are two. Left out are eigendecompositions (once a half-step) and
everything that is not arithmetic. d is the number of factors, n the length of a history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from limelight._base.errors import ConfigError
from limelight.data import marketplace, read, split_users
from limelight.metrics.accuracy import ndcg
from limelight.models.factor_model import first_state, problem_of, unpadded
from limelight.models.ials import IALSConfig
from limelight.recommend.fold_in import fold_in_alone, history_rows
from limelight.recommend.index import ItemIndex
from limelight.solve.cost import row_solve
from limelight.solve.epochs import exadmm_epoch, ials_epoch, mean_user_epoch
from limelight.solve.problem import gramian, sparse_rows
from limelight.solve.state import check_finite, measure_objective, pad_factors
from limelight.solve.step_sizes import StepSizes
from limelight.solve.steps import CG_STEPS, exact_u_step

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64
    from limelight.data import Interactions, Split
    from limelight.solve.problem import Problem


SHAPES = {"ml-1m-like": (6_000, 3_500, 575_000), "gowalla-like": (30_000, 41_000, 1_030_000)}
"""Users, items and interactions of the built-in sets."""
_HELD_OUT = 500
_NUMBERS = {"min_rating": float, "min_user": int, "min_item": int, "core": int}
_TEXTS = ("user", "item", "rating", "timestamp", "filter_order")


@dataclass(frozen=True, eq=False)
class DataSet:
    """Interactions with a name; some users are held out to measure accuracy on."""

    name: str
    interactions: Interactions
    source: str = "made up"

    @cached_property
    def split(self) -> Split:
        """Training users, and at most 500 others to test on."""
        held_out = max(1, min(_HELD_OUT, self.interactions.n_users // 10))
        return split_users(self.interactions, validation=0, test=held_out)

    def describe(self) -> dict[str, Any]:
        """Say where the data come from, and how large the training part is."""
        train = self.split.train
        sizes = {"users": train.n_users, "items": train.n_items, "interactions": train.nnz}
        return {"source": self.source, **sizes}


def built_in(name: str) -> DataSet:
    """Make up a marketplace shaped like a well-known data set."""
    users, items, interactions = SHAPES[name]
    return DataSet(name, marketplace(users, items, interactions).interactions)


def read_named(text: str) -> DataSet:
    """Read a data set as ``--data`` names it: NAME=FILE, then settings of `limelight.read`."""
    name, path, settings = parse_named(text)
    return DataSet(name, read(path, **settings), source=path.rpartition("/")[2])


def parse_named(text: str) -> tuple[str, str, dict[str, Any]]:
    """Take ``NAME=FILE,setting=value,...`` apart.

    Examples
    --------
    >>> parse_named("ml-1m=ratings.parquet,rating=stars,min-rating=4")
    ('ml-1m', 'ratings.parquet', {'rating': 'stars', 'min_rating': 4.0})
    """
    first, *rest = text.split(",")
    name, is_named, path = first.partition("=")
    if not (is_named and name and path):
        message = f"--data must be NAME=FILE: {text!r}"
        hint = "for example --data ml-1m=ratings.parquet,rating=rating,min-rating=4"
        raise ConfigError(message, hint=hint)
    return name, path, dict(_setting(part) for part in rest)


def _setting(part: str) -> tuple[str, Any]:
    given, _, value = part.partition("=")
    name = given.strip().replace("-", "_")
    if name in _TEXTS and value:
        return name, value
    try:
        return name, _NUMBERS[name](value)
    except (KeyError, ValueError):
        message = f"not a setting of --data: {part!r}"
        known = ", ".join(known.replace("_", "-") for known in (*_TEXTS, *_NUMBERS))
        raise ConfigError(message, hint=f"after the file may follow: {known}") from None


class Shape(NamedTuple):
    """What the cost of an epoch depends on: how long the histories of users and items are."""

    users: Int64
    items: Int64
    factors: int

    @classmethod
    def of(cls, data: Interactions, factors: int) -> Shape:
        """Count the lengths of the histories in some interactions."""
        by_item = np.bincount(data.indices, minlength=data.n_items)
        return cls(np.diff(data.indptr), by_item, factors)

    @property
    def squares(self) -> float:
        """d^2 for every user and every item."""
        return float(self.factors**2) * (len(self.users) + len(self.items))

    def solve_flops(self, lengths: Int64) -> float:
        """Count exact solves of rows of these lengths."""
        return float(np.sum(row_solve(lengths.astype(np.float64), self.factors)))


def ials_epoch_flops(shape: Shape) -> float:
    """Count an exact epoch: both sides solved, a Gramian and two rotations of each."""
    solves = shape.solve_flops(shape.users) + shape.solve_flops(shape.items)
    return solves + 4 * shape.squares + shape.squares


def cg_epoch_flops(shape: Shape) -> float:
    """Count an epoch by descent: histories times vectors, and one more rotation a side.

    There is a product for the first residual and one for each step.
    """
    products = 2 * (1 + CG_STEPS) * 4.0 * shape.users.sum() * shape.factors
    return float(products) + 6 * shape.squares + shape.squares


def exadmm_epoch_flops(shape: Shape) -> float:
    """Count an epoch of exADMM: the items solved, a gradient step of the users, two Gramians."""
    d = shape.factors
    gradient = 4.0 * shape.users.sum() * d + 2.0 * len(shape.users) * d**2
    solves = shape.solve_flops(shape.items)
    return solves + 2 * shape.squares + float(gradient) + shape.squares


K = 20
UNOBSERVED_WEIGHT = 0.1
_PER_INTERACTION = 0.003
FIXED = MappingProxyType(
    {
        "regularization": _PER_INTERACTION,
        "unobserved_weight": UNOBSERVED_WEIGHT,
        "tolerance": 0.0,
    }
)
"""Settings of models that are measured: the same for all data, and all epochs run."""


class Learnt(NamedTuple):
    """Factors on the scale of our loss, and the price of exposure if there is one."""

    U: Float32
    V: Float32
    price: Float64 | None = None


class Trainer(Protocol):
    """Somebody's fit, one epoch at a time."""

    who: str

    def epoch(self) -> None:
        """Update all users and all items once."""

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, a number of factors and of threads, and the loss that all shall minimise."""

    data: DataSet
    factors: int
    threads: int

    @cached_property
    def regularization(self) -> float:
        """The weight of the norms: what our frequency scaling gives a row on average."""
        train = self.data.split.train
        pairs = 2 * (train.nnz + UNOBSERVED_WEIGHT * train.n_users * train.n_items)
        return _PER_INTERACTION * pairs / (train.n_users + train.n_items)

    @cached_property
    def config(self) -> IALSConfig:
        """Our settings for this loss."""
        return IALSConfig(
            factors=self.factors,
            regularization=self.regularization,
            regularization_exponent=0.0,
            unobserved_weight=UNOBSERVED_WEIGHT,
            num_threads=self.threads,
        )

    @cached_property
    def problem(self) -> Problem:
        """The training data and the weights of the loss."""
        train = self.data.split.train
        rows = sparse_rows(train.indptr, train.indices, train.n_items)
        return problem_of(self.config, rows, 0.0)

    @cached_property
    def shape(self) -> Shape:
        """What the cost of an epoch depends on."""
        return Shape.of(self.data.split.train, self.factors)

    def first_factors(self) -> tuple[Float32, Float32]:
        """Return fresh copies of the factors from which everybody starts."""
        state = first_state(self.config, self.problem, None)
        return unpadded(state.U, self.factors), unpadded(state.V, self.factors)

    def objective(self, learnt: Learnt) -> float:
        """Return the loss of somebody's factors."""
        U, V = pad_factors(learnt.U), pad_factors(learnt.V)
        return measure_objective(self.problem, U, V).loss

    def ndcg(self, learnt: Learnt) -> float:
        """Fold the held-out users in, rank the items for them, and return their nDCG@20."""
        test = self.data.split.test
        rows = history_rows(test.history, self.data.split.train.item_ids)
        V, price = pad_factors(learnt.V), None
        if learnt.price is not None:
            price = np.zeros(V.shape[1])
            price[: self.factors] = learnt.price
        U = unpadded(fold_in_alone(problem_of(self.config, rows, 0.0), V, price), self.factors)
        lists = ItemIndex(learnt.V, self.threads).search(U, K, rows)
        return ndcg(lists.ids, test.targets, K)


EXADMM_PERIOD = 5
"""Epochs from one refresh of the curvature to the next: the cost of an epoch is their mean."""


class Ials:
    """limelight's iALS; an epoch is both half-steps and the check that they are finite."""

    def __init__(self, task: Task, row_solver: Literal["cholesky", "cg"] = "cholesky") -> None:
        self.who = "limelight iALS" if row_solver == "cholesky" else "limelight iALS, CG"
        self._factors = task.factors
        self.problem = replace(task.problem, row_solver=row_solver)
        self.state = first_state(task.config, self.problem, None)

    def epoch(self) -> None:
        """Update all users and all items once."""
        ials_epoch(self.problem, self.state)
        self.state.epoch += 1
        check_finite(self.problem, self.state)

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far."""
        U, V = (unpadded(X, self._factors) for X in (self.state.U, self.state.V))
        return Learnt(U, V)


class ExAdmm:
    """limelight's exADMM, at an exposure weight in the middle of the interesting range."""

    who = "limelight exADMM"

    def __init__(self, task: Task) -> None:
        n_users = task.problem.n_users
        self._factors = task.factors
        # The penalty meets a user's update as exposure / n_users^2 * n_users beside a0.
        self.problem = replace(task.problem, exposure=UNOBSERVED_WEIGHT * n_users)
        self.state = first_state(task.config, self.problem, None)
        self.step_sizes = StepSizes(learning_rate=None, penalty=None)

    def epoch(self) -> None:
        """Take the steps V, U, s and w once."""
        exadmm_epoch(self.problem, self.state, self.step_sizes)
        self.state.epoch += 1
        check_finite(self.problem, self.state)

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far, and the price at which users fold in."""
        problem, state = self.problem, self.state
        state.settle(problem.threads)
        G_V = gramian(state.V, problem.threads)
        price = problem.exposure / problem.n_users * (G_V @ state.s)
        U, V = (unpadded(X, self._factors) for X in (state.U, state.V))
        return Learnt(U, V, np.asarray(price[: self._factors]))


class UserStep:
    """The user half of an epoch, as exADMM and as iALS take it, with the items left alone."""

    def __init__(self, task: Task) -> None:
        trained = ExAdmm(task)
        trained.epoch()
        self._exadmm = trained
        self._ials = Ials(task)

    def exadmm(self) -> None:
        """Take the steps U, s and w, and apply the shift that is left pending."""
        problem, state = self._exadmm.problem, self._exadmm.state
        G_V = gramian(state.V, problem.threads)
        mean_user_epoch(problem, state, self._exadmm.step_sizes, G_V)
        state.settle(problem.threads)
        state.epoch += 1

    def ials(self) -> None:
        """Solve for every user."""
        exact_u_step(self._ials.problem, self._ials.state)
