"""What all re-rankers share: rankings in, lists out, and a way to stand in for a model."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, cast

import numpy as np

from limelight._base.configurable import Configurable
from limelight._base.documents import Document, Table, pairs
from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import Settings, check_integer, check_names, check_number, setting
from limelight._base.text import settings, short
from limelight.models.recommender import ListAnswer, Recommender
from limelight.recommend.candidates import candidates_of
from limelight.recommend.ranking import CandidateRanking, as_ranking
from limelight.rerank.folder import control_of
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import by_scores, check_law

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Int32, Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.models.recommender import ListRequest, Serves
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Law
    from limelight.store.model_folder import StoredControl


@dataclass(frozen=True, kw_only=True)
class PoolConfig(Settings):
    """The settings of all re-rankers that choose from a pool of candidates.

    It stands before the class of a method's own settings in a list of bases: dataclasses collect
    fields from the last base on, so the own settings come first in signatures and texts.
    """

    relevance: Law | Literal["auto"] = setting(
        "auto",
        "What candidates are worth to their users; ``calibrate`` fits it to held-out pairs. "
        "``auto`` is the usual law of scores such as those of the first users.",
    )
    candidates: int | None = setting(
        None,
        "How many items of a model's ranking each user chooses from; see ``candidates_of``.",
        at_least=1,
    )
    random_state: int = setting(
        # The order in which users choose; users on whom prices are tried first.
        0,
        "Seed of all that is drawn.",
    )
    num_threads: int = setting(
        0, "How many threads to use; 0 means all that the process may use.", at_most=2**12
    )

    def check_own_settings(self) -> None:
        """Check that the relevance is known."""
        if self.relevance != "auto":
            check_law(self.relevance)


@dataclass(frozen=True, eq=False)
class RerankerState:
    """What a re-ranker knows beside its settings: the fields of a subclass, saved by name."""

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Self:
        """Take over what was saved. What is missing is None, and refused where it is needed."""
        return cls(**{own.name: saved.get(own.name) for own in fields(cls)})

    def saved(self) -> dict[str, Any]:
        """Return what there is to save, by name."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was saved."""
        return all(value is None for value in self.saved().values())

    def number(self, name: str) -> float:
        """Return a number from 0 up, or refuse it."""
        value = getattr(self, name)
        check_number(name, value)
        return float(value)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of finite numbers of a shape, or refuse it."""
        found: NDArray[Any] | None = getattr(self, name)
        if found is None or found.shape != shape or found.dtype.kind != "f":
            what = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
            message = f"{name} must be numbers of shape {shape}: {what}"
            raise DataError(message, hint="save the model again")
        # The kernels work in 32 bits, where a number that is finite in 64 may be infinite.
        if not (np.abs(found) <= np.finfo(np.float32).max).all():
            message = f"{name} holds values that are not finite"
            raise DataError(message, hint="save the model again")
        return found


class Reranker(Configurable, ABC):
    """Makes the lists of many users together, so that items share the exposure.

    A subclass says by :meth:`places_from` which of their candidates users are shown. Its config
    derives from :class:`PoolConfig`.
    """

    config: Any
    state_type: ClassVar[type[RerankerState]] = RerankerState
    method: ClassVar[str | None] = None
    """What ``ll.rerank(method=...)`` calls it; None where it is not offered there."""
    strength_setting: ClassVar[str] = "strength"
    """Which setting says how much exposure counts."""
    strength_is_count: ClassVar[bool] = False
    """Whether that is a whole number: of lists in which every item should stand."""
    serves: ClassVar[Serves] = "together"
    """What a list depends on, beside its user."""
    by_user: ClassVar[bool] = False
    """Whether a list depends on who the user is: ``rerank`` then takes ``user_ids``."""

    law_: Law | None = None
    """What candidates were found to be worth, where the settings leave it open."""

    @property
    def is_settled(self) -> bool:
        """Whether it knows a population, whoever comes later."""
        return False

    def rerank(self, ranking: Ranking | Candidates, k: int) -> Lists:
        """Return lists of k places, one row for each user of the ranking.

        Parameters
        ----------
        ranking
            Who ranks what, such as ``model.ranking(histories)``, or candidates, such as
            ``ll.read_candidates(file)``.
        k
            Length of the lists. Where fewer items are left, a row ends in -1 and -inf.
        """
        check_integer("k", k, least=1)
        return self._lists(as_ranking(ranking), k)

    def _lists(self, ranking: Ranking, k: int) -> Lists:
        with self.pool(ranking) as pool:
            return self.lists_from(pool, k)

    def pool(self, ranking: Ranking | Candidates) -> Pool:
        """Return the candidates of a ranking's users, with their relevance; close it after use."""
        candidates, law = candidates_of(ranking, self.config.candidates), self.config.relevance
        if law == "auto":
            # Users who come alone are served by the law of the population that is known.
            kept = self.law_ if self.is_settled else None
            law = self.law_ = kept or by_scores(candidates)
        return Pool(candidates, law)

    def lists_from(self, pool: Pool, k: int) -> Lists:
        """Return lists as :meth:`rerank` does, from a pool that stays open.

        A search that tries several strengths over the same users works out their relevance once.
        """
        return pool.lists(self.places_from(pool, k))

    @abstractmethod
    def places_from(self, pool: Pool, k: int) -> Int32:
        """Return the same lists as places among each user's candidates, ascending, then -1."""

    @classmethod
    def usual(cls, *, seed: int, threads: int) -> Self:
        """Return one with the default settings, except for the seed and the threads."""
        found, known = cls(), {"random_state": seed, "num_threads": threads}
        names = known.keys() & {own.name for own in fields(found.config)}
        found.config = replace(found.config, **{name: known[name] for name in names})
        return found

    def at(self, strength: float) -> Self:
        """Return the same re-ranker at another strength, with nothing remembered."""
        found = type(self).__new__(type(self))
        value = int(strength) if self.strength_is_count else strength
        found.config = replace(self.config, **{self.strength_setting: value})
        return found

    def over(self, model: Model) -> Reranked:
        """Return a model's lists as this re-ranker makes them, for ``ll.evaluate`` and others.

        Examples
        --------
        >>> import limelight as ll
        >>> market = ll.marketplace(600, 100, 9000)
        >>> split = ll.split_users(market.interactions, validation=50, test=100)
        >>> model = ll.Popularity().fit(split.train)
        >>> fair = ll.FairRec(alpha=0.5).over(model)
        >>> ll.evaluate(fair, split.test, k=10)["coverage@10"]
        1.0
        """
        return Reranked(self, model)

    def __sklearn_clone__(self) -> Self:
        """Return one with the same settings and nothing remembered, as ``sklearn`` asks for it."""
        # What is not made from settings alone, such as prices, was given and not remembered.
        made_of_settings = hasattr(type(self).__init__, "config")
        return type(self)(**self.get_params()) if made_of_settings else copy.deepcopy(self)

    def state(self) -> RerankerState:
        """Return what it knows beside its settings, to be saved."""
        return RerankerState()

    def restore(self, state: Any, n_items: int) -> None:
        """Take over what another one knew, of so many items."""
        del state, n_items

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        return f"{type(self).__name__}({settings(self.config.changed())})"

    def _repr_html_(self) -> str:
        usual = [] if self.config.changed() else ["All settings are the defaults."]
        return Document(type(self).__name__, [self.summary()], usual).html()

    def summary(self) -> Table:
        """Tabulate the settings that differ from the defaults."""
        return pairs((name, short(value)) for name, value in self.config.changed().items())


