"""Requests, answers and errors as they go over the wire: read, written and described by msgspec.

Limits of single values stand in the types, so that reading enforces them and the OpenAPI document
states them. Fields that nobody knows are refused, because a misspelt one would do nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from limelight._base.errors import DataError
from limelight.serve.requests import Answer, Request

MOST_ITEMS = 10_000
MOST_PLACES = 1_000
LONGEST_ID = 256
MOST_EVENTS = 1_000
MOST_LINES = 100_000
"""How many items a request may name, how long a list may be, characters of an id, how many events
one call may report, and how many lines a batch may have."""

_WHOLE = 2**63

TextId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
WireId = TextId | Annotated[int, Meta(ge=-_WHOLE, le=_WHOLE - 1)]
WireIds = Annotated[list[WireId], Meta(max_length=MOST_ITEMS)]
Places = Annotated[int, Meta(ge=1, le=MOST_PLACES)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e11)]


class RecommendBody(Struct, forbid_unknown_fields=True):
    """Who asks for a list of the catalogue."""

    id: TextId | None = None
    user: WireId | None = None
    history: WireIds | None = None
    k: Places | None = None
    exclude: WireIds | None = None
    allow: WireIds | None = None

    def request(self, id_: str) -> Request:
        """Return what the engine is asked."""
        return Request(
            user=self.user,
            history=self.history,
            k=self.k,
            exclude=self.exclude or (),
            allow=self.allow,
            id=id_,
        )


class ScoredItem(Struct, forbid_unknown_fields=True, gc=False):
    """A candidate of anybody's recommender."""

    id: WireId
    score: float


class RerankBody(Struct, forbid_unknown_fields=True):
    """Candidates with scores, of which the best are wanted."""

    items: Annotated[list[ScoredItem], Meta(min_length=1, max_length=MOST_ITEMS)]
    id: TextId | None = None
    user: WireId | None = None
    k: Places | None = None

    def request(self, id_: str) -> Request:
        """Return what the engine is asked."""
        return Request(
            user=self.user,
            k=self.k,
            items=[item.id for item in self.items],
            scores=[item.score for item in self.items],
            id=id_,
        )


class BatchLine(Struct, forbid_unknown_fields=True):
    """A line of a batch: a recommendation, or with items a re-ranking."""

    id: TextId | None = None
    user: WireId | None = None
    history: WireIds | None = None
    k: Places | None = None
    exclude: WireIds | None = None
    allow: WireIds | None = None
    items: Annotated[list[ScoredItem], Meta(min_length=1, max_length=MOST_ITEMS)] | None = None

    def request(self, id_: str) -> Request:
        """Return what the engine is asked."""
        if self.items is None:
            return RecommendBody.request(self, id_)  # type: ignore[arg-type]
        for name in ("history", "exclude", "allow"):
            if getattr(self, name) is not None:
                message = f"a line with items takes no {name}: {id_}"
                raise DataError(message, hint="candidates are chosen by whoever sends them")
        return RerankBody.request(self, id_)  # type: ignore[arg-type]


class ListedItem(Struct, omit_defaults=True, gc=False):
    """An item at its place."""

    id: str | int
    rank: int
    score: float
    relevance: float | None = None
    subsidy: float | None = None


class ListedAnswer(Struct, omit_defaults=True):
    """A list, the best place first."""

    id: str
    model: str
    items: list[ListedItem]
    took_ms: float
    basis: str
    """What scores come from: user, history, everybody or candidates."""
    unknown: list[str | int] = []
    """Items of the request that the catalogue does not have."""


class ShownEvent(Struct, forbid_unknown_fields=True):
    """A list that a user has seen: the answer to a request, or the items by name."""

    id: TextId | None = None
    user: WireId | None = None
    items: Annotated[list[WireId], Meta(min_length=1, max_length=MOST_PLACES)] | None = None
    time: Seconds | None = None


class ShownBody(Struct, forbid_unknown_fields=True):
    """What was shown."""

    events: Annotated[list[ShownEvent], Meta(min_length=1, max_length=MOST_EVENTS)]


class ShownAnswer(Struct):
    """How many lists were counted now, and how many had been counted before."""

    accepted: int
    known: int
    late: int = 0
    """How many are older than the window, and were not counted."""
    unknown: list[str] = []
    """Ids of requests that this service does not remember: name the items."""
    unknown_items: list[str | int] | UnsetType = UNSET
    """Items that the catalogue does not have, if there are any; the first hundred."""


class ErrorDetail(Struct, omit_defaults=True):
    """What is wrong, and what to do about it."""

    status: int
    message: str
    hint: str | None = None
    id: str | None = None


class ErrorAnswer(Struct):
    """The body of every answer that is not a success."""

    error: ErrorDetail


