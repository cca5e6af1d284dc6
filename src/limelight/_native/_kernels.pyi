"""limelight's kernels: arrays and plain numbers in, arrays out."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def variants() -> list[str]:
    """The variants this processor can run, the fastest first."""

def variant() -> str:
    """The variant in use."""

def use_variant(name: str) -> None:
    """Choose the variant that every kernel uses from now on."""

def gramian(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """X^T X in float64, blocks added in order."""

def column_sums(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """The sums of X's columns in float64, likewise."""

def rotate(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], rotation: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """out = X rotation; out may be X."""

def shift_rows(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], step: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> None:
    """x_i <- x_i - step_i shift."""

def shift_and_rotate(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], step: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, rotation: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """x_i <- x_i - step_i shift, then out = X rotation."""

class Csr:
    """
    A checked sparse matrix: int64 indptr, int32 ascending indices, float32 weights; None: all 1.
    """

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def indptr(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]: ...

    @property
    def indices(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]: ...

    @property
    def weights(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None: ...

    def transpose(self) -> Csr:
        """The same entries, by column."""

def solve_rows(rows: Csr, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], eigenvalues: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], regularization: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, shift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], probe: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, response: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None, threads: int) -> int:
    """
    x_i = (diag(eigenvalues) + regularization_i I + F_i^T W_i F_i)^-1 (F_i^T w_i - shift); how many failed.

    With a probe given, the same inverses times the probe are written to response.
    """

def descend_rows(rows: Csr, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], eigenvalues: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], regularization: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, shift: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], steps: int, threads: int) -> None:
    """The same systems by conjugate-gradient steps, from where out stands."""

def sums_width(width: int) -> int:
    """How many numbers a row of sums has, for factors of this width."""

def add_rows(rows: Csr, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Add what a block of histories contributes, F_i^T W_i F_i and F_i^T w_i, to each row of sums.
    """

def solve_sums(sums: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], eigenvalues: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], regularization: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> int:
    """
    x_i = (diag(eigenvalues) + regularization_i I + F_i^T W_i F_i)^-1 F_i^T w_i of sums, which are used up; how
    many failed.
    """

def gradient_step(rows: Csr, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, gramian: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], regularization: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, shared_curvature: float, refresh_curvature: bool, row_factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    x_i <- x_i - step_i (G x_i + regularization_i x_i + F_i^T W_i (F_i x_i - 1)).

    The x_i are the rows of X = row_factors. Returns X^T X, the sum of X's rows, and that sum weighted by
    the steps. With curvature given, the steps are 1 / (shared_curvature + regularization_i + curvature_i)
    and are written to step; a refreshed curvature is one power step towards the largest eigenvalue of
    F_i^T W_i F_i, from F_i^T w_i.
    """

def squared_error(rows: Csr, row_factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> float:
    """The sum over stored pairs of w_j (1 - x_i . f_j)^2."""

class Catalogue:
    """Item factors laid out for top-k searches."""

    def __init__(self, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> None: ...

    def top_k(self, queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], history: Csr | None, *, ids: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> int:
        """
        The k items with the largest scores, history left out, ties to the lower item; returns how many searches a first pass was of use to.
        """

    def with_first_pass(self, threads: int) -> Catalogue:
        """
        The same items, and bytes of them: few searches at once turn most items away by these, and find the same.
        """

SWEEP_ROWS: int = 256

def co_occurrences(users: Csr, *, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    The lower triangle of D (X^T X) D with ones on the diagonal; rows behind the last item are those of I.
    """

def sweep(matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], *, first: int, inverse: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], products: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    One step of an inversion in place, given the inverse of a block; -A^-1 is left after all of them.
    """

def unscale_and_mirror(matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> None:
    """-D A D, of which the lower triangle is given."""

def item_sums(rows: Csr, matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Weighted sums over each history of the rows of a symmetric matrix, at some columns.
    """

def rank_sums(sums: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], *, history: Csr, hidden: Csr | None, gains: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], pulls: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    The k largest of history + gains sums - offset pulls; the sums are overwritten, ties to the lower column.
    """

class RankedCandidates:
    """The candidates of some users, the most relevant first."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], relevance: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_items: int) -> None: ...

class ItemGroups:
    """The groups of every item, and how much it belongs to each."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_groups: int) -> None: ...

def respond(candidates: RankedCandidates, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lists: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], *, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], accounts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], exposure: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], entitlement: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pull: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], marginal: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], by_impact: bool, batch: int, newcomers: bool, served: float, offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, threads: int, groups: ItemGroups | None = None, group_exposure: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None, group_entitlement: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, group_pull: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, group_marginal: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, subsidised_order: float = 0.0) -> int:
    """
    Users choose again, in order, a batch at a time, at subsidies pull * marginal(exposure / entitlement).

    `lists` holds places among the candidates, then -1. Without knots a pull counts in full below the
    entitlement, and a negative one from there on. `offsets`, by item, are added to relevance and subsidy at any
    exposure. Groups have accounts beside those of items, and an item gets the subsidies of its groups as well.
    `scale`, by user, multiplies subsidies. Lists are in the order of relevance plus `subsidised_order` times
    what is added to it, so at 0 places ascend. Returns how many lists changed.
    """

def best_candidates(candidates: RankedCandidates, subsidies: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], draws: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, lists: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Each user's k best candidates by relevance plus subsidy, at the row of subsidies she drew.
    """

class IdTable:
    """
    Codes for distinct byte strings, 0, 1, 2, ... in the order of first meeting.
    """

    def __init__(self) -> None: ...

    def encode(self, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Write the code of each string bytes[offsets[i]:offsets[i + 1]], new ones included.
        """

    def ids(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.uint8]]:
        """The offsets and the bytes of all strings by code."""

    def ascending(self) -> NDArray[numpy.int32]:
        """The codes in ascending order of their strings."""

@overload
def group_pairs(users: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], times: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, *, n_items: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> int: ...

@overload
def group_pairs(users: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], times: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, *, n_items: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> int: ...

@overload
def group_pairs(users: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], items: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], times: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, *, n_items: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> int:
    """
    Rows of ascending, distinct items, and their order in time and file; how many entries are filled.
    """

def count_pairs(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, keep_users: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], keep_items: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], by_user: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], by_item: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Count, by user and by item, the pairs of which both are kept."""

def keep_pairs(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, *, keep_users: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], item_numbers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], out_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], out_order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')] | None) -> None:
    """Copy the pairs of kept users whose items have a new number from 0 up."""

def sort_rows(indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], *, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    Sort each row from the largest value down, in place, and write where each value stood in its row.
    """

class RoundRobin:
    """Users who take items in turns, as long as there are copies."""

    def __init__(self, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], stock: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], *, ids: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], next: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], stop: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], complete: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], picks: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], pick_scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

    def play(self, turn: int, last: int) -> int:
        """
        Play from one turn on; the first turn not played, which is the last or has an empty window.
        """

    def nearly_empty(self, turn: int, last: int, least: int, most: int) -> NDArray[numpy.int64]:
        """
        Drop what cannot be taken from windows; users with fewer than `least` items left, by turn.
        """