class RankingReranker(Reranker):
    """A re-ranker that needs scores alone, not relevance: it takes rankings without a pool."""

    @abstractmethod
    def _lists(self, ranking: Ranking, k: int) -> Lists:
        """Return lists of k places, one row for each user of the ranking."""

    def lists_from(self, pool: Pool, k: int) -> Lists:
        """Return lists of the candidates of a pool."""
        return self._lists(CandidateRanking(pool.candidates), k)

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Return the same lists as places among each user's candidates."""
        return pool.places_of(self.lists_from(pool, k).ids)


class Reranked(Recommender):
    """A model and the re-ranker that makes its lists.

    Parameters
    ----------
    reranker
        Makes the lists.
    model
        Ranks the items. It has been fitted.
    lists
        What training users are shown, one row each, where that was decided before; a row of -1 is
        a user who has no list yet. A stream adds the lists that it makes, so that who asks again
        gets hers again, and is counted once.
    """

    def __init__(self, reranker: Reranker, model: Model, lists: Lists | None = None) -> None:
        self.reranker, self._model, self.lists = reranker, model, lists
        self.serves, self.by_user = reranker.serves, reranker.by_user

    @property
    def model(self) -> Model:
        """The model whose lists are re-ranked."""
        return self._model

    def partial_fit(self, new: Any) -> NoReturn:
        """Refuse to grow: what re-ranks the lists was decided for the users and items there are."""
        del new
        message = f"{type(self.reranker).__name__} was set for the users that the model has"
        hint = "grow its model with model.model.partial_fit(new), then meet the target again"
        raise ConfigError(message, hint=hint)

    def fresh(self) -> Self:
        """Return a copy that shares the model, but not the memory of who was served."""
        lists = None if self.lists is None else self.lists.copy()
        found = type(self)(copy.deepcopy(self.reranker), self._model, lists)
        found.promise = self.promise
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Return what it is made of, so that ``sklearn.base.clone`` makes it anew, not fitted.

        With ``deep``, the settings of both parts follow, as ``model__factors``.
        """
        parts = {"reranker": self.reranker, "model": self._model}
        if not deep:
            return parts
        settings = {
            f"{name}__{own}": value
            for name, part in parts.items()
            for own, value in part.get_params().items()
        }
        return parts | settings

    def set_params(self, **given: Any) -> Self:
        """Change the parts, or their settings by names such as ``reranker__strength``.

        Examples
        --------
        >>> import limelight as ll
        >>> model = ll.IALS(factors=8).fit(ll.marketplace(300, 100, 4000).interactions)
        >>> fair = ll.BestResponse(strength=0.1).over(model)
        >>> fair.set_params(reranker__strength=0.3).reranker.get_params()["strength"]
        0.3
        """
        check_names(given, list(self.get_params()))
        for part in ("reranker", "model"):
            if part in given:
                self.__dict__[{"model": "_model"}.get(part, part)] = given[part]
            start = f"{part}__"
            own = {n.removeprefix(start): v for n, v in given.items() if n.startswith(start)}
            getattr(self, part).set_params(**own)
        # Lists that were kept are those of other settings.
        self.lists = self.promise = None
        return self

    def _lists(self, asked: ListRequest, k: int) -> ListAnswer:
        keeps = asked.items is None and self.keeps_lists(k, filter_seen=asked.filter_seen)
        if asked.histories is None and keeps:
            chosen = self._model._known_users(asked.users)
            kept = self._complete(chosen, k)
            return ListAnswer(len(chosen), lambda rows: kept.take(chosen[rows]))
        ranking = asked.ranking(self)
        known = {"user_ids": asked.user_ids} if self.by_user else {}
        return ListAnswer(ranking.n_users, self.reranker.rerank(ranking, k, **known).take)

    def _complete(self, chosen: Int64, k: int) -> Lists:
        """Return the lists that are kept, with those made that some of the chosen users lack."""
        kept = cast("Lists", self.lists)
        lacking = chosen[kept.ids[chosen, 0] < 0]
        if not len(lacking):
            return kept
        # A stream serves users in the order in which they ask.
        lacking = lacking[np.sort(np.unique(lacking, return_index=True)[1])]
        known = {"user_ids": self.user_ids[lacking]} if self.by_user else {}
        made = self.reranker.rerank(self.ranking(users=lacking), k, **known)
        found = kept.copy()
        found.ids[lacking], found.scores[lacking] = made
        if self.serves == "stream":
            self.lists = found
        return found

    def _control(self) -> StoredControl:
        return control_of(self.reranker, self.lists)

    def __repr__(self) -> str:
        """Show the re-ranker, then the model."""
        return f"{self.reranker!r} over {self._model!r}"

    def _repr_html_(self) -> str:
        above, below = type(self.reranker).__name__, type(self._model).__name__
        tables = {above: self.reranker.summary(), below: self._model.summary()}
        named = [Table((name, ""), found.rows) for name, found in tables.items()]
        return Document(f"{above} over {below}", named).html()