class Health(Struct, omit_defaults=True):
    """Whether the service is alive, or ready."""

    status: str
    models: dict[str, str] = {}


class ReloadBody(Struct, forbid_unknown_fields=True):
    """Which model to read again; all if none is named."""

    model: TextId | None = None


class ReloadAnswer(Struct):
    """Which models are served now."""

    models: dict[str, str]
    items: dict[str, int]


class TargetBody(Struct, forbid_unknown_fields=True):
    """What exposure over the window should be; what is left out stays, and null ends it."""

    gini: Annotated[float, Meta(gt=0.0, lt=1.0)] | UnsetType | None = UNSET
    min_coverage: Annotated[float, Meta(gt=0.0, le=1.0)] | UnsetType | None = UNSET
    max_relevance_loss: Annotated[float, Meta(gt=0.0, lt=1.0)] | UnsetType | None = UNSET
    group_cap: Annotated[float, Meta(gt=0.0, le=1.0)] | UnsetType | None = UNSET
    group_floor: Annotated[float, Meta(ge=0.0, lt=1.0)] | UnsetType | None = UNSET
    model: TextId | None = None
    """Whose target; if not given, that of all models."""

    def moved(self, target: dict[str, Any]) -> dict[str, Any]:
        """Return what is asked from now on.

        Examples
        --------
        >>> TargetBody(gini=0.5, min_coverage=None).moved({"min_coverage": 0.9, "group_cap": 0.03})
        {'group_cap': 0.03, 'gini': 0.5}
        """
        names = (name for name in self.__struct_fields__ if name != "model")
        given = {name: value for name in names if (value := getattr(self, name)) is not UNSET}
        return {name: value for name, value in (target | given).items() if value is not None}


class TargetAnswer(Struct):
    """What is asked of each model now."""

    targets: dict[str, dict[str, Any] | None]


class GroupAccount(Struct, omit_defaults=True):
    """What a group of items has of all exposure, and between which bounds it should be."""

    group: str | int
    share: float
    cap: float | None = None
    floor: float | None = None


class ExposedItem(Struct, omit_defaults=True):
    """What one item was shown."""

    id: str | int
    exposure: float
    title: str | None = None


class HistoryPoint(Struct):
    """What was measured at a time."""

    time: float
    gini: float
    strength: float
    loss: float


class Latency(Struct):
    """Of the last minute's lists, in milliseconds."""

    p50: float
    p99: float


class Exposure(Struct):
    """The audit of the window, live."""

    model: str
    window_seconds: float
    lists: float
    gini: float | None
    gini_floor: float | None
    coverage: float
    lorenz: list[tuple[float, float]]
    strength: float
    target: dict[str, Any] | None
    relevance_loss: float | None
    accounts: list[GroupAccount]
    most: list[ExposedItem]
    least: list[ExposedItem]
    history: list[HistoryPoint]
    requests_per_second: float
    latency_ms: Latency | None
    notes: list[str]
    gini_plain: float | None = None
    """Of the same lists without control, where it was measured."""
    lorenz_plain: list[tuple[float, float]] | None = None
    front: list[dict[str, Any]] | None = None
    """What other targets would cost, as `fit` found it."""
    stale_seconds: float | None = None
    """Since when nothing was heard of other replicas."""


ENCODE = msgspec.json.Encoder().encode
Body = TypeVar("Body")


class BadJsonError(Exception):
    """The body is not JSON at all."""


def decode(decoder: msgspec.json.Decoder[Body], content: bytes | bytearray) -> Body:
    """Read a body.

    Raises
    ------
    BadJsonError
        If it is not JSON.
    DataError
        If it is JSON of another shape.

    Examples
    --------
    >>> decode(msgspec.json.Decoder(RecommendBody), b'{"user": 7, "k": 5}').k
    5
    """
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        hint = "see /openapi.json for what each call takes"
        message = f"the body is not as it should be: {error}"
        raise DataError(message, hint=hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadJsonError(str(error) or type(error).__name__) from None


def listed(answer: Answer, request: Request, arm: str, seconds: float) -> ListedAnswer:
    """Write an answer of the engine for the wire."""
    scores = answer.scores.tolist()
    none: list[float | None] = [None] * len(scores)
    relevance = none if answer.relevance is None else answer.relevance.tolist()
    subsidy = none if answer.subsidy is None else answer.subsidy.tolist()
    items = [
        ListedItem(*one)
        for one in zip(
            answer.items, range(1, len(scores) + 1), scores, relevance, subsidy, strict=True
        )
    ]
    took = round(1000 * seconds, 3)
    return ListedAnswer(request.id or "", arm, items, took, answer.basis, answer.unknown)
