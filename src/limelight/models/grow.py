"""Users, items and pairs that arrive after a fit: only rows that they change are solved for.

New users are solved for against the items that the model knows, then new items against all users
who have them, then every user whose history changed against all items. Last come the new items
again: they are few, and only then are they shown nearly as often as after a fit.

Known items keep their vectors unless their histories have grown by a tenth. Known users whose
histories have grown by less take two steps of descent from where they are, which is as good and
takes a third of the time. All others are solved for exactly.

Where exposure is controlled, users are solved for at the price that the model has. What that
changes of the mean user then shifts the price, and all users by their mean response to it.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from limelight._base.errors import DataError, LimelightWarning, SolveError
from limelight._base.text import percent
from limelight.data.ids import positions
from limelight.data.interactions import Interactions
from limelight.data.rows import as_weights, by_pair, group, row_numbers
from limelight.models.feature_map import Lists, feature_map
from limelight.recommend.fold_in import as_weighted, take_columns, take_rows
from limelight.solve.exact import common_shift
from limelight.solve.problem import MeanTerm, gramian, largest_entry, padded_width, row_weights
from limelight.solve.state import State, pad_factors, told_in_words
from limelight.solve.steps import solve_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight._native._kernels import Csr
    from limelight.data.features import ItemFeatures
    from limelight.data.interactions import Ids
    from limelight.models.base import Model
    from limelight.models.learned import Learned
    from limelight.solve.problem import Problem

NEW = "new interactions"
_MUCH = 0.2
"""The share of new pairs from which a fit to everything is worth its time."""
_GROWN = 0.1
"""By which share the history of a known item has to grow, for its vector to be solved for again."""
_ROUNDING = 1e-12
"""By which share sums of the same weights may differ."""


def united(known: Learned, new: Any) -> Interactions:
    """Add pairs to the histories of a model; users and items that are new come after the others.

    Where the model has weights, those of a pair that it has are added up, and a pair without one
    weighs 1; where it has none, new ones are refused.

    Examples
    --------
    >>> import limelight as ll
    >>> from scipy.sparse import csr_array
    >>> model = ll.Popularity().fit(csr_array([[1, 0], [1, 1]]))
    >>> united(model.learned, csr_array([[0, 1, 0], [0, 0, 0], [0, 1, 1]]))
    Interactions(3 users x 3 items, 6 interactions)
    """
    seen, data = _histories(known), as_weighted(new, weighted=known.weighted, what=NEW)
    users, user_ids = _appended("user", known.user_ids, data.user_ids, has_ids=data.has_ids)
    items, item_ids = _appended("item", known.item_ids, data.item_ids, has_ids=data.has_ids)
    pairs = (
        np.concatenate([row_numbers(seen.indptr), users[row_numbers(data.indptr)]]),
        np.concatenate([seen.indices, items[data.indices]]),
    )
    rows, weights = group(*pairs, len(user_ids), len(item_ids)), None
    if known.weighted:
        each = np.concatenate([_weights(part) for part in (seen, data)])
        [summed] = by_pair(*pairs, len(item_ids), (each, np.add))
        weights = as_weights(summed)  # the interactions themselves refuse what is too large
    return Interactions(rows.indptr, rows.indices, user_ids, item_ids, weights=weights)


def _weights(pairs: Csr | Interactions) -> Float64:
    if pairs.weights is None:
        return np.ones(len(pairs.indices))
    return pairs.weights.astype(np.float64)


def _appended(what: str, known: Ids, ids: Ids, *, has_ids: bool = True) -> tuple[Int32, Ids]:
    """Number ids as a model does, new ones after the others; return all ids, too."""
    if not has_ids and not np.array_equal(known, np.arange(len(known))):
        message = f"the model knows its {what}s by ids such as {known.item(0)!r}, a matrix has none"
        raise DataError(message, hint="pass interactions with ids: ll.read(table)")
    numbers = positions(ids, known)
    new = numbers < 0
    numbers[new] = len(known) + np.arange(np.count_nonzero(new))
    more = ids[new]
    if not len(more):
        return numbers.astype(np.int32), known
    if known.dtype == object:
        more = np.array([str(one) for one in more.tolist()], dtype=object)
    elif more.dtype == object:
        message = f"the {what} ids of the model are integers, a new one is text: {more[0]!r}"
        raise DataError(message, hint="write new ids as those of the model are written")
    return numbers.astype(np.int32), np.concatenate([known, more])


def _histories(known: Learned) -> Csr:
    if known.seen is None:
        message = "the model was saved without histories, so it cannot grow"
        raise DataError(message, hint="save it with its histories, or fit to all interactions")
    return known.seen


def _note_much(before: NDArray[Any], after: NDArray[Any], *, weighted: bool) -> None:
    if before.sum() < (1 - _MUCH) * after.sum():
        share = 1 - before.sum() / after.sum()
        what = "the weight of all pairs is" if weighted else "the pairs are"
        message = (
            f"{percent(share, 0)} of {what} new: partial_fit solves for the rows that they change, "
            "but only a fit to all interactions also moves the others"
        )
        warnings.warn(message, LimelightWarning, stacklevel=4)


class Grower:
    """What grows the factors of a model, which itself is not changed.

    Parameters
    ----------
    known
        What the model has learnt.
    rows_of
        Hands interactions to the kernels.
    problem_of
        Returns the problem of some rows at some weight of exposure.
    exposure_of
        Returns the weight of exposure for so many users.
    """

    def __init__(
        self,
        known: Learned,
        rows_of: Callable[[Interactions], Csr],
        problem_of: Callable[[Csr, float], Problem],
        exposure_of: Callable[[int], float],
    ) -> None:
        self._known, self._rows_of = known, rows_of
        self._problem_of, self._exposure_of = problem_of, exposure_of

    def take_in(self, data: Interactions) -> Learned:
        """Return what is learnt once new interactions are united with those of the model."""
        before, rows = _histories(self._known), self._rows_of(data)
        weights = row_weights(before), row_weights(rows)
        users, grown = _heavier(*weights), _heavier(*weights, _GROWN)
        items = _heavier(_column_weights(before), _column_weights(rows), _GROWN)
        if not len(users) and not len(items) and before.n_entries == rows.n_entries:
            return self._known
        _note_much(*weights, weighted=self._known.weighted)
        if "exposure_pull" in self._known.arrays:
            # What the targets ask of known items is not kept: those cannot be solved for again.
            items = items[items >= before.n_columns]
        problem = self._problem_of(rows, self._exposure_of(rows.n_rows))
        state = self._extended(rows.n_rows, rows.n_columns)
        with (
            threadpool_limits(1, user_api="blas"),
            told_in_words(problem, "while new interactions were taken in"),
        ):
            self._solve_users(rows, users[users >= before.n_rows], state)
            of_items = take_columns(rows, items.astype(np.int32)).transpose()
            self._solve_items(of_items, items, state, problem.exposure)
            self._solve_users(rows, grown, state)
            self._solve_users(rows, np.setdiff1d(users, grown), state, "cg")
            self._solve_items(of_items, items, state, problem.exposure)
            arrays = self._settled(problem, state)
        return _learned_of(self._known, data, rows, arrays)

    def add_items(self, features: ItemFeatures, weights: Float32 | None = None) -> Learned:
        """Return what is learnt once items without interactions have vectors by their features.

        ``weights`` map features to vectors; without them, a map is learnt from items that have
        interactions. Items that the model does not know are appended.
        """
        seen = _histories(self._known)
        items, item_ids = _appended("item", self._known.item_ids, features.ids)
        arrays = seen.indptr, seen.indices, self._known.user_ids, item_ids
        data = Interactions(*arrays, weights=seen.weights)
        rows = self._rows_of(data)
        counts = np.bincount(seen.indices, minlength=len(item_ids))[items]
        if weights is not None and counts.all():
            return self._known
        state, cold = self._extended(rows.n_rows, rows.n_columns), counts == 0
        factors = len(self._known.arrays["mean_user"])
        if weights is None:
            warm, U = items[~cold], self._known.arrays["user_factors"]
            lists = Lists.of(U, state.V[:, :factors], seen, warm)
            args = features.matrix[~cold], state.V[warm, :factors], counts[~cold]
            weights = feature_map(*args, lists)
        state.V[items[cold], :factors] = features.matrix[cold] @ weights
        problem = self._problem_of(rows, self._exposure_of(rows.n_rows))
        with threadpool_limits(1, user_api="blas"):
            found = self._settled(problem, state) | {"feature_map": weights}
        known = replace(self._known, features=features.encoding.record())
        return _learned_of(known, data, rows, found)

    @property
    def _price(self) -> Float64:
        """What exposure has taken off the right-hand side of every user so far."""
        arrays = self._known.arrays
        n_users, width = len(arrays["user_factors"]), padded_width(len(arrays["mean_user"]))
        term = self._term(pad_factors(arrays["item_factors"]))
        s = np.pad(arrays["mean_user"], (0, width - len(arrays["mean_user"])))
        slope: Float64 = term.Q @ s - term.q
        return self._exposure_of(n_users) / n_users * slope

    def _term(self, V: Float32) -> MeanTerm:
        """Return what the weight of exposure multiplies, as a function of the mean user."""
        arrays = self._known.arrays
        if "exposure_pull" in arrays:
            term = MeanTerm(arrays["exposure_curvature"], arrays["exposure_pull"])
            return term.padded(V.shape[1])
        return MeanTerm(gramian(V, 1), np.zeros(V.shape[1]))

    def _extended(self, n_users: int, n_items: int) -> State:
        """Start from the factors of the model, with rows of zeros for whoever is new."""
        arrays = self._known.arrays
        U, V = (
            pad_factors(np.pad(factors, ((0, n - len(factors)), (0, 0))))
            for factors, n in ((arrays["user_factors"], n_users), (arrays["item_factors"], n_items))
        )
        s = np.pad(arrays["mean_user"], (0, U.shape[1] - len(arrays["mean_user"])))
        return State(U, V, s=s, w=self._price)

    def _solve_users(
        self, rows: Csr, users: Int64, state: State, how: Literal["cholesky", "cg"] = "cholesky"
    ) -> None:
        """Solve for some users, at the price of the model."""
        problem = replace(self._problem_of(take_rows(rows, users), 0.0), row_solver=how)
        shared = problem.unobserved_weight * problem.item_gramian(state.V)
        state.U[users] = _solved(problem, pad_factors(state.U[users]), state.V, shared, state.w)

    def _solve_items(self, by_item: Csr, items: Int64, state: State, exposure: float) -> None:
        """Solve for some items, given who has each of them."""
        problem = self._problem_of(by_item, 0.0)
        shared = problem.unobserved_weight * problem.item_gramian(state.U)
        if "exposure_pull" not in self._known.arrays:
            shared += exposure * np.outer(state.s, state.s)
        state.V[items] = _solved(problem, pad_factors(state.V[items]), state.U, shared)

    def _settled(self, problem: Problem, state: State) -> dict[str, NDArray[Any]]:
        """Bring the mean user and the price together again; return all arrays of the model."""
        known, old_price = self._known.arrays, state.w
        common_shift(problem, state, self._term(state.V))
        factors = len(known["mean_user"])
        if not np.isfinite(largest_entry(state.U) * largest_entry(state.V)):
            message = "the model could not take in what is new: factors are not finite"
            raise SolveError(message, hint="fit it to all interactions")
        # The dual variable is in proportion to the price; of exact steps it is the price.
        ratio = known["dual"] @ old_price[:factors] / (old_price @ old_price or 1.0)
        return {
            **known,
            "user_factors": np.ascontiguousarray(state.U[:, :factors]),
            "item_factors": np.ascontiguousarray(state.V[:, :factors]),
            "mean_user": state.s[:factors],
            "dual": ratio * state.w[:factors],
        }


def _learned_of(
    known: Learned, data: Interactions, rows: Csr, arrays: dict[str, NDArray[Any]]
) -> Learned:
    """Put new arrays beside the interactions that they are of."""
    return replace(
        known,
        arrays=arrays,
        user_ids=data.user_ids,
        item_ids=data.item_ids,
        fingerprint=data.fingerprint(),
        seen=rows,
        item_counts=None,  # a loaded model has those of its fit: now the histories say more
    )


def _column_weights(rows: Csr) -> NDArray[Any]:
    """Add up the weights of every column, which takes a tenth of the time of a transpose."""
    return np.bincount(rows.indices, rows.weights, minlength=rows.n_columns)


def _heavier(before: NDArray[Any], after: NDArray[Any], share: float = 0.0) -> Int64:
    """Find what is new, or weighs more by more than a share of what it did."""
    is_new = np.ones(len(after), dtype=bool)
    is_new[: len(before)] = after[: len(before)] > (1 + share + _ROUNDING) * before
    return np.flatnonzero(is_new)


def _solved(
    problem: Problem, out: Float32, other: Float32, shared: Float64, price: Float64 | None = None
) -> Float32:
    solve_side(problem, problem.users, other, shared=shared, out=out, shift=price)
    return out


def kept_promise(model: Model, grown: Learned) -> dict[str, Any] | None:
    """Return what was promised of a model's exposure, unless it has grown: then warn.

    The promise is of the lists of certain users; nobody has looked at those of the grown model.
    """
    if grown is model.learned or model.promise is None:
        return model.promise
    message = "the target of this model was met for the users that it had: the promise is dropped"
    message = f"{message}; meet the target again with ll.fit_to"
    warnings.warn(message, LimelightWarning, stacklevel=3)
    return None
