"""Answers requests: one list, or many at once, by a model and the control over it.

All that depends on items alone is worked out when an engine is made. What is left for a request is
the user's vector, one pass over the items, and a choice among her best candidates.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from limelight._base.errors import DataError, LimelightError
from limelight._base.settings import check_integer
from limelight.data.ids import IdLookup
from limelight.models.base import VectorModel
from limelight.recommend.fold_in import take_rows
from limelight.recommend.index import ItemIndex
from limelight.recommend.ranking import VectorRanking, empty_lists
from limelight.serve.requests import Answer, Question, refuse_repeated, scores_of
from limelight.solve.problem import sparse_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Float32, Int32
    from limelight._native._kernels import Csr
    from limelight.metrics.lists import Lists
    from limelight.models.base import Model
    from limelight.models.recommender import Recommender
    from limelight.recommend.ranking import Ranking
    from limelight.serve.control import Choice, RequestControl
    from limelight.serve.ledger.ledger import Ledger
    from limelight.serve.requests import Basis, Id, Request
    from limelight.serve.rules import NeverShown

CANDIDATES = 1000
"""From how many candidates a list is chosen, unless told otherwise."""
_NONE = np.empty(0, dtype=np.int32)


class Engine:
    """Lists for requests, exactly as ``model.recommend`` makes them, and control over these.

    Parameters
    ----------
    model
        A fitted model, or a model whose lists are re-ranked; of the latter only the model counts
        here, and ``control`` stands for the re-ranker. See ``limelight.serve.start.start_of``.
    k
        How long lists are, unless a request says otherwise.
    n_candidates
        From how many of the best items a list is chosen where there is control.
    control
        What chooses among them; without it the best are shown.
    never_show
        Items that no list shows; see ``limelight.serve.rules``.
    threads
        How many threads a search uses.
    first_pass
        Whether bounds on scores turn most items away before these are scored. They come from a
        copy of the item factors as bytes. Without it lists are the same, but take longer.

    Examples
    --------
    >>> import limelight as ll
    >>> from limelight.serve import Engine, Request
    >>> model = ll.IALS(factors=8).fit(ll.marketplace(300, 100, 4000).interactions)
    >>> engine = Engine(model, k=3)
    >>> [known, unseen] = engine.answer([Request(user=5), Request(history=[3, 9], exclude=[1])])
    >>> known.basis, unseen.basis, len(unseen.items)
    ('user', 'history', 3)
    """

    def __init__(
        self,
        model: Recommender,
        *,
        k: int = 20,
        n_candidates: int = CANDIDATES,
        control: RequestControl | None = None,
        never_show: NeverShown | None = None,
        threads: int = 1,
        first_pass: bool = True,
    ) -> None:
        check_integer("k", k, least=1)
        check_integer("n_candidates", n_candidates, least=1)
        self.model = _alone(model.model, threads)
        self.k, self.n_candidates, self.control = k, n_candidates, control
        self.item_ids = self.model.item_ids
        self.n_items = len(self.item_ids)
        self.name, self.fingerprint = type(self.model).__name__, self.model.learned.fingerprint
        self._threads = threads
        self._items, self._users = IdLookup(self.item_ids), IdLookup(self.model.user_ids)
        self._seen = self.model.learned.seen
        self._known_items = self.model.learned.known_items
        self._visible: Int32 | None = None
        self._never = frozenset[str]() if never_show is None else never_show.strangers
        if never_show is not None and len(never_show.numbers):
            is_visible = np.ones(self.n_items, dtype=np.bool_)
            is_visible[never_show.numbers] = False
            self._visible = np.flatnonzero(is_visible).astype(np.int32)
        self._index: ItemIndex | None = None
        if isinstance(self.model, VectorModel):
            self._index = self.model.item_index(self._visible, first_pass=first_pass)
        self._everybody = self._prepare_everybody()

    def numbers(self, ids: Sequence[Id]) -> Int32:
        """Return the numbers of items; -1 for those that the catalogue does not have."""
        return self._items.positions(ids)

    def knows(self, user: Id) -> bool:
        """Tell whether a user is one of the training data."""
        return self._users.position(user) >= 0

    def answer(
        self,
        requests: Sequence[Request],
        ledger: Ledger | None = None,
        *,
        time: float = 0.0,
        count: bool = True,
    ) -> list[Answer | LimelightError]:
        """Answer requests, each as if it came alone, in their order.

        Parameters
        ----------
        requests
            Who asks, and for what.
        ledger
            What was shown in the window; control follows it.
        time
            When lists are shown, in seconds.
        count
            Whether the lists are added to the ledger.

        Returns
        -------
        list
            An answer for each request or, in its place, the error that says what is wrong with it.
        """
        found: list[Answer | LimelightError | None] = [None] * len(requests)
        asked: dict[int, Question] = {}
        for place, request in enumerate(requests):
            try:
                if request.items is not None:
                    found[place] = self._rerank(request, ledger)
                else:
                    asked[place] = self._understand(request)
            except LimelightError as error:
                found[place] = error
        candidates = self._search(asked, controlled=self.control is not None and ledger is not None)
        answers: list[Answer | LimelightError] = []
        for place, request in enumerate(requests):
            one = found[place]
            if one is None:
                items, scores = candidates[place]
                one = self._choose(request, asked[place], items, scores, ledger)
            if count and ledger is not None and isinstance(one, Answer):
                ledger.count(
                    one.numbers, time=time, plain=one.plain, shown=one.shown, event=request.id
                )
            answers.append(one)
        return answers

    # What is asked

    def _understand(self, request: Request) -> Question:
        """Put a request into numbers, and decide what scores come from."""
        k = self._length(request)
        unknown: list[Id] = []
        row = -1 if request.user is None else self._users.position(request.user)
        given = self._known(request.history, unknown)
        seen = self._history_of(row)
        history = _union(seen, given) if len(given) else given
        hidden = history if len(given) else seen
        hidden = _union(hidden, self._known(request.exclude, unknown))
        basis: Basis = "everybody"
        if row >= 0 and not len(given) and self._is_learnt(row):
            basis = "user"
        elif len(history) and self._known_items[history].any():
            basis = "history"
        allowed = None
        if request.allow is not None:
            allowed = self._known(request.allow, unknown)
            if self._visible is not None:
                allowed = np.intersect1d(allowed, self._visible).astype(np.int32)
        return Question(k, basis, row, history, hidden, allowed, unknown)

    def _length(self, request: Request) -> int:
        k = self.k if request.k is None else request.k
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            message = f"k must be a whole number from 1 up: {k!r}"
            raise DataError(message, hint="k is the length of the list")
        return min(k, self.n_items)

    def _known(self, ids: Sequence[Id] | None, unknown: list[Id]) -> Int32:
        """Return the numbers of items, ascending and once each; note those that are not known."""
        if not ids:
            return _NONE
        numbers = self._items.positions(ids)
        if numbers.min() < 0:
            unknown.extend(id_ for id_, number in zip(ids, numbers, strict=True) if number < 0)
            numbers = numbers[numbers >= 0]
        numbers.sort()
        is_repeated = numbers[1:] == numbers[:-1]
        return np.unique(numbers) if is_repeated.any() else numbers

    def _history_of(self, row: int) -> Int32:
        if row < 0 or self._seen is None:
            return _NONE
        start, stop = self._seen.indptr[row : row + 2]
        return np.sort(self._seen.indices[start:stop])

    def _is_learnt(self, row: int) -> bool:
        """Tell whether a model has learnt something of a training user."""
        if not self.model.ranks_by_history or self._seen is None:
            return True
        history = self._history_of(row)
        return bool(self._known_items[history].any())

    # The best candidates

    def _search(
        self, asked: dict[int, Question], *, controlled: bool
    ) -> dict[int, tuple[Int32, Float32]]:
        """Find the best items of each question; those that are alike are searched for at once."""
        alike: dict[tuple[Basis, bool], list[int]] = {}
        for place, question in asked.items():
            key = question.basis, question.allowed is not None
            alike.setdefault(key, []).append(place)
        found: dict[int, tuple[Int32, Float32]] = {}
        for (basis, is_bound), places in alike.items():
            groups = [[place] for place in places] if is_bound else [places]
            for some in groups:
                questions = [asked[place] for place in some]
                width = max(question.k for question in questions)
                if controlled:
                    width = min(max(width, self.n_candidates), self.n_items)
                ids, scores = self._top(basis, questions, width)
                for row, place in enumerate(some):
                    n_found = int(np.count_nonzero(ids[row] >= 0))
                    found[place] = ids[row, :n_found], scores[row, :n_found]
        return found

    def _top(self, basis: Basis, questions: list[Question], width: int) -> Lists:
        ranking, allowed = self._ranking(basis, questions), questions[0].allowed
        if allowed is not None:
            if not len(allowed):
                return empty_lists(1, width)
            ranking = ranking.among(allowed)
        return ranking.top(np.arange(len(questions)), width)

    def _ranking(self, basis: Basis, questions: list[Question]) -> Ranking:
        rows = np.array([question.row for question in questions], dtype=np.int64)
        hidden = _rows_of([question.hidden for question in questions], self.n_items)
        if basis == "everybody":
            vectors, query, index = self._everybody
            return VectorRanking(
                vectors,
                lambda some: np.repeat(query[None], len(some), axis=0),
                n_users=len(rows),
                hidden=hidden,
                threads=self._threads,
                index=index,
            )
        histories = None
        if basis == "history":
            histories = self._histories(questions, hidden)
            rows = np.arange(len(questions))
        ranking = self.model.own_ranking(histories, rows, hidden, self._index)
        if self._index is None and self._visible is not None:
            ranking = ranking.among(self._visible)
        return ranking

    def _histories(self, questions: list[Question], hidden: Csr) -> Csr:
        """Return what is folded in; weights are those of the training data, and 1 for the rest."""
        rows = hidden
        if any(question.history is not question.hidden for question in questions):
            rows = _rows_of([question.history for question in questions], self.n_items)
        if not self.model.learned.weighted:
            return rows
        weights = np.ones(rows.n_entries, dtype=np.float32)
        for place, question in enumerate(questions):
            if question.row >= 0 and self._seen is not None and self._seen.weights is not None:
                known = take_rows(self._seen, np.array([question.row]))
                start = rows.indptr[place]
                at = np.searchsorted(question.history, known.indices)
                weights[start + at] = known.weights
        return sparse_rows(rows.indptr, rows.indices, self.n_items, weights)

    def _prepare_everybody(self) -> tuple[Float32, Float32, ItemIndex]:
        """Return vectors and a query for those of whom nothing is known.

        That is the mean user of a model that has vectors of users; of others, who has which item.
        """
        arrays = self.model.learned.arrays
        if self._index is not None and "user_factors" in arrays:
            vectors: Float32 = arrays["item_factors"]
            return vectors, arrays["user_factors"].mean(axis=0, dtype=np.float64), self._index
        shares = self.model.learned.item_shares()
        vectors = np.zeros(self.n_items, np.float32) if shares is None else shares
        column, query = vectors[:, None], np.ones(1, dtype=np.float32)
        return column, query, ItemIndex(column, self._threads, self._visible)

    # The list

    def _choose(
        self,
        request: Request,
        question: Question,
        items: Int32,
        scores: Float32,
        ledger: Ledger | None,
    ) -> Answer:
        choice, shown = None, np.arange(min(question.k, len(items)))
        if self.control is not None and ledger is not None and len(items):
            choice = self.control.choose(items, scores, question.k, ledger, user=request.user)
            shown = choice.places
        ids = self.item_ids[items[shown]].tolist()
        return _answer(ids, items[shown], scores[shown], question.basis, choice, question.unknown)

    def _rerank(self, request: Request, ledger: Ledger | None) -> Answer:
        """Choose from the candidates of a request, whoever scored them."""
        ids, k = list(request.items or ()), self._length(request)
        scores = scores_of(request, ids)
        numbers = self._items.positions(ids)
        unknown = [id_ for id_, number in zip(ids, numbers, strict=True) if number < 0]
        refuse_repeated(ids, numbers)
        left = np.ones(len(ids), dtype=np.bool_)
        hidden = self._known(request.exclude, unknown)
        if len(hidden):
            left &= ~np.isin(numbers, hidden)
        if request.allow is not None:
            left &= np.isin(numbers, self._known(request.allow, unknown))
        if self._visible is not None:
            left &= np.isin(numbers, self._visible) | (numbers < 0)
        if self._never:
            left &= np.array([str(id_) not in self._never for id_ in ids], dtype=np.bool_)
        # Of equal scores the first candidate comes first.
        order = np.flatnonzero(left)
        order = order[np.argsort(-scores[order], kind="stable")]
        items, scores = numbers[order], scores[order]
        choice, shown = None, np.arange(min(k, len(items)))
        if self.control is not None and ledger is not None and len(items):
            user, control = request.user, self.control
            choice = control.choose(items, scores, k, ledger, user=user, own_scores=True)
            shown = choice.places
        chosen = [ids[place] for place in order[shown].tolist()]
        return _answer(chosen, items[shown], scores[shown], "candidates", choice, unknown)


def _alone(model: Model, threads: int) -> Model:
    """Return a model that folds in every user alone, so that no answer depends on another."""
    found = copy.copy(model)
    found.config = replace(found.config, num_threads=threads)
    if getattr(found.config, "fold_in", "price") == "joint":
        found.config = replace(found.config, fold_in="price")  # type: ignore[call-arg]
    return found


def _answer(
    ids: list[Id],
    numbers: Int32,
    scores: Float32,
    basis: Basis,
    choice: Choice | None,
    unknown: list[Id],
) -> Answer:
    if choice is None:
        return Answer(ids, numbers, scores, basis, unknown=unknown)
    return Answer(
        ids,
        numbers,
        scores,
        basis,
        relevance=choice.relevance,
        subsidy=choice.subsidy,
        plain=choice.plain,
        shown=choice.shown,
        unknown=unknown,
    )


def _rows_of(rows: list[Int32], n_columns: int) -> Csr:
    """Put rows of column numbers one below the other."""
    indptr = np.array([0, *accumulate(map(len, rows))], dtype=np.int64)
    return sparse_rows(indptr, rows[0] if len(rows) == 1 else np.concatenate(rows), n_columns)


def _union(some: Int32, more: Int32) -> Int32:
    """Join numbers that ascend and differ."""
    if not len(more):
        return some
    return np.union1d(some, more).astype(np.int32) if len(some) else more
