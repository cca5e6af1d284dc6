"""Every kernel with arrays of any kind: it works, or says in a Python exception what is wrong.

The kernels answer wrong types with TypeError and wrong shapes and values with ValueError.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import atheris
import numpy as np
from harness import run
from native_arrays import Draw

from limelight._native import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTHS = (16, 16, 32, 48, 0, 15)


class RefusedError(Exception):
    """A kernel said what is wrong with its arguments."""


def call(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel; its own complaints are answers, those of the code around it are not."""
    try:
        return kernel(*arguments)
    except (TypeError, ValueError) as error:
        raise RefusedError from error


def histories(draw: Draw, n_rows: int, n_columns: int) -> kernels.Csr:
    """Make a sparse matrix that kernels take."""
    arguments = [*draw.rows(n_rows, n_columns), n_columns]
    draw.spoil(arguments)
    rows = call(kernels.Csr, *arguments)
    if rows.n_columns < 1 << 16 and draw.one_in(8):
        rows = rows.transpose().transpose()
    return rows


def sums(draw: Draw) -> None:
    """Gramians, sums, shifts and rotations of a matrix."""
    n, width = draw.size(), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    name = ("gramian", "column_sums", "rotate", "shift_rows", "shift_and_rotate")[draw.number(0, 4)]
    arguments = [draw.floats(n, width)]
    if name.startswith("shift"):
        arguments += [draw.floats(n), draw.floats(width)]
    if name.endswith("rotate"):
        arguments += [draw.floats(width, width), np.empty((n, width), np.float32)]
    arguments.append(draw.threads())
    draw.spoil(arguments)
    call(getattr(kernels, name), *arguments)


def solves(draw: Draw) -> None:
    """The kernels over histories."""
    n, m, width = draw.size(), draw.number(0, 30), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    rows, factors, X = histories(draw, n, m), draw.floats(m, width), draw.floats(n, width)
    name = ("solve_rows", "descend_rows", "gradient_step", "squared_error")[draw.number(0, 3)]
    twice = draw.one_in(2)
    if name == "squared_error":
        arguments = [rows, X, factors]
    elif name == "gradient_step":
        arguments = [rows, factors, draw.floats(width, width), draw.floats(n), draw.floats(n)]
        arguments += [draw.floats(n) if twice else None, 1.0, draw.one_in(2), X]
    else:
        shift = draw.floats(width) if draw.one_in(2) else None
        arguments = [rows, factors, draw.floats(width), draw.floats(n), shift, X]
        if name == "descend_rows":
            arguments += [draw.number(0, 4)]
        else:
            arguments += [draw.floats(width), np.empty_like(X)] if twice else [None, None]
    arguments.append(draw.threads())
    draw.spoil(arguments)
    call(getattr(kernels, name), *arguments)


def equations(draw: Draw) -> None:
    """Normal equations that blocks of histories are added to."""
    n, m, width = draw.size(), draw.number(0, 30), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    rows = histories(draw, n, m)
    held = np.zeros((n, call(kernels.sums_width, width)), np.float32)
    arguments = [rows, draw.floats(m, width), held, draw.threads()]
    draw.spoil(arguments)
    call(kernels.add_rows, *arguments)
    arguments = [held, draw.floats(width), draw.floats(n), draw.floats(n, width), draw.threads()]
    draw.spoil(arguments)
    call(kernels.solve_sums, *arguments)


def searches(draw: Draw) -> None:
    """The best items of a catalogue."""
    n, m, width = draw.size(), draw.size(), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    made = [draw.floats(m, width), draw.threads()]
    draw.spoil(made)
    catalogue = call(kernels.Catalogue, *made)
    history = histories(draw, n, m) if draw.one_in(2) else None
    k = draw.number(0, 12)
    ids, scores = np.full((n, k), -7, np.int32), np.empty((n, k), np.float32)
    arguments = [draw.floats(n, width), history, ids, scores, draw.threads()]
    draw.spoil(arguments)
    call(catalogue.top_k, *arguments)
    found = arguments[2]
    assert found.size == 0 or (found.min() >= -1 and found.max() < len(made[0])), found


def markets(draw: Draw) -> None:
    """Users who choose among candidates at subsidies."""
    n, m, k, n_knots = draw.size(), draw.number(1, 20), draw.number(1, 5), draw.number(0, 5)
    indptr, items = draw.rows(n, m)
    relevance = -np.sort(-draw.floats(len(items)))
    crowd_of = [indptr, items, relevance, m]
    draw.spoil(crowd_of)
    crowd = call(kernels.Crowd, *crowd_of)
    lists, threads = np.full((n, k), -1, np.int32), draw.threads()
    if draw.one_in(2):
        tapes = draw.number(1, 3)
        arguments = [crowd, draw.floats(tapes, m), draw.ints(n, tapes), lists, threads]
        draw.spoil(arguments)
        call(kernels.choose, *arguments)
        return
    accounts = draw.number(1, 5)
    numbers = [draw.floats(accounts, dtype=np.float64) for _ in range(3)]
    arguments = [
        crowd,
        draw.ints(draw.number(0, 20) if n < 100 else n, n),
        lists,
        draw.floats(k, dtype=np.float64),
        draw.ints(m, accounts),
        *numbers,
        draw.floats(2, n_knots, dtype=np.float64),
        draw.one_in(2),
        draw.number(1, 100),
        draw.one_in(2),
        float(draw.number(0, 9)),
        threads,
    ]
    draw.spoil(arguments)
    call(kernels.respond, *arguments)
    if draw.one_in(4):
        call(kernels.respond, *arguments)


