"""Evaluation on held-out users: accuracy and exposure of the same lists, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from limelight._base.documents import Document, Table
from limelight._base.errors import DataError
from limelight._base.text import percent
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.lists import IntArray, ListCount, check_cutoffs, over_all

if TYPE_CHECKING:
    from limelight.metrics.accuracy import Sparse


@runtime_checkable
class HeldOutPart(Protocol):
    """Users whose items were divided into a history to show and targets to find."""

    @property
    def history(self) -> Sparse:
        """Users x items, what the model may see."""

    @property
    def targets(self) -> Sparse:
        """Users x items, what it should find."""


class SupportsRecommend(Protocol):
    """Anything that makes ranked lists from histories."""

    def recommend(self, histories: Any, k: int) -> tuple[IntArray, Any]:
        """Return item numbers and scores, users x k, padded with -1 and -inf."""


@runtime_checkable
class ServesByUser(Protocol):
    """Says whether a list depends on who its user is."""

    by_user: bool


@runtime_checkable
class IdentifiedPart(Protocol):
    """Held-out users who have ids."""

    user_ids: Any


@runtime_checkable
class NumbersItems(Protocol):
    """Has items with ids, numbered in their order."""

    @property
    def item_ids(self) -> Any:
        """The id of each item."""

    @property
    def has_ids(self) -> bool:
        """Whether these are ids, not the numbers of a matrix's columns."""


@runtime_checkable
class RenumberedPart(Protocol):
    """Held-out users whose items can be numbered in another order."""

    def renumbered(self, item_ids: Any, *, has_ids: bool) -> HeldOutPart:
        """Return the same users, over these items."""


SHARES = {"coverage", "top_share", "merit_distance", "merit_none_share"}
"""What people read in percent; other metrics are plain numbers."""


def figure(key: str, value: float) -> str:
    """Write a metric for people: shares in percent.

    Examples
    --------
    >>> figure("gini@20", 0.5), figure("coverage@20", 0.2905)
    ('0.5000', '29.05 %')
    """
    return percent(value, 2) if is_share(key) else f"{value:.4f}"


def is_share(key: str) -> bool:
    """Tell whether people read a metric in percent."""
    return key.split("@", maxsplit=1)[0] in SHARES


class Evaluation(Mapping[str, float]):
    """The metrics of one evaluation: read-only, under flat keys such as "ndcg@20".

    Parameters
    ----------
    metrics
        Unrounded values by key.

    Examples
    --------
    >>> evaluation = Evaluation({"users": 462, "items": 90, "ndcg@5": 0.0512, "gini@5": 0.9})
    >>> evaluation["ndcg@5"]
    0.0512
    >>> evaluation
    Evaluation over 462 users' lists and 90 items
              @5
    ndcg  0.0512
    gini  0.9000
    """

    def __init__(self, metrics: Mapping[str, float]) -> None:
        self._metrics = MappingProxyType(dict(metrics))

    def __getitem__(self, key: str) -> float:
        if key not in self._metrics:
            message = f"no metric {key!r}: there are {', '.join(self._metrics)}"
            raise KeyError(message)
        return self._metrics[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self) -> str:
        """Show a table, one row per metric and one column per cutoff."""
        found = self._table()
        lines = found.lines() if found.rows else []
        return "\n".join([self._title(), *lines])

    def document(self) -> Document:
        """Return what it shows, as tables and notes."""
        return Document(self._title(), [self._table()])

    def _repr_html_(self) -> str:
        return self.document().html()

    def sentences(self) -> list[str]:
        """Say in plain words what the longest lists find, and how they share exposure."""
        found = [key for key in self if key.startswith("ndcg@") and key[5:].isdigit()]
        if not found:
            return []
        k = found[-1][5:]
        between = ""
        if f"ndcg@{k}_low" in self:
            low, high = self[f"ndcg@{k}_low"], self[f"ndcg@{k}_high"]
            between = f" ({low:.4f} to {high:.4f})"
        return [
            f"nDCG@{k} is {self[f'ndcg@{k}']:.4f}{between}: lists of {k} find "
            f"{percent(self[f'recall@{k}'])} of what {int(self['users']):,} held-out users like.",
            f"Over these users' lists and {int(self['items']):,} items, the Gini@{k} of exposure "
            f"is {self[f'gini@{k}']:.3f}, and {percent(self[f'coverage@{k}'])} of the items are "
            "shown.",
        ]

    def _title(self) -> str:
        return f"Evaluation {over_all([ListCount.of(self)])}".rstrip()

    def _table(self) -> Table:
        main = [key for key in self if "@" in key and not key.endswith(("_low", "_high"))]
        names = list(dict.fromkeys(key.split("@")[0] for key in main))
        cutoffs = list(dict.fromkeys(key.split("@")[1] for key in main))
        rows = [(name, *(self._cell(f"{name}@{k}") for k in cutoffs)) for name in names]
        return Table(("", *(f"@{k}" for k in cutoffs)), rows)

    def _cell(self, key: str) -> str:
        if key not in self:
            return ""
        value = figure(key, self[key])
        if f"{key}_low" not in self:
            return value
        return f"{value} [{figure(key, self[f'{key}_low'])}, {figure(key, self[f'{key}_high'])}]"

    def to_dict(self) -> dict[str, float]:
        """Return the metrics as a plain dictionary, ready for JSON.

        Examples
        --------
        >>> Evaluation({"users": 3, "gini@5": 0.5}).to_dict()
        {'users': 3, 'gini@5': 0.5}
        """
        return dict(self._metrics)


