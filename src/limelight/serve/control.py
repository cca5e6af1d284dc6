"""Which of a user's candidates she is shown, at the exposure that items have now.

It is what :class:`limelight.Online` does for one user: items are helped by what welfare says of
their exposure over the window, and the list has the k candidates of the largest relevance plus
help. Only her candidates are looked at, so the work does not grow with the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight.data.candidates.candidates import Block
from limelight.metrics.lists import position_weights
from limelight.rerank.relevance.laws import BY_RANK, BY_SCORES, HEAD
from limelight.rerank.welfare import LOG
from limelight.serve.targets.memory import FadingExposure

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.groups import Groups
    from limelight.rerank.market.market import GroupAccounts
    from limelight.rerank.market.pool import Law
    from limelight.rerank.welfare import Welfare
    from limelight.serve.ledger.ledger import Ledger

_UNIT = float(1 << 20)
_HEAD_START, _HEAD_START_OF_GROUPS = 0.3, 10.0
"""In how many lists every item, or group, counts as shown beside those of the window. Otherwise
help would follow the last few lists while the window is nearly empty."""
_COMPARISONS, _FEWEST_BETWEEN = 64, 64
"""How often in a window items are compared anew, and after how many lists at least."""
_FEWEST_PLAIN, _LARGEST_WEIGHT = 100.0, 1e100


class Choice(NamedTuple):
    """A list, as places among the candidates."""

    places: Int64
    relevance: Float32
    """Of the places."""
    subsidy: Float32
    """What was added to it."""
    plain: float
    """Relevance of the list without control, places weighted."""
    shown: float
    """The same of this list."""


class Memberships:
    """The groups of each item, and how much it belongs to each.

    Examples
    --------
    >>> from limelight.data.groups import Groups
    >>> members = Groups(np.array([2, 0]), np.array([0, 1]), np.ones(2), ["a", "b"], 0)
    >>> Memberships(members, n_items=3).sums(np.array([2, 1, 0, -1]), np.array([5.0, 7.0]))
    array([5., 0., 7., 0.])
    """

    def __init__(self, members: Groups, n_items: int) -> None:
        order = np.argsort(members.items, kind="stable")
        counts = np.bincount(members.items, minlength=n_items)
        # One row more is that of items which the catalogue does not have.
        self._starts = np.append(np.append(0, np.cumsum(counts)), len(order))
        self._groups, self._weights = members.groups[order], members.weights[order]

    def sums(self, items: Int32, values: Float64) -> Float64:
        """Return the sum over each item's groups of their values, weighted."""
        at = np.where(items < 0, len(self._starts) - 2, items)
        starts, counts = self._starts[at], self._starts[at + 1] - self._starts[at]
        rows = np.repeat(np.arange(len(items)), counts)
        entries = np.arange(len(rows)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        parts = self._weights[entries] * values[self._groups[entries]]
        return np.bincount(rows, parts, minlength=len(items)).astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ControlConfig:
    """What control needs to know of a model and its catalogue, and what stays as it is."""

    n_items: int
    law: Law
    """What candidates are worth to their users."""
    unit: float
    """The mean relevance of the places of plain lists: strength is in units of it."""
    welfare: Welfare = LOG
    length: int = 20
    """How long lists usually are."""
    merit: Float64 | None = None
    """How relevant every item is to all, where welfare asks for it."""
    offsets: Float64 | None = None
    """By item: what is added to relevance, whatever the exposure is."""
    offsets_of: Callable[[object], Float32] | None = None
    """The same by user, where users have different prices."""
    accounts: GroupAccounts | None = None
    """Groups that are helped by their own exposure."""
    groups: Groups | None = None
    """Groups that may have prices."""
    by_order: bool = False
    """Whether lists are in the order of relevance plus help, instead of relevance."""
    per_user: bool = False
    """Whether strength is in units of each user's own list."""


class PlainExposure:
    """What lists without control would give, the later ones counting more.

    Examples
    --------
    >>> plain = PlainExposure(3)
    >>> for _ in range(60):
    ...     plain.add(np.array([2, -1], np.int32), position_weights(2), lists=100.0)
    >>> plain.sums(lists=1000.0), plain.sums(lists=100.0)[:2]
    (None, array([0., 0.]))
    """

    def __init__(self, n_items: int) -> None:
        self._sums = np.zeros(n_items)
        self._weight, self._lists = 1.0, 0

    def add(self, items: Int32, weights: Float64, lists: float) -> None:
        """Count a list; as many lists as a window has are about what is remembered."""
        # The new ones weigh more instead of the old ones less, which would be a pass over all.
        self._weight *= 1 + 1 / max(lists, _FEWEST_PLAIN)
        self._lists += 1
        if len(items) and items.min() < 0:
            items, weights = items[items >= 0], weights[items >= 0]
        self._sums[items] += self._weight * weights
        if self._weight > _LARGEST_WEIGHT:
            self._sums /= self._weight
            self._weight = 1.0

    def sums(self, lists: float) -> Float64 | None:
        """Return the exposure, up to a factor; None if it is of fewer than half of some lists."""
        return self._sums if 2 * self._lists >= lists and self._lists else None


class RequestControl:
    """Chooses the list of one user after the other.

    Attributes
    ----------
    strength : float
        How much exposure counts against relevance. It may be moved at any time.
    prices : float64 array or None
        By group: what is taken off the relevance of its items, in units of ``unit``; a negative one
        is added.

    Examples
    --------
    >>> from limelight.rerank.relevance import ScoreRelevance
    >>> from limelight.serve.ledger.ledger import Ledger
    >>> config = ControlConfig(n_items=3, law=ScoreRelevance(), unit=1.0, length=1)
    >>> control, ledger = RequestControl(config, strength=0.5), Ledger(3, window=3600)
    >>> items, scores = np.arange(3, dtype=np.int32), np.array([0.9, 0.8, 0.1], np.float32)
    >>> for _ in range(3):
    ...     place = control.choose(items, scores, 1, ledger).places.item()
    ...     counted = ledger.count(items[[place]], time=0.0)
    ...     print(place)
    0
    1
    0
    """

    def __init__(self, config: ControlConfig, strength: float = 0.0) -> None:
        self.config, self.strength = config, strength
        self.prices: Float64 | None = None
        weights = position_weights(max(config.length, 1))
        self._total = float(weights.sum())
        self._weights = weights
        shares = config.welfare.shares(config.n_items)
        self._share = _constant(shares)
        merit = np.ones(config.n_items) if config.merit is None else config.merit
        self._pull = _constant(config.welfare.pull(merit))
        self._head_start = _HEAD_START * config.n_items / max(config.length, 1)
        groups = config.groups if config.accounts is None else config.accounts.members
        self._members = None if groups is None else Memberships(groups, config.n_items)
        self._marginal: Callable[[Float64], Float64] | None = None
        self._group_marginal: Callable[[Float64], Float64] | None = None
        self._compared = -1.0
        self._plain = PlainExposure(config.n_items)
        self._faded = FadingExposure()

    @property
    def unit(self) -> float:
        """What strength and prices are in units of."""
        return self.config.unit

    def plain_exposure(self, lists: float) -> Float64 | None:
        """Return what plain lists would give, up to a factor; None before it is known.

        It is known from half as many lists on as the window has.
        """
        return self._plain.sums(lists)

    def over(self, config: ControlConfig) -> RequestControl:
        """Return the same control of another catalogue, such as that of a model fitted anew."""
        found = RequestControl(config, self.strength)
        if self.prices is not None and config.groups is not None and self.config.groups is not None:
            known = dict(zip(self.config.groups.group_ids, self.prices.tolist(), strict=True))
            found.prices = np.array([known.get(id_, 0.0) for id_ in config.groups.group_ids])
        return found

    def choose(
        self,
        items: Int32,
        scores: Float32,
        k: int,
        ledger: Ledger,
        *,
        user: object = None,
        own_scores: bool = False,
    ) -> Choice:
        """Choose the list of one user.

        Parameters
        ----------
        items, scores
            Her candidates, the largest score first; a number below 0 is an item that the catalogue
            does not have, and gets no help.
        k
            Length of the list.
        ledger
            What was shown in the window.
        user
            Who she is, where prices depend on it.
        own_scores
            Whether scores are not those of the model. Then the usual law of scores counts, and
            strength is in units of this user's own list.
        """
        config = self.config
        block = Block(np.array([0, len(items)]), items, scores)
        relevance = (_usual_law(scores) if own_scores else config.law)(block)
        k = min(k, len(items))
        weights = self._weights_of(k)
        self._plain.add(items[:k], weights, ledger.lists)
        scale, own = 1.0, float(weights @ relevance[:k])
        if own_scores or config.per_user:
            mean = own / max(float(weights.sum()), 1e-12)
            scale = mean / config.unit if mean > 0 else 1.0
        if own_scores:
            # Sums over requests are then in the units of the model's own.
            relevance, own = relevance / np.float32(scale), own / scale
            scale = 1.0
        help_ = self._help(items, ledger, scale, user)
        if help_ is None:
            places = np.arange(k)
            return Choice(places, relevance[:k], np.zeros(k, np.float32), own, own)
        value = relevance + help_
        best = _largest(value, k)
        order = value if config.by_order else relevance
        places = best[np.lexsort((best, -order[best]))]
        shown = relevance[places]
        return Choice(places, shown, help_[places].astype(np.float32), own, float(weights @ shown))

    def _help(self, items: Int32, ledger: Ledger, scale: float, user: object) -> Float64 | None:
        """Return what is added to the relevance of candidates; None if nothing ever is."""
        config, unit = self.config, self.config.unit * scale
        added: list[Any] = []
        if self.strength:
            added.append(self.strength * unit * self._slopes(items, ledger))
        if config.offsets is not None:
            added.append(config.offsets[items])
        if config.offsets_of is not None:
            added.append(config.offsets_of(user)[items])
        if self.prices is not None and self._members is not None and self.prices.any():
            added.append(-unit * self._members.sums(items, self.prices))
        if not added:
            return None
        # Items that the catalogue does not have were looked up as its last one.
        return np.asarray(np.where(items < 0, 0.0, sum(added)), np.float64)

    def _slopes(self, items: Int32, ledger: Ledger) -> Float64 | float:
        """Return what one more unit of exposure is worth to items, and to their groups."""
        self._faded.follow(ledger)
        if ledger.lists - self._compared >= max(_FEWEST_BETWEEN, ledger.lists / _COMPARISONS) or (
            ledger.lists < self._compared or self._marginal is None
        ):
            self._compare(ledger)
        assert self._marginal is not None
        accounts = self.config.accounts
        slopes: Float64 | float = 0.0
        if accounts is None or accounts.items:
            held, lists = self._faded.of(items), self._faded.lists
            x = self._relative(held, _at(self._share, items), lists)
            slopes = _at(self._pull, items) * self._marginal(x)
        if accounts is None:
            return slopes
        assert self._members is not None
        assert self._group_marginal is not None
        x = self._relative_groups(accounts, ledger)
        return accounts.items * slopes + self._members.sums(items, self._group_marginal(x))

    def _relative(self, held: Float64, shares: Float64 | float, lists: float) -> Float64:
        """Return exposure over what accounts of some shares may expect."""
        start = self._head_start
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (held / shares + start * self._total) / ((lists + start) * self._total)
        # An account that is entitled to nothing counts as far above its share.
        return x if np.isscalar(shares) else np.where(np.asarray(shares) > 0, x, 1e12)

    def _relative_groups(self, accounts: GroupAccounts, ledger: Ledger) -> Float64:
        start = _HEAD_START_OF_GROUPS * len(accounts.shares) / max(self.config.length, 1)
        held, shares = ledger.group_totals / _UNIT, np.maximum(accounts.shares, 1e-12)
        x = (held / shares + start * self._total) / ((ledger.lists + start) * self._total)
        return np.asarray(np.where(accounts.shares > 0, x, 1e12))

    def _compare(self, ledger: Ledger) -> None:
        """Find the slope of welfare; where items are compared, that is one pass over all."""
        welfare, accounts = self.config.welfare, self.config.accounts
        self._compared = ledger.lists
        self._marginal = welfare.marginal
        if not welfare.is_separable:
            held, lists = self._faded.all(), self._faded.lists
            self._marginal = welfare.marginal_given(
                np.asarray(self._relative(held, self._share, lists))
            )
        if accounts is not None:
            given = self._relative_groups(accounts, ledger)
            self._group_marginal = accounts.welfare.marginal_given(given)

    def _weights_of(self, k: int) -> Float64:
        if k > len(self._weights):
            self._weights = position_weights(k)
        return self._weights[:k]


def _usual_law(scores: Float32) -> Law:
    """Return what is assumed of the scores of one request, whatever made them."""
    head = scores[:HEAD]
    if not len(head) or head[0] <= 0 or head[-1] < -0.01 * head[0]:
        return BY_RANK
    return replace(BY_SCORES, floor=max(1e-3 * float(head[0]), 1e-36))


def _constant(values: Float64) -> Float64 | float:
    """Return one number in place of many that are the same; looking it up costs nothing."""
    first = float(values[0]) if len(values) else 1.0
    return first if (values == first).all() else values


def _at(values: Float64 | float, items: Int32) -> Float64 | float:
    return values if isinstance(values, float) else values[items]


def _largest(values: Float64, k: int) -> Int64:
    """Return the places of the k largest values; of equal ones, the first."""
    if k >= len(values):
        return np.arange(len(values))
    least = np.partition(values, -k)[-k]
    above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.concatenate([above, level[: k - len(above)]])
