"""What all models share, and what a fit leaves behind.

Hyper-parameters are one frozen dataclass a method, the only place where a default stands.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from limelight._base.configurable import Configurable
from limelight._base.documents import Document, pairs
from limelight._base.errors import ConfigError, DataError
from limelight._base.text import settings, short
from limelight._native import resolve_threads
from limelight.models.learned import Learned
from limelight.models.recommender import ListAnswer, Recommender
from limelight.recommend.index import ItemIndex
from limelight.recommend.popular import with_popular
from limelight.recommend.ranking import VectorRanking
from limelight.recommend.similar import cosines
from limelight.solve.state import TraceRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limelight._base.arrays import Float32, Int32, Int64
    from limelight._base.documents import Table
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Interactions
    from limelight.models.config import Config
    from limelight.models.recommender import ListRequest
    from limelight.recommend.explain import Contributions
    from limelight.recommend.ranking import Ranking
    from limelight.solve.loop import Status
    from limelight.store.checkpoint import Place

_KEPT = 1 << 28
"""How many bytes the vectors of items may take, so that a second form of them is kept as well."""


class Model(Recommender, Configurable):
    """Learns from interactions, ranks the catalogue for users it has seen or not."""

    record: ClassVar[type] = TraceRecord
    """What the trace is made of."""
    ranks_by_history: ClassVar[bool] = True
    """Whether a history is needed: users without one then get the most popular items."""
    _takes_features: ClassVar[bool] = False
    """Whether a fit has a use for features of items."""
    config: Config
    """The settings that hold for what was learnt; before a fit, those of the fit to come."""
    chosen_: Mapping[str, Any] = MappingProxyType({})
    """What settings that are "auto" came to in the last fit, by name."""
    _refit_hint: ClassVar[str] = "fit it to all interactions, the new ones among them"
    """What to do with new interactions, in models that cannot take in these alone."""
    _learned: Learned | None = None
    _next: Config | None = None
    """The settings of the next fit, where they were changed after one."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Let every ``fit`` begin by taking the settings that were changed since the last one."""
        super().__init_subclass__(**more)
        if fit := cls.__dict__.get("fit"):
            cls.fit = _with_next_settings(fit)  # type: ignore[method-assign]

    @abstractmethod
    def fit(
        self,
        X: Any,
        *,
        weight: str | None = None,
        callback: Any = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Learn from interactions; ``weight="values"`` takes the values of a matrix for weights."""

    def partial_fit(self, new: Any) -> Self:
        """Take in new interactions without a fit to all of them, in models that can."""
        del new
        message = f"{type(self).__name__} cannot take in new interactions alone"
        raise ConfigError(message, hint=self._refit_hint)

    @abstractmethod
    def shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that a fit of this size leaves behind."""

    def optional_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of what some fits leave behind as well, all of it or nothing."""
        return {}

    @abstractmethod
    def _ranking(self, histories: Csr | None, chosen: Int64, hidden: Csr | None) -> Ranking:
        """Rank for the chosen rows of the histories or, without them, of the training data.

        What is hidden has one row for each chosen one.
        """

    @property
    def model(self) -> Model:
        """The model itself."""
        return self

    def own_ranking(
        self,
        histories: Csr | None,
        chosen: Int64,
        hidden: Csr | None,
        index: ItemIndex | None = None,
    ) -> Ranking:
        """Rank by what was learnt alone, also for users of whom nothing is known.

        Parameters
        ----------
        histories
            Of unseen users, one row each; None for training users.
        chosen
            Rows of the histories or of the training data.
        hidden
            What is not listed, one row for each chosen one.
        index
            What :meth:`VectorModel.item_index` returned, where only some items may be listed.
        """
        del index
        return self._ranking(histories, chosen, hidden)

    def _rank(
        self, histories: Csr | None, chosen: Int64, hidden: Csr | None, known: Csr | None
    ) -> Ranking:
        """Rank as ``_ranking`` does, by popularity for those of whom nothing is known.

        ``known`` has the history of each chosen user; None if they were not saved.
        """
        own = self._ranking(histories, chosen, hidden)
        if known is None or not self.ranks_by_history:
            return own
        threads = resolve_threads(self.config.num_threads)
        items, shares = self.learned.known_items, self.learned.item_shares
        return with_popular(own, known, items, shares, hidden=hidden, threads=threads)

    def _similarities(self, items: Int64) -> Float32:
        """Return how alike some items are to all items: one row each, one column an item."""
        del items
        message = f"{type(self).__name__} does not know which items are alike"
        raise ConfigError(message, hint="use a model that learns from histories, such as IALS")

    def _contributions(self, rows: Csr, item: int) -> Contributions:
        """Return what each item of a history, the only row, adds to the score of an item."""
        del rows, item
        message = f"{type(self).__name__} cannot say what each item of a history adds to a score"
        raise ConfigError(message, hint="use IALS, ExADMM or EASE, whose scores are sums")

    def _lists(self, asked: ListRequest, k: int) -> ListAnswer:
        ranking = asked.ranking(self)
        return ListAnswer(
            ranking.n_users, lambda rows: ranking.top(np.arange(rows.start, rows.stop), k)
        )

    @property
    def is_fitted(self) -> bool:
        """Whether it has learnt something."""
        return self._learned is not None

    @property
    def learned(self) -> Learned:
        """Everything that the fit left behind."""
        if self._learned is None:
            message = f"this {type(self).__name__} has not been fitted"
            raise ConfigError(message, hint="call fit(X) first, or load a fitted model")
        return self._learned

    def restore(self, **learned: Any) -> None:
        """Take over what a fit left behind: the fields of ``Learned``."""
        self._learned = Learned(**learned)

    @property
    def trace_(self) -> list[Any]:
        """How the fit went: a record for each epoch that was measured."""
        return self.learned.trace

    @property
    def status_(self) -> Status | None:
        """How the fit ended."""
        return self.learned.status

    def ranking_of(self, rows: Int64, seen: Csr | None, *, filter_seen: bool = True) -> Ranking:
        """Rank for training users whose histories are given, not kept by the model.

        Parameters
        ----------
        rows
            Row numbers of the training data.
        seen
            The histories of these users, one row each; None if nobody knows them.
        filter_seen
            As for :meth:`recommend`.
        """
        if seen is None and filter_seen:
            self._seen()  # raises, and says what to do
        return self._rank(None, rows, seen if filter_seen else None, seen)

    def _known_users(self, users: Any) -> Int64:
        n_users = len(self.user_ids)
        if users is None:
            return np.arange(n_users)
        chosen = np.atleast_1d(np.asarray(users))
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            message = f"users must be row numbers of the training matrix: {users!r}"
            hint = "ids go to user_ids="
            raise DataError(message, hint=hint)
        outside = chosen[(chosen < 0) | (chosen >= n_users)]
        if len(outside):
            message = f"user not in the training data: row {outside[0]} of {n_users:,}"
            raise DataError(message, hint="pass histories= to recommend to unseen users")
        return chosen.astype(np.int64)

    def _seen(self) -> Csr:
        if self.learned.seen is None:
            message = "the model was saved without histories, so it cannot leave seen items out"
            raise DataError(message, hint="pass filter_seen=False, or histories= of these users")
        return self.learned.seen

    def _about(self, data: Interactions, **more: Any) -> dict[str, Any]:
        """Say what a fit is of; the number of threads makes no difference to it."""
        about = {
            "kind": f"a fit of {type(self).__name__}",
            "model": type(self).__name__,
            "data": data.fingerprint(),
        }
        settings = {name: v for name, v in self.get_params().items() if name != "num_threads"}
        return about | settings | more

    def _settings(self) -> Config:
        return self._next or self.config

    def _take(self, config: Any) -> None:
        if self._learned is None:
            self.config = config
            return
        # What was learnt is folded in, saved and shown by the settings that it was learnt with.
        self.config = replace(self.config, num_threads=config.num_threads)
        self._next = None if config == self.config else config

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, and what the model was fitted to."""
        fitted = ""
        if self._learned:
            users, items = len(self.user_ids), len(self.item_ids)
            fitted = f" fitted to {users:,} users x {items:,} items"
        if self._next:
            own = self.get_params().items()
            changed = {name: v for name, v in own if v != getattr(self.config, name)}
            fitted += f", to be fitted next with {settings(changed)}"
        return f"{type(self).__name__}({settings(self.config.changed())}){fitted}"

    def _repr_html_(self) -> str:
        return Document(type(self).__name__, [self.summary()]).html()

    def summary(self) -> Table:
        """Tabulate the settings that differ from the defaults, and how the fit went."""
        changed = self.config.changed().items()
        return pairs([*((name, short(value)) for name, value in changed), *self._fitted()])

    def _fitted(self) -> list[tuple[str, str]]:
        if self._learned is None:
            return [("fitted", "no")]
        rows = [
            ("fitted to", f"{len(self.user_ids):,} users x {len(self.item_ids):,} items"),
            *((f"{name} (auto)", f"{value:.4g}") for name, value in self.chosen_.items()),
        ]
        if self.status_:
            rows.append(("ended", self.status_.name.lower()))
        if self.trace_:
            last = self.trace_[-1]
            rows.append(("last traced epoch", f"{last.epoch:,}"))
            rows.append(("objective", f"{last.objective:.6g}"))
            rows.append(("seconds", f"{last.seconds:.2f}"))
        return rows


def _with_next_settings(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def fit_anew(self: Model, *args: Any, **more: Any) -> Any:
        if not self._takes_features and more.pop("item_features", None) is not None:
            message = f"{type(self).__name__} does not use item_features"
            raise ConfigError(message, hint="use IALS or ExADMM")
        if self._next is not None:
            # What was learnt before does not go with these, so it is lost even if the fit fails.
            self.config, self._next, self._learned = self._next, None, None
        return fit(self, *args, **more)

    return fit_anew


class VectorModel(Model):
    """A model whose scores are products of a user's vector and an item's."""

    @abstractmethod
    def _item_vectors(self) -> Float32:
        """Return one row for each item."""

    @abstractmethod
    def _user_vectors(self, histories: Csr | None) -> Callable[[Int64], Float32]:
        """Return what gives the vectors of users by row.

        The users are unseen ones with these histories or, without them, those of the training.
        """

    def _similarities(self, items: Int64) -> Float32:
        return cosines(self._item_vectors(), items)

    def _ranking(self, histories: Csr | None, chosen: Int64, hidden: Csr | None) -> Ranking:
        index = None
        if self._keeps_index():
            # A first pass is there if an engine has made one.
            index = self._kept_index(first_pass="quick_index" in self.learned.kept)
        return self.own_ranking(histories, chosen, hidden, index)

    def own_ranking(
        self,
        histories: Csr | None,
        chosen: Int64,
        hidden: Csr | None,
        index: ItemIndex | None = None,
    ) -> Ranking:
        """Rank by products of vectors, also for users of whom nothing is known."""
        vectors = self._user_vectors(histories)
        return VectorRanking(
            self._item_vectors(),
            lambda rows: vectors(chosen[rows]),
            n_users=len(chosen),
            hidden=hidden,
            threads=resolve_threads(self.config.num_threads),
            index=index,
        )

    def item_index(self, items: Int32 | None = None, *, first_pass: bool = False) -> ItemIndex:
        """Return the items, or some of them, as searches want them.

        With a ``first_pass``, searches for few users at once are faster, and find the same.
        """
        if items is None and self._keeps_index():
            return self._kept_index(first_pass=first_pass)
        threads = resolve_threads(self.config.num_threads)
        index = ItemIndex(self._item_vectors(), threads, items)
        return index.with_first_pass() if first_pass else index

    def _keeps_index(self) -> bool:
        """Tell whether a second form of the items is kept, because it does not take much memory."""
        return self._item_vectors().nbytes <= _KEPT

    def _kept_index(self, *, first_pass: bool) -> ItemIndex:
        threads = resolve_threads(self.config.num_threads)
        plain = self.learned.keep("index", lambda: ItemIndex(self._item_vectors(), threads))
        return self.learned.keep("quick_index", plain.with_first_pass) if first_pass else plain
