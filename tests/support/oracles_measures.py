"""Measures once more, one user and one item at a time, as their papers write them.

Nothing here shares code with ``limelight.metrics``. Lists are lists of item numbers without
padding.
"""

from __future__ import annotations

from itertools import permutations
from math import isnan, log, log2
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.metrics.lists import IntArray

Ranked = list[int]


def random_lists(
    rng: np.random.Generator, n_users: int, n_items: int, k: int
) -> tuple[IntArray, list[Ranked]]:
    """Draw lists of all lengths from 0 to k: padded with -1, and as lists."""
    lengths = [k, *rng.integers(0, k + 1, n_users - 1)]
    lists = [rng.permutation(n_items)[:length].tolist() for length in lengths]
    padded = np.full((n_users, k), -1)
    for row, items in zip(padded, lists, strict=True):
        row[: len(items)] = items
    return padded, lists


def mean(values: Sequence[float]) -> float:
    """Average what is a number."""
    return fmean(value for value in values if not isnan(value))


def place(rank: int, weight: str | float) -> float:
    """What a place is worth, its rank counted from 1."""
    if weight == "log":
        return 1 / log2(rank + 1)
    return 1.0 if weight == "uniform" else float(weight) ** (rank - 1)


def arp(lists: list[Ranked], popularity: Sequence[float]) -> float:
    return mean([fmean(popularity[i] for i in items) for items in lists if items])


def tail(popularity: Sequence[float], head: float) -> set[int]:
    """Items of the long tail: those that the head, most popular first, does not need."""
    order = sorted(range(len(popularity)), key=lambda i: (-popularity[i], i))
    held, rest = 0.0, []
    for item in order:
        if held >= head * sum(popularity):
            rest.append(item)
        held += popularity[item]
    return set(rest)


def aplt(lists: list[Ranked], tail: set[int]) -> float:
    return mean([len(tail & set(items)) / len(items) for items in lists if items])


def aclt(lists: list[Ranked], tail: set[int]) -> float:
    return mean([len(tail & set(items)) for items in lists if items])


def target_exposure(liked: set[int], n_items: int, k: int, weight: str | float) -> list[float]:
    """Average, over all orders that put the liked items first, what each item is given."""
    total, n = [0.0] * n_items, 0
    for order in permutations(range(n_items)):
        if set(order[: len(liked)]) == liked:
            n += 1
            for rank, item in enumerate(order[:k], start=1):
                total[item] += place(rank, weight)
    return [value / n for value in total]


def expected_exposure(
    lists: list[Ranked],
    liked: set[int],
    n_items: int,
    k: int,
    weight: str | float,
    groups: list[int | None] | None = None,
) -> tuple[float, float, float]:
    """EE-L, EE-D and EE-R of one user's lists."""
    m = len(liked)
    places = [place(rank, weight) for rank in range(1, k + 1)]
    top, rest = sum(places[:m]), sum(places[m:])
    wanted = [top / m if i in liked else rest / (n_items - m) for i in range(n_items)]
    given = [0.0] * n_items
    for items in lists:
        for rank, item in enumerate(items, start=1):
            given[item] += place(rank, weight) / len(lists)
    if groups is not None:
        names = sorted({g for g in groups if g is not None})
        wanted, given = (
            [sum(v for v, g in zip(values, groups, strict=True) if g == name) for name in names]
            for values in (wanted, given)
        )
    pairs = list(zip(given, wanted, strict=True))
    loss = sum((e - t) ** 2 for e, t in pairs)
    return loss, sum(e * e for e, _ in pairs), sum(e * t for e, t in pairs)


def awrf(
    items: Ranked, groups: list[int | None], wanted: Sequence[float], weight: str | float
) -> float:
    """1 minus the Jensen-Shannon divergence, to base 2, of one list's attention."""
    attention = [0.0] * len(wanted)
    for rank, item in enumerate(items, start=1):
        group = groups[item]
        if group is not None:
            attention[group] += place(rank, weight)
    if not sum(attention):
        return float("nan")
    a = [value / sum(attention) for value in attention]
    p = [value / sum(wanted) for value in wanted]

    def kl(x: list[float], y: list[float]) -> float:
        return sum(xi * log(xi / yi) / log(2) for xi, yi in zip(x, y, strict=True) if xi)

    middle = [(x + y) / 2 for x, y in zip(a, p, strict=True)]
    return 1 - (kl(a, middle) + kl(p, middle)) / 2


def rbo(first: Ranked, second: Ranked, p: float) -> float:
    """Sum the agreement of two lists that go on as they were, until no digit changes any more."""
    short, long = sorted((first, second), key=len)
    s, l = len(short), len(long)
    if not l:
        return float("nan")
    if not s:
        return 0.0
    share = len(set(short) & set(long[:s])) / s

    def agreement(d: int) -> float:
        seen = len(set(short[:d]) & set(long[:d]))
        return (seen + share * max(d - s, 0)) / d

    seen = [agreement(d) for d in range(1, l + 1)]
    seen += [seen[-1]] * int(40 / -log(p))
    return sum((1 - p) * p**d * value for d, value in enumerate(seen))


def lip(before: Ranked, after: Ranked, k: int) -> float:
    """How far below place k the lowest item of the new list stood."""
    if not before or not after:
        return float("nan")
    ranks = [before.index(item) + 1 for item in after[:k] if item in before]
    return float(max(0, max(ranks, default=0) - k))


def gini(values: Sequence[float]) -> float:
    """The mean difference of all pairs, over twice the mean."""
    n = len(values)
    return sum(abs(x - y) for x in values for y in values) / (2 * n * sum(values))


def envy(lists: list[Ranked], values: Sequence[Sequence[float]], k: int) -> tuple[float, ...]:
    """Mean envy over ordered pairs, the mean of the largest, and the share of the envious."""
    users = range(len(lists))

    def phi(u: int, items: Ranked) -> float:
        return sum(values[u][i] for i in items) / sum(sorted(values[u], reverse=True)[:k])

    pairs = [[max(phi(u, lists[w]) - phi(u, lists[u]), 0) for w in users if w != u] for u in users]
    largest = [max(row) for row in pairs]
    return fmean(map(fmean, pairs)), fmean(largest), fmean(value > 1e-12 for value in largest)
