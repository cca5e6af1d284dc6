"""Who interacted with what: a binary matrix, its ids, and the order of the file it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy

from limelight._base.documents import Document, pairs
from limelight._base.errors import DataError
from limelight._base.text import count
from limelight.data.rows import group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray


def fingerprint(
    indptr: Iterable[NDArray[np.int64]],
    indices: Iterable[NDArray[np.int32]],
    user_ids: Any,
    item_ids: Any,
) -> str:
    """Digest shape, pairs and ids into 16 hexadecimal digits, the same on every platform.

    Parameters
    ----------
    indptr, indices
        The pairs as rows, in as many stretches as one likes.
    user_ids, item_ids
        NumPy arrays, or Arrow arrays of int64 or large_string.

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
LARGEST = np.iinfo(np.int32).max
"""Most rows or columns: item numbers are int32."""


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Binary interactions of users with items.

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

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_matrix(csr_matrix([[1, 0, 2], [0, 5, 0]]))
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

    def __post_init__(self) -> None:
        """Refuse arrays that cannot belong together, and protect them: models share them."""
        for array in (self.indptr, self.indices):
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

    @classmethod
    def from_matrix(cls, X: Any) -> Interactions:
        """Convert a SciPy sparse matrix of users x items; ids become 0, 1, 2, ...

        A stored positive value counts 1 whatever its size. Explicit zeros are dropped, repeated
        entries are merged and counted. The matrix itself is left alone.

        Parameters
        ----------
        X : scipy sparse matrix or array
            Any format, any real type.

        Returns
        -------
        Interactions
            With ``order`` None: the rows have no other order than their own.

        Examples
        --------
        >>> from scipy.sparse import coo_array
        >>> X = coo_array(([3.0, 1.0, 1.0], ([0, 0, 1], [2, 2, 0])), shape=(2, 4))
        >>> Interactions.from_matrix(X)
        Interactions(2 users x 4 items, 2 interactions, 1 duplicate merged)
        """
        _refuse_not_sparse(X)
        if X.ndim != 2 or max(X.shape) > LARGEST:
            message = f"expected a matrix of users x items below 2^31 each, got shape: {X.shape}"
            raise DataError(message, hint="one row for each user, one column for each item")
        users, items = (np.arange(n, dtype=np.int64) for n in X.shape)
        if X.format == "csr":
            canonical = _canonical(X)
            if canonical is not None:
                return cls(*canonical, users, items, has_ids=False)
        coo = X.tocoo()
        _refuse_bad_values(coo.data)
        _refuse_bad_indices(coo.row, X.shape[0])
        _refuse_bad_indices(coo.col, X.shape[1])
        stored = coo.data != 0
        rows = group(coo.row[stored], coo.col[stored], *X.shape)
        return cls(rows.indptr, rows.indices, users, items, None, rows.duplicates, has_ids=False)

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
        """The users x items matrix of float32 ones, a copy."""
        return binary_csr(self.indptr, self.indices, self.shape)

    def fingerprint(self) -> str:
        """Digest shape, pairs and ids into 16 hexadecimal digits, the same on every platform.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> Interactions.from_matrix(csr_matrix([[1, 0], [0, 1]])).fingerprint()
        '7efaa93d20cf6004'
        """
        return fingerprint([self.indptr], [self.indices], self.user_ids, self.item_ids)

    def __repr__(self) -> str:
        merged = f", {count(self.duplicates, 'duplicate')} merged" if self.duplicates else ""
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


def as_interactions(X: Any) -> Interactions:
    """Pass Interactions through, convert sparse matrices, refuse the rest.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> as_interactions(csr_array([[1, 1]])).shape
    (1, 2)
    """
    return X if isinstance(X, Interactions) else Interactions.from_matrix(X)


def binary_csr(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], shape: tuple[int, int]
) -> scipy.sparse.csr_matrix[Any]:
    """Make a csr_matrix of float32 ones from sorted, unique rows; it owns copies of the arrays.

    SciPy wants one type for both index arrays (with two, ``tocoo`` and printing fail), so the row
    pointers become int32 as long as they fit, and both become int64 beyond that.

    Examples
    --------
    >>> X = binary_csr(np.array([0, 1]), np.array([2], dtype=np.int32), (1, 3))
    >>> X.toarray(), X.indptr.dtype, X.indices.dtype
    (array([[0., 0., 1.]], dtype=float32), dtype('int32'), dtype('int32'))
    """
    matrix: scipy.sparse.csr_matrix[Any] = scipy.sparse.csr_matrix(shape, dtype=np.float32)  # type: ignore[arg-type]
    dtype = np.int32 if len(indices) <= LARGEST else np.int64
    matrix.indptr, matrix.indices = indptr.astype(dtype), indices.astype(dtype)
    matrix.data = np.ones(len(indices), dtype=np.float32)
    matrix.has_canonical_format = True
    return matrix


def _refuse_not_sparse(X: Any) -> None:
    if not scipy.sparse.issparse(X):
        message = f"expected Interactions or a SciPy sparse matrix, got: {type(X).__name__}"
        hint = "convert a dense array with scipy.sparse.csr_matrix(X), a frame with read(frame)"
        raise DataError(message, hint=hint)


def _canonical(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
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
    # Copied: the matrix stays its owner's, who may change it after a fit.
    return indptr.copy(), np.array(indices, dtype=np.int32)


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
