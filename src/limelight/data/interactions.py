"""Who interacted with what: a sparse matrix, its ids, and the order of the file it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy

from limelight._base.documents import Document, pairs
from limelight._base.errors import ConfigError, DataError
from limelight._base.text import count, short
from limelight.data.rows import as_weights, by_pair, group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from limelight.data.rows import Repeats


def fingerprint(
    indptr: Iterable[NDArray[np.int64]],
    indices: Iterable[NDArray[np.int32]],
    user_ids: Any,
    item_ids: Any,
    weights: NDArray[np.float32] | None = None,
) -> str:
    """Digest shape, pairs and ids into 16 hexadecimal digits, the same on every platform.

    Parameters
    ----------
    indptr, indices
        The pairs as rows, in as many stretches as one likes.
    user_ids, item_ids
        NumPy arrays, or Arrow arrays of int64 or large_string.
    weights
        Those of the pairs, where there are any; without them, nothing is added for them.

    Examples
    --------
    >>> ids = np.array([3, 4])
    >>> one = fingerprint([np.array([0, 1, 2])], [np.array([0, 1])], ids, ids)
    >>> one == fingerprint([np.array([0]), np.array([1, 2])], [np.array([0, 1])], ids, ids)
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    digest.update(np.array([len(user_ids), len(item_ids)], dtype="<i8").tobytes())
    for stretches, kind in ((indptr, "<i8"), (indices, "<i4")):
        for stretch in stretches:
            digest.update(np.ascontiguousarray(stretch, dtype=kind).data)
    for ids in (user_ids, item_ids):
        for piece in _bytes_of(ids):
            digest.update(piece)
    if weights is not None:
        digest.update(b"w")
        digest.update(np.ascontiguousarray(weights, dtype="<f4").data)
    return digest.hexdigest()


def _bytes_of(ids: Any) -> Iterator[Any]:
    """Give ids as bytes; lengths come first, so that ("ab", "c") and ("a", "bc") differ."""
    if isinstance(ids, pa.LargeStringArray):
        _, offsets, content = ids.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
        yield b"s"
        yield np.ascontiguousarray(np.diff(ends), dtype="<i8").data
        yield np.frombuffer(content or b"", dtype=np.uint8)[ends[0] : ends[-1]].data
    elif isinstance(ids, np.ndarray) and ids.dtype == object:
        encoded = [str(name).encode() for name in ids]
        yield b"s" + np.array([len(name) for name in encoded], "<i8").tobytes()
        yield b"".join(encoded)
    else:
        yield b"i" + np.ascontiguousarray(ids, dtype="<i8").tobytes()


