"""The one learning problem of a race: the same loss, the same first factors, the same measures.

All libraries can minimise iALS's loss with one weight for all norms, which is the case
``regularization_exponent=0`` of ours. Frequency scaling would leave implicit and LensKit out, and
costs no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from limelight.benchmarks.work import Shape
from limelight.evaluate.accuracy import ndcg
from limelight.models.ials import IALSConfig
from limelight.models.training import first_state, problem_of, unpadded
from limelight.recommend.fold_in import fold_in_alone
from limelight.recommend.histories import history_rows
from limelight.recommend.topk import ItemIndex
from limelight.solve.measure import measure_objective
from limelight.solve.problem import sparse_rows
from limelight.solve.state import pad_factors

if TYPE_CHECKING:
    from limelight._arrays import Float32, Float64
    from limelight.benchmarks.data import DataSet
    from limelight.solve.problem import Problem

K = 20
UNOBSERVED_WEIGHT = 0.1
_PER_INTERACTION = 0.003


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
        """Return the factors as they stand."""


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