def _times(draw: Draw, size: int) -> Any:
    match draw.number(0, 3):
        case 0:
            return None
        case 1:
            return draw.floats(size, dtype=np.float64)
        case kind:
            return draw.ints(size, 9, np.int32 if kind == 2 else np.int64)


def pairs(draw: Draw) -> None:
    """Pairs of users and items, grouped, counted and filtered."""
    n, m, size = draw.size(), draw.number(0, 30), draw.size()
    if draw.one_in(2):
        time = _times(draw, size)
        indptr, indices, order = np.empty(n + 1, np.int64), *np.empty((2, size), np.int32)
        users, items = draw.ints(size, n), draw.ints(size, m)
        arguments = [users, items, time, m, indptr, indices, order, draw.threads()]
        draw.spoil(arguments)
        kept = call(kernels.group_pairs, *arguments)
        kernels.Csr(arguments[4], arguments[5][:kept], arguments[3])
        return
    indptr, indices = draw.rows(n, m)
    users, items = draw.flags(n), draw.flags(m)
    by_user, by_item = draw.ints(n, 9, np.int64), draw.ints(m, 9, np.int64)
    if draw.one_in(2):
        arguments = [indptr, indices, users, items, by_user, by_item]
        draw.spoil(arguments)
        call(kernels.count_pairs, *arguments)
        return
    call(kernels.count_pairs, indptr, indices, users, items, by_user, by_item)
    room = int(by_user.sum())
    order = np.arange(len(indices)) - np.repeat(indptr[:-1], np.diff(indptr))
    ordered = draw.one_in(2)
    numbers = np.where(items, np.cumsum(items) - 1, -1).astype(np.int32)
    arguments = [
        indptr,
        indices,
        order.astype(np.int32) if ordered else None,
        users,
        numbers,
        np.empty(room, np.int32),
        np.empty(room, np.int32) if ordered else None,
    ]
    draw.spoil(arguments)
    call(kernels.keep_pairs, *arguments)


def ids(draw: Draw) -> None:
    """Codes for byte strings, in several batches."""
    table = kernels.IdTable()
    for _ in range(draw.number(1, 3)):
        lengths = draw.ints(draw.size(), draw.number(1, 20), np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        text = draw.ints(int(offsets[-1]), 256, np.uint8)
        arguments = [offsets, text, np.empty(len(lengths), np.int32)]
        draw.spoil(arguments)
        call(table.encode, *arguments)
    offsets, _ = table.ids()
    assert sorted(table.ascending().tolist()) == list(range(len(offsets) - 1))


def turns(draw: Draw) -> None:
    """Users who take items in turns."""
    n, m, width, k = draw.number(0, 8), draw.number(0, 9), draw.number(0, 6), draw.number(0, 4)
    ends = np.sort(draw.ints(2 * n, width + 1).reshape(2, n), axis=0)
    arguments = [
        draw.ints(draw.number(0, n), n),
        draw.ints(m, 4),
        draw.ints(n * width, m).reshape(n, width),
        draw.floats(n, width),
        ends[0].copy(),
        ends[1].copy(),
        draw.flags(n),
        np.full((n, k), -1, np.int32),
        np.zeros((n, k), np.float32),
    ]
    draw.spoil(arguments)
    game = call(kernels.RoundRobin, *arguments)
    turn = 0
    for _ in range(draw.number(1, 4)):
        span = [turn, len(arguments[0]) * k]
        draw.spoil(span)
        turn = call(game.play, *span)
        asked = [turn, span[1], draw.number(0, 4), draw.number(0, 9)]
        draw.spoil(asked)
        call(game.nearly_empty, *asked)


VARIANTS = kernels.variants()
KINDS = (sums, solves, searches, markets, pairs, ids, turns, equations)
FAMILIES = tuple(map(atheris.instrument_func, KINDS))


def call_a_kernel(data: bytes) -> None:
    """Let the first byte choose a family of kernels, and a variant of the vector code."""
    draw = Draw(atheris.FuzzedDataProvider(data))
    kernels.use_variant(VARIANTS[draw.number(0, len(VARIANTS) - 1)])
    FAMILIES[draw.number(0, len(FAMILIES) - 1)](draw)


def fresh(data: bytes, max_size: int, seed: int) -> bytes:
    """Make new bytes half of the time: what happens in a kernel leaves no trace to follow."""
    rng = random.Random(seed)
    if rng.random() < 0.5:
        return atheris.Mutate(data, max_size)
    return rng.randbytes(min(rng.randrange(16, 200), max_size))


if __name__ == "__main__":
    run(call_a_kernel, RefusedError, fresh)