def evaluate(
    model: SupportsRecommend, held_out: HeldOutPart, k: int | Sequence[int] = (5, 20)
) -> Evaluation:
    """Measure accuracy and exposure of a model's lists for held-out users.

    The histories go to the model in one call, because a joint fold-in depends on all users that
    ask together. Users without targets are then left out, of accuracy and exposure alike.

    Parameters
    ----------
    model
        A fitted model, or anything with `recommend(histories, k=...)`.
    held_out
        The held-out part of a split, such as `split.test`: `history` and `targets`. Its items are
        found by their ids where the model has others, or the same in another order.
    k
        One or several cutoffs. A cutoff above the size of the catalogue is allowed: lists are
        then padded and as long as the catalogue.

    Returns
    -------
    Evaluation
        `ndcg@k` and `recall@k` with 95 % bootstrap bounds (`_low`, `_high`); `gini@k` (log
        weight), `gini_uniform@k`, `gini_floor@k`, `coverage@k`, `entropy@k`, `top_share@k` (held
        by the top 1 % of the items); `users`, the number of scored users, and `items`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from scipy import sparse
    >>> class Newest:
    ...     def recommend(self, histories, k):
    ...         ids = np.tile(np.arange(3, 3 - k, -1), (histories.shape[0], 1))
    ...         return ids, -ids
    >>> part = SimpleNamespace(
    ...     history=sparse.csr_matrix([[1, 0, 0, 0], [0, 1, 0, 0]]),
    ...     targets=sparse.csr_matrix([[0, 0, 0, 1], [0, 0, 1, 0]]),
    ... )
    >>> evaluation = evaluate(Newest(), part, k=2)
    >>> evaluation["recall@2"], evaluation["coverage@2"]
    (1.0, 0.5)
    """
    cutoffs = check_cutoffs(k)
    if isinstance(held_out, RenumberedPart) and isinstance(model, NumbersItems):
        held_out = held_out.renumbered(model.item_ids, has_ids=model.has_ids)
    history, targets = _parts(held_out)
    known: dict[str, Any] = {}
    if isinstance(model, ServesByUser) and model.by_user and isinstance(held_out, IdentifiedPart):
        known["user_ids"] = held_out.user_ids
    ids, _ = model.recommend(history, k=cutoffs[-1], **known)
    accumulator = ListAccumulator(targets.shape[1], cutoffs)
    accumulator.update(ids, targets)
    return Evaluation(accumulator.result())


def _parts(held_out: object) -> tuple[Sparse, Sparse]:
    """Return history and targets, or say what is wrong with them."""
    if not isinstance(held_out, HeldOutPart):
        message = f"no history and targets to evaluate on: {type(held_out).__name__}"
        raise DataError(message, hint="pass a held-out part such as split.test")
    history, targets = held_out.history, held_out.targets
    if history.shape != targets.shape:
        message = f"history and targets differ in shape: {history.shape} and {targets.shape}"
        raise DataError(message, hint="both are users x items with the same numbering")
    return history, targets
