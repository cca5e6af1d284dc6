"""What all models share, and what a fit leaves behind.

Hyper-parameters are one frozen dataclass a method, the only place where a default stands.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from limelight._base.documents import Document, pairs
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import Settings, setting
from limelight._base.text import settings, short
from limelight._native import resolve_threads
from limelight.models.recommender import Answer, Recommender
from limelight.recommend.ranking import VectorRanking
from limelight.solve.state import TraceRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Int64
    from limelight._base.documents import Table
    from limelight._native._kernels import Csr
    from limelight.data.interactions import Ids, Interactions
    from limelight.recommend.ranking import Ranking
    from limelight.solve.loop import Status
    from limelight.store.checkpoint import Place


class Model(Recommender):
    """Learns from interactions, ranks the catalogue for users it has seen or not."""

    record: ClassVar[type] = TraceRecord
    """What the trace is made of."""
    config: Config
    _learned: Learned | None = None

    @abstractmethod
    def fit(
        self,
        X: Any,
        *,
        callback: Any = None,
        show_progress: bool | None = None,
        checkpoint: Place = None,
    ) -> Self:
        """Learn from interactions."""

    def partial_fit(self, new: Any) -> Self:
        """Take in new interactions without a fit to all of them, in models that can."""
        del new
        message = f"{type(self).__name__} cannot take in new interactions alone"
        raise ConfigError(message, hint="fit it to all interactions, the new ones among them")

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

    def _lists(
        self, histories: Any, k: int, users: Any, user_ids: Any, *, filter_seen: bool
    ) -> Answer:
        del user_ids
        ranking = self.ranking(histories, users=users, filter_seen=filter_seen)
        return Answer(
            ranking.n_users, lambda rows: ranking.top(np.arange(rows.start, rows.stop), k)
        )

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
        return self._ranking(None, rows, seen if filter_seen else None)

    def _known_users(self, users: Any) -> Int64:
        n_users = len(self.user_ids)
        if users is None:
            return np.arange(n_users)
        chosen = np.atleast_1d(np.asarray(users))
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            message = f"users must be row numbers of the training matrix: {users!r}"
            hint = "find the row of an id with numpy.flatnonzero(model.user_ids == id)"
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
        about = {"model": type(self).__name__, "data": data.fingerprint()}
        settings = {name: v for name, v in self.get_params().items() if name != "num_threads"}
        return about | settings | more

    def get_params(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return asdict(self.config)

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, and what the model was fitted to."""
        fitted = ""
        if self._learned:
            users, items = len(self.user_ids), len(self.item_ids)
            fitted = f" fitted to {users:,} users x {items:,} items"
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
        ]
        if self.status_:
            rows.append(("ended", self.status_.name.lower()))
        if self.trace_:
            last = self.trace_[-1]
            rows.append(("last traced epoch", f"{last.epoch:,}"))
            rows.append(("objective", f"{last.objective:.6g}"))
            rows.append(("seconds", f"{last.seconds:.2f}"))
        return rows


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

    def _ranking(self, histories: Csr | None, chosen: Int64, hidden: Csr | None) -> Ranking:
        vectors = self._user_vectors(histories)
        return VectorRanking(
            self._item_vectors(),
            lambda rows: vectors(chosen[rows]),
            n_users=len(chosen),
            hidden=hidden,
            threads=resolve_threads(self.config.num_threads),
        )


@dataclass(frozen=True, eq=False)
class Learned:
    """The arrays of a fitted model, and where they came from."""

    arrays: Mapping[str, NDArray[Any]]
    """What the model keeps, by name."""
    user_ids: Ids
    item_ids: Ids
    fingerprint: str
    """Of the training data."""
    seen: Csr | None
    """The training histories, which ``recommend`` leaves out; None if they were not saved."""
    trace: list[Any] = field(default_factory=list)
    """One record for each measured epoch."""
    status: Status | None = None
    features: dict[str, Any] | None = None
    """How features of items are read, as JSON, if the fit was given some."""


_WEIGHTS = (
    "regularization",
    "regularization_exponent",
    "unobserved_weight",
    "init_scale",
    "exposure_weight",
    "exposure_strength",
)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """What all models can be told."""

    num_threads: int = setting(
        0,
        "How many threads to use; 0: all that the process may use.",
        at_most=2**12,
        flag="--threads",
    )


@dataclass(frozen=True, kw_only=True)
class FactorConfig(Config):
    """What all models of user and item factors can be told."""

    factors: int = setting(64, "Length of the vectors.", at_least=1, at_most=2**15)
    regularization: float = setting(0.003, "Weight of the squared norms of what is learnt.")
    regularization_exponent: float = setting(
        1.0, "How that weight grows with the data of a row: 0 not, 1 in proportion."
    )
    unobserved_weight: float = setting(
        0.1, "Weight of a pair that was not observed; an observed one weighs 1."
    )
    row_solver: Literal["cholesky", "cg"] = setting(
        "cholesky", "Solve every row exactly, or by a few steps of descent: for many factors."
    )
    epochs: int = setting(16, "How many times all users and items are updated.", at_least=1)
    tolerance: float = setting(0.0, "Stop when an epoch moves nothing by more than this share.")
    init_scale: float = setting(
        # The standard deviation of the first factors, times the square root of their number.
        0.1,
        "Size of the random vectors at the start.",
        above=0,
    )
    random_state: int = setting(0, "The same seed gives the same result.", flag="--seed")
    trace_every: int = setting(
        10, "Measure the objective every so many epochs, and after the last; 0: only then."
    )

    @property
    def advice(self) -> str:
        """What to change where the numbers of a fit run away: what is not as usual.

        Examples
        --------
        >>> FactorConfig(factors=32, init_scale=1e30).advice
        'bring this nearer to its default: init_scale=1e+30'
        """
        unusual = {name: value for name, value in self.changed().items() if name in _WEIGHTS}
        if not unusual:
            return "raise regularization"
        which = (
            "this nearer to its default" if len(unusual) == 1 else "these nearer to the defaults"
        )
        return f"bring {which}: {settings(unusual)}"
