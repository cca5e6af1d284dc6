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


def call(kernel: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a kernel; its own complaints are answers, those of the code around it are not."""
    try:
        return kernel(**arguments)
    except (TypeError, ValueError) as error:
        raise RefusedError from error


def spoilt(draw: Draw, kernel: Callable[..., Any], **arguments: Any) -> Any:
    """Call a kernel with an argument or two spoilt."""
    draw.spoil(arguments)
    return call(kernel, arguments)


def histories(draw: Draw, n_rows: int, n_columns: int) -> kernels.Csr:
    """Make a sparse matrix that kernels take."""
    indptr, indices = draw.rows(n_rows, n_columns)
    rows = spoilt(draw, kernels.Csr, indptr=indptr, indices=indices, n_columns=n_columns)
    if rows.n_columns < 1 << 16 and draw.one_in(8):
        rows = rows.transpose().transpose()
    return rows


def sums(draw: Draw) -> None:
    """Gramians, sums, shifts and rotations of a matrix."""
    n, width = draw.size(), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    name = ("gramian", "column_sums", "rotate", "shift_rows", "shift_and_rotate")[draw.number(0, 4)]
    arguments: dict[str, Any] = {"X": draw.floats(n, width)}
    if name.startswith("shift"):
        arguments |= {"step": draw.floats(n), "shift": draw.floats(width)}
    if name.endswith("rotate"):
        rotation, out = draw.floats(width, width), np.empty((n, width), np.float32)
        arguments |= {"rotation": rotation, "out": out}
    spoilt(draw, getattr(kernels, name), **arguments, threads=draw.threads())


def solves(draw: Draw) -> None:
    """The kernels over histories."""
    n, m, width = draw.size(), draw.number(0, 30), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    rows, factors, X = histories(draw, n, m), draw.floats(m, width), draw.floats(n, width)
    name = ("solve_rows", "descend_rows", "gradient_step", "squared_error")[draw.number(0, 3)]
    twice = draw.one_in(2)
    arguments: dict[str, Any] = {"rows": rows, "factors": factors}
    if name == "squared_error":
        arguments |= {"row_factors": X}
    elif name == "gradient_step":
        arguments |= {
            "gramian": draw.floats(width, width),
            "regularization": draw.floats(n),
            "step": draw.floats(n),
            "curvature": draw.floats(n) if twice else None,
            "shared_curvature": 1.0,
            "refresh_curvature": draw.one_in(2),
            "row_factors": X,
        }
    else:
        shift = draw.floats(width) if draw.one_in(2) else None
        arguments |= {"eigenvalues": draw.floats(width), "regularization": draw.floats(n)}
        arguments |= {"shift": shift, "out": X}
        if name == "descend_rows":
            arguments |= {"steps": draw.number(0, 4)}
        else:
            probe = (draw.floats(width), np.empty_like(X)) if twice else (None, None)
            arguments |= dict(zip(("probe", "response"), probe, strict=True))
    spoilt(draw, getattr(kernels, name), **arguments, threads=draw.threads())


def equations(draw: Draw) -> None:
    """Normal equations that blocks of histories are added to."""
    n, m, width = draw.size(), draw.number(0, 30), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    rows = histories(draw, n, m)
    held = np.zeros((n, call(kernels.sums_width, {"width": width})), np.float32)
    factors, threads = draw.floats(m, width), draw.threads()
    spoilt(draw, kernels.add_rows, rows=rows, factors=factors, sums=held, threads=threads)
    spoilt(
        draw,
        kernels.solve_sums,
        sums=held,
        eigenvalues=draw.floats(width),
        regularization=draw.floats(n),
        out=draw.floats(n, width),
        threads=draw.threads(),
    )


def searches(draw: Draw) -> None:
    """The best items of a catalogue."""
    n, m, width = draw.size(), draw.size(), WIDTHS[draw.number(0, len(WIDTHS) - 1)]
    made = {"factors": draw.floats(m, width), "threads": draw.threads()}
    draw.spoil(made)
    catalogue = call(kernels.Catalogue, made)
    history = histories(draw, n, m) if draw.one_in(2) else None
    k = draw.number(0, 12)
    ids, scores = np.full((n, k), -7, np.int32), np.empty((n, k), np.float32)
    arguments = {"queries": draw.floats(n, width), "history": history, "ids": ids}
    arguments |= {"scores": scores, "threads": draw.threads()}
    draw.spoil(arguments)
    call(catalogue.top_k, arguments)
    found = arguments["ids"]
    assert found.size == 0 or (found.min() >= -1 and found.max() < len(made["factors"])), found


def markets(draw: Draw) -> None:
    """Users who choose among candidates at subsidies."""
    n, m, k, n_knots = draw.size(), draw.number(1, 20), draw.number(1, 5), draw.number(0, 5)
    indptr, items = draw.rows(n, m)
    relevance = -np.sort(-draw.floats(len(items)))
    arrays = {"indptr": indptr, "items": items, "relevance": relevance}
    candidates = spoilt(draw, kernels.RankedCandidates, **arrays, n_items=m)
    lists, threads = np.full((n, k), -1, np.int32), draw.threads()
    if draw.one_in(2):
        sets = draw.number(1, 3)
        subsidies, draws = draw.floats(sets, m), draw.ints(n, sets)
        arguments = {"candidates": candidates, "subsidies": subsidies, "draws": draws}
        spoilt(draw, kernels.best_candidates, **arguments, lists=lists, threads=threads)
        return
    accounts = draw.number(1, 5)
    numbers = [draw.floats(accounts, dtype=np.float64) for _ in range(3)]
    arguments = {
        "candidates": candidates,
        "order": draw.ints(draw.number(0, 20) if n < 100 else n, n),
        "lists": lists,
        "weights": draw.floats(k, dtype=np.float64),
        "accounts": draw.ints(m, accounts),
        **dict(zip(("exposure", "entitlement", "pull"), numbers, strict=True)),
        "marginal": draw.floats(2, n_knots, dtype=np.float64),
        "by_impact": draw.one_in(2),
        "batch": draw.number(1, 100),
        "newcomers": draw.one_in(2),
        "served": float(draw.number(0, 9)),
        "offsets": None if draw.one_in(2) else draw.floats(m, dtype=np.float64),
        "threads": threads,
    }
    draw.spoil(arguments)
    call(kernels.respond, arguments)
    if draw.one_in(4):
        call(kernels.respond, arguments)


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
        arguments = {"users": draw.ints(size, n), "items": draw.ints(size, m), "times": time}
        arguments |= {"n_items": m, "indptr": indptr, "indices": indices, "order": order}
        arguments |= {"threads": draw.threads()}
        draw.spoil(arguments)
        kept = call(kernels.group_pairs, arguments)
        kernels.Csr(arguments["indptr"], arguments["indices"][:kept], arguments["n_items"])
        return
    indptr, indices = draw.rows(n, m)
    users, items = draw.flags(n), draw.flags(m)
    by_user, by_item = draw.ints(n, 9, np.int64), draw.ints(m, 9, np.int64)
    rows = {"indptr": indptr, "indices": indices, "keep_users": users}
    counts = {"keep_items": items, "by_user": by_user, "by_item": by_item}
    if draw.one_in(2):
        spoilt(draw, kernels.count_pairs, **rows, **counts)
        return
    call(kernels.count_pairs, rows | counts)
    room = int(by_user.sum())
    order = np.arange(len(indices)) - np.repeat(indptr[:-1], np.diff(indptr))
    ordered = draw.one_in(2)
    numbers = np.where(items, np.cumsum(items) - 1, -1).astype(np.int32)
    spoilt(
        draw,
        kernels.keep_pairs,
        **rows,
        order=order.astype(np.int32) if ordered else None,
        item_numbers=numbers,
        out_indices=np.empty(room, np.int32),
        out_order=np.empty(room, np.int32) if ordered else None,
    )


def ids(draw: Draw) -> None:
    """Codes for byte strings, in several batches."""
    table = kernels.IdTable()
    for _ in range(draw.number(1, 3)):
        lengths = draw.ints(draw.size(), draw.number(1, 20), np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        text = draw.ints(int(offsets[-1]), 256, np.uint8)
        codes = np.empty(len(lengths), np.int32)
        spoilt(draw, table.encode, offsets=offsets, bytes=text, codes=codes)
    offsets, _ = table.ids()
    assert sorted(table.ascending().tolist()) == list(range(len(offsets) - 1))


def turns(draw: Draw) -> None:
    """Users who take items in turns."""
    n, m, width, k = draw.number(0, 8), draw.number(0, 9), draw.number(0, 6), draw.number(0, 4)
    ends = np.sort(draw.ints(2 * n, width + 1).reshape(2, n), axis=0)
    arguments = {
        "order": draw.ints(draw.number(0, n), n),
        "stock": draw.ints(m, 4),
        "ids": draw.ints(n * width, m).reshape(n, width),
        "scores": draw.floats(n, width),
        "next": ends[0].copy(),
        "stop": ends[1].copy(),
        "complete": draw.flags(n),
        "picks": np.full((n, k), -1, np.int32),
        "pick_scores": np.zeros((n, k), np.float32),
    }
    draw.spoil(arguments)
    game = call(kernels.RoundRobin, arguments)
    turn = 0
    for _ in range(draw.number(1, 4)):
        span = {"turn": turn, "last": len(arguments["order"]) * k}
        draw.spoil(span)
        turn = call(game.play, span)
        limits = {"least": draw.number(0, 4), "most": draw.number(0, 9)}
        spoilt(draw, game.nearly_empty, turn=turn, last=span["last"], **limits)


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