Ids: TypeAlias = "NDArray[Any]"
"""Ids by number: int64 for integers, an object array of ``str`` for strings."""
WEIGHT_RULE = "a weight must be a finite number above 0, in 32 bits (1.2e-38 to 3.4e+38)"
LARGEST = np.iinfo(np.int32).max
"""Most rows or columns: item numbers are int32."""


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Interactions of users with items, each with a weight or all alike.

    Made by :func:`limelight.read` or :meth:`from_matrix`. The arrays are read-only, because models
    share them; :attr:`matrix` is a copy to do anything with.

    Attributes
    ----------
    indptr : int64[n_users + 1]
        Row pointers.
    indices : int32[nnz]
        Item numbers, sorted and unique in each row.
    user_ids, item_ids : array
        The id of each row and column: int64, or an object array of ``str``.
    order : int32[nnz] or None
        ``indices[row][order[row]]`` is the row in file order; None means sorted order.
    duplicates : int
        How many repeated pairs were merged.
    has_ids : bool
        Whether the ids are the data's own; False where a matrix had none and they only count.
    weights : float32[nnz] or None
        How much each pair counts, finite and above 0; None means that all count 1.
    times : float64[nnz] or None
        When each pair first happened, in seconds since 1970, where that was read.
    repeats : Repeats or None
        The single rows of pairs that were merged, where times were read.
    is_aged : bool
        Whether the weights have fallen with age, by ``half_life=`` of :func:`limelight.read`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_matrix(csr_matrix([[1, 0, 1], [0, 1, 0]]))
    >>> data
    Interactions(2 users x 3 items, 3 interactions)
    >>> data.matrix.toarray()
    array([[1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    user_ids: Ids
    item_ids: Ids
    order: NDArray[np.int32] | None = None
    duplicates: int = 0
    has_ids: bool = True
    weights: NDArray[np.float32] | None = None
    times: NDArray[np.float64] | None = None
    repeats: Repeats | None = None
    is_aged: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that cannot belong together, and protect them: models share them."""
        for array in (self.indptr, self.indices, self.weights, self.times):
            if array is not None:
                array.flags.writeable = False
        if self.indptr.dtype != np.int64 or self.indices.dtype != np.int32:
            types = f"{self.indptr.dtype}, {self.indices.dtype}"
            message = f"indptr and indices must be int64 and int32: {types}"
            raise DataError(message, hint="build from a sparse matrix: Interactions.from_matrix(X)")
        lengths = (len(self.indptr) - 1, int(self.indptr[-1]))
        if lengths != (len(self.user_ids), len(self.indices)):
            message = (
                f"indptr describes {lengths[0]:,} rows and {lengths[1]:,} entries, "
                f"but there are {len(self.user_ids):,} user ids and {len(self.indices):,} indices"
            )
            raise DataError(message, hint="build from a sparse matrix: Interactions.from_matrix(X)")
        for name, array in (("weights", self.weights), ("times", self.times)):
            if array is not None and array.shape != self.indices.shape:
                message = f"{name} of shape {array.shape} for {len(self.indices):,} interactions"
                hint = f"{name} have one number for each index, in its order"
                raise DataError(message, hint=hint)
        if self.weights is not None:
            self._check_weights(self.weights)

    def _check_weights(self, weights: NDArray[np.float32]) -> None:
        if weights.dtype != np.float32:
            message = f"weights must be float32: {weights.dtype}"
            raise DataError(message, hint="convert them with weights.astype('float32')")
        bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
        if bad.size:
            row = int(np.searchsorted(self.indptr, bad[0], side="right")) - 1
            message = f"{WEIGHT_RULE}, got {weights[bad[0]]} in row {row}"
            raise DataError(message, hint="drop what should not count; scale what is too large")

    @classmethod
    def from_matrix(cls, X: Any, *, weight: str | None = None) -> Interactions:
        """Convert a SciPy sparse matrix of users x items; ids become 0, 1, 2, ...

        Explicit zeros are dropped, repeated entries are merged and counted. The matrix itself is
        left alone.

        Parameters
        ----------
        X : scipy sparse matrix or array
            Any format, any real type.
        weight
            ``"values"``: what is stored is how much a pair counts, and repeated entries are added
            up. Without it, all stored values must be 1.

        Returns
        -------
        Interactions
            With ``order`` None: the rows have no other order than their own.

        Examples
        --------
        >>> from scipy.sparse import coo_array
        >>> X = coo_array(([3.0, 1.0, 1.0], ([0, 0, 1], [2, 2, 0])), shape=(2, 4))
        >>> Interactions.from_matrix(X, weight="values").weights
        array([4., 1.], dtype=float32)
        """
        _check_weight(weight)
        _refuse_not_sparse(X)
        if X.ndim != 2 or max(X.shape) > LARGEST:
            message = f"expected a matrix of users x items below 2^31 each, got shape: {X.shape}"
            raise DataError(message, hint="one row for each user, one column for each item")
        users, items = (np.arange(n, dtype=np.int64) for n in X.shape)
        if X.format == "csr":
            canonical = _canonical(X, weight)
            if canonical is not None:
                indptr, indices, weights = canonical
                return cls(indptr, indices, users, items, has_ids=False, weights=weights)
        coo = X.tocoo()
        _refuse_bad_values(coo.data)
        _refuse_bad_indices(coo.row, X.shape[0])
        _refuse_bad_indices(coo.col, X.shape[1])
        stored = coo.data != 0
        pairs, values = (coo.row[stored], coo.col[stored]), coo.data[stored]
        rows, weights = group(*pairs, *X.shape), None
        if weight is None:
            _refuse_values(values)
        else:
            [summed] = by_pair(*pairs, X.shape[1], (values.astype(np.float64), np.add))
            weights = as_weights(summed)
        arrays, merged = (rows.indptr, rows.indices, users, items), rows.duplicates
        return cls(*arrays, duplicates=merged, has_ids=False, weights=weights)

    @property
    def n_users(self) -> int:
        """Number of users, with or without interactions."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items, with or without interactions."""
        return len(self.item_ids)

    @property
    def nnz(self) -> int:
        """Number of distinct pairs."""
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        """Users x items."""
        return self.n_users, self.n_items

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix[Any]:
        """The users x items matrix of float32, a copy: the weights, or ones."""
        return csr_rows(self.indptr, self.indices, self.shape, self.weights)

    def fingerprint(self) -> str:
        """Digest shape, pairs, ids and weights into 16 hexadecimal digits, alike on every platform.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> Interactions.from_matrix(csr_matrix([[1, 0], [0, 1]])).fingerprint()
        '7efaa93d20cf6004'
        """
        ids = self.user_ids, self.item_ids
        return fingerprint([self.indptr], [self.indices], *ids, self.weights)

    def __repr__(self) -> str:
        merged = f", {count(self.duplicates, 'duplicate')} merged" if self.duplicates else ""
        merged += "" if self.weights is None else ", weighted"
        users, items = count(self.n_users, "user"), count(self.n_items, "item")
        return f"Interactions({users} x {items}, {count(self.nnz, 'interaction')}{merged})"

    def _repr_html_(self) -> str:
        return Document("Interactions", [pairs(self.sizes())]).html()

    def sizes(self) -> list[tuple[str, str]]:
        """Name how much there is of what, as text.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> Interactions.from_matrix(csr_matrix([[1, 0], [0, 1]])).sizes()
        [('users', '2'), ('items', '2'), ('interactions', '2')]
        """
        merged = [("duplicates merged", f"{self.duplicates:,}")] if self.duplicates else []
        counts = {"users": self.n_users, "items": self.n_items, "interactions": self.nnz}
        return [(name, f"{number:,}") for name, number in counts.items()] + merged


def as_interactions(X: Any, *, weight: str | None = None) -> Interactions:
    """Pass Interactions through, convert sparse matrices, refuse the rest.

    ``weight`` is that of :meth:`Interactions.from_matrix`. Interactions have their own weights, or
    none.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> as_interactions(csr_array([[1, 1]])).shape
    (1, 2)
    """
    if not isinstance(X, Interactions):
        return Interactions.from_matrix(X, weight=weight)
    if weight is not None:
        message = f"weight is for a matrix, interactions have their own: weight={weight!r}"
        raise ConfigError(message, hint="name the column when reading: read(..., weight='...')")
    return X


def csr_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    shape: tuple[int, int],
    weights: NDArray[np.float32] | None = None,
) -> scipy.sparse.csr_matrix[Any]:
    """Make a csr_matrix of weights, or of ones, from sorted, unique rows; it owns its arrays.

    SciPy wants one type for both index arrays (with two, ``tocoo`` and printing fail), so the row
    pointers become int32 as long as they fit, and both become int64 beyond that.

    Examples
    --------
    >>> X = csr_rows(np.array([0, 1]), np.array([2], dtype=np.int32), (1, 3))
    >>> X.toarray(), X.indptr.dtype, X.indices.dtype
    (array([[0., 0., 1.]], dtype=float32), dtype('int32'), dtype('int32'))
    """
    matrix: scipy.sparse.csr_matrix[Any] = scipy.sparse.csr_matrix(shape, dtype=np.float32)  # type: ignore[arg-type]
    dtype = np.int32 if len(indices) <= LARGEST else np.int64
    matrix.indptr, matrix.indices = indptr.astype(dtype), indices.astype(dtype)
    matrix.data = np.ones(len(indices), np.float32) if weights is None else weights.copy()
    matrix.has_canonical_format = True
    return matrix


def _refuse_not_sparse(X: Any) -> None:
    if not scipy.sparse.issparse(X):
        message = f"expected Interactions or a SciPy sparse matrix, got: {type(X).__name__}"
        hint = "convert a dense array with scipy.sparse.csr_matrix(X), a frame with read(frame)"
        raise DataError(message, hint=hint)


def _check_weight(weight: str | None) -> None:
    if weight is not None and (not isinstance(weight, str) or weight != "values"):
        message = f"a matrix has no columns to take weights from: weight={short(weight)}"
        raise ConfigError(message, hint='weight="values" takes what the matrix stores')


def _refuse_values(values: NDArray[Any]) -> None:
    """Refuse stored values other than 1: to count them as 1 would lose what they say."""
    others = values[values != 1]
    if len(others):
        message = f"a matrix of interactions stores 1 for a pair, got: {others[0]}"
        hint = (
            'keep weights with weight="values", as in Interactions.from_matrix(X, weight="values")'
        )
        raise DataError(message, hint=f"{hint}; or drop them with X.data[:] = 1")


def _canonical(
    X: Any, weight: str | None
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None] | None:
    """Return the arrays of a CSR matrix if they need no sorting, merging or dropping."""
    indptr = np.asarray(X.indptr, dtype=np.int64)
    if indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] > len(X.indices):
        message = f"row pointers must start at 0 and never fall: indptr = {indptr}"
        raise DataError(message, hint="check the matrix with X.check_format()")
    indices, data = X.indices[: indptr[-1]], X.data[: indptr[-1]]
    _refuse_bad_values(data)
    _refuse_bad_indices(indices, X.shape[1])
    rising = np.ones(len(indices), dtype=bool)
    np.greater(indices[1:], indices[:-1], out=rising[1:])
    starts = indptr[:-1]
    rising[starts[starts < len(rising)]] = True
    if not rising.all() or not np.all(data):
        return None
    if weight is None:
        _refuse_values(data)
    # Copied: the matrix stays its owner's, who may change it after a fit.
    weights = None if weight is None else as_weights(data)
    return indptr.copy(), np.array(indices, dtype=np.int32), weights


def _refuse_bad_values(data: NDArray[Any]) -> None:
    if data.dtype.kind not in "biuf":
        message = f"a matrix of interactions holds real numbers, got type: {data.dtype}"
        raise DataError(message, hint="convert it with X.astype('float32')")
    if data.dtype.kind in "bu" or not len(data):
        return
    bad = ~np.isfinite(data) | (data < 0)
    if bad.any():
        message = f"a matrix of interactions holds finite values from 0 up, got: {data[bad][0]}"
        raise DataError(message, hint="remove such entries, or set them to 0")


def _refuse_bad_indices(indices: NDArray[np.integer], bound: int) -> None:
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < bound:
        message = f"index outside 0..{bound - 1}: {indices.min()}..{indices.max()}"
        raise DataError(message, hint="check the matrix with X.check_format()")
