"""Kinds of bad requests, and what each is answered: a status, a sentence and a hint."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

RECOMMEND, RERANK, SHOWN = "/v1/recommend", "/v1/rerank", "/v1/shown"
BATCH, EXPOSURE, TARGET, RELOAD = "/v1/batch", "/v1/exposure", "/admin/target", "/admin/reload"
JSON = {"Content-Type": "application/json"}
ADMIN_TOKEN = "of-admins-0123456789"
ADMIN = JSON | {"Authorization": f"Bearer {ADMIN_TOKEN}"}
SEE = "see /openapi.json"
OBJECT = "send one JSON object"
CALLS = "lists all calls"


class Bad(NamedTuple):
    """A request that is refused."""

    method: str
    path: str
    body: Any
    """Sent as it is if bytes, and as JSON otherwise."""
    status: int
    sentence: str
    """A part of it."""
    hint: str
    headers: dict[str, str] = JSON


def recommend(body: Any, status: int, sentence: str, hint: str = SEE, **headers: str) -> Bad:
    return Bad("POST", RECOMMEND, body, status, sentence, hint, JSON | headers)


def rerank(body: Any, sentence: str, hint: str = SEE, status: int = 422) -> Bad:
    return Bad("POST", RERANK, body, status, sentence, hint)


def shown(body: Any, sentence: str, hint: str = SEE) -> Bad:
    return Bad("POST", SHOWN, body, 422, sentence, hint)


def marked(kind: str, path: str = RECOMMEND) -> Bad:
    headers = {"Content-Type": kind} if kind else {}
    wanted = "application/x-ndjson" if path == BATCH else "application/json"
    return Bad("POST", path, b"{}", 415, "the body must be marked as", wanted, headers)


def packed(coding: str) -> Bad:
    text = f"the body must not be compressed: '{coding}'"
    headers = JSON | {"Content-Encoding": coding}
    return Bad("POST", RECOMMEND, b"{}", 415, text, "leave the header", headers)


def admin(path: str, body: Any, status: int, sentence: str, hint: str = SEE) -> Bad:
    return Bad("POST", path, body, status, sentence, hint, ADMIN)


def candidates(*items: tuple[Any, Any]) -> dict[str, Any]:
    return {"items": [{"id": id_, "score": score} for id_, score in items]}


DEEP = b"[" * 10_000 + b"]" * 10_000
LARGE = b'{"user": "' + b"x" * (1 << 20) + b'"}'

BAD_REQUESTS = {
    # no such call
    "unknown address": Bad("GET", "/v1/nothing", None, 404, "nothing at this address", CALLS),
    "slash at the end": Bad("POST", "/v1/recommend/", {}, 404, "nothing at this address", CALLS),
    "two slashes": Bad("POST", "//v1/recommend", {}, 404, "nothing at this address", CALLS),
    "dots in the path": Bad("GET", "/v1/../health/live", None, 404, "nothing at this", CALLS),
    "other case": Bad("GET", "/HEALTH/LIVE", None, 404, "nothing at this address", CALLS),
    "escaped NUL": Bad("GET", "/health/live%00", None, 404, "nothing at this address", CALLS),
    "broken escape": Bad("GET", "/health/%zz", None, 404, "nothing at this address", CALLS),
    "GET of a POST": Bad("GET", RECOMMEND, None, 405, "does not take that method", CALLS),
    "PUT": Bad("PUT", RERANK, {}, 405, "does not take that method", CALLS),
    "DELETE of a page": Bad("DELETE", "/", None, 405, "does not take that method", CALLS),
    "POST of a GET": Bad("POST", EXPOSURE, {}, 405, "does not take that method", CALLS),
    "OPTIONS": Bad("OPTIONS", SHOWN, None, 405, "does not take that method", CALLS),
    "TRACE": Bad("TRACE", "/", None, 405, "does not take that method", CALLS),
    # how a body is marked
    "no kind": marked(""),
    "a form": marked("application/x-www-form-urlencoded"),
    "text": marked("text/plain"),
    "several kinds": marked("application/json, text/plain"),
    "JSON to a batch": marked("application/json", BATCH),
    "lines to a list": marked("application/x-ndjson"),
    "a bomb of gzip": packed("gzip"),
    "a bomb of deflate": packed("deflate"),
    "a bomb of brotli": packed("br"),
    "packed twice": packed("gzip, gzip"),
    # not JSON
    "empty": recommend(b"", 400, "not JSON: Input data was truncated", OBJECT),
    "cut off": recommend(b'{"user": 1', 400, "not JSON: Input data was truncated", OBJECT),
    "two objects": recommend(b"{} {}", 400, "not JSON: JSON is malformed", OBJECT),
    "comma at the end": recommend(b'{"k": 1,}', 400, "not JSON: JSON is malformed", OBJECT),
    "single quotes": recommend(b"{'k': 1}", 400, "not JSON: JSON is malformed", OBJECT),
    "a comment": recommend(b"{} // list", 400, "not JSON: JSON is malformed", OBJECT),
    "NaN": rerank(b'{"items": [{"id": 1, "score": NaN}]}', "not JSON", OBJECT, 400),
    "Infinity": rerank(b'{"items": [{"id": 1, "score": -Infinity}]}', "not JSON", OBJECT, 400),
    "a lone surrogate": recommend(b'{"user": "\\ud800"}', 400, "not JSON", OBJECT),
    "not UTF-8": recommend(b'{"user": "\xff\xfe"}', 400, "not JSON", OBJECT),
    "UTF-16": recommend('{"user": 1}'.encode("utf-16"), 400, "not JSON", OBJECT),
    "a byte order mark": recommend(b"\xef\xbb\xbf{}", 400, "not JSON", OBJECT),
    "a raw NUL": recommend(b'{"user": "\x00"}', 400, "not JSON", OBJECT),
    "NUL after the end": recommend(b"{}\x00", 400, "not JSON", OBJECT),
    "leading zero": recommend(b'{"k": 05}', 400, "not JSON", OBJECT),
    "hexadecimal": recommend(b'{"k": 5x}', 400, "not JSON", OBJECT),
    # JSON of another shape
    "a list": recommend([], 422, "Expected `object`, got `array`"),
    "null": recommend(b"null", 422, "Expected `object`, got `null`"),
    "a number": recommend(b"7", 422, "Expected `object`, got `int`"),
    "10,000 levels": recommend(DEEP, 422, "Expected `object`, got `array`"),
    "deep in a field": recommend(b'{"user":' + DEEP + b"}", 422, "got `array` - at `$.user`"),
    "deep in a list": recommend(b'{"history":' + DEEP + b"}", 422, "at `$.history[0]`"),
    "misspelt field": recommend({"users": 1}, 422, "unknown field `users`"),
    "deep in an unknown field": recommend(b'{"x":' + DEEP + b"}", 422, "unknown field `x`"),
    "a name of 1,000 letters": recommend({"u" * 1000: 1}, 422, "unknown field `uuu"),
    # values
    "k of 0": recommend({"k": 0}, 422, "`int` >= 1 - at `$.k`"),
    "k below 0": recommend({"k": -1}, 422, "`int` >= 1 - at `$.k`"),
    "k too large": recommend({"k": 1001}, 422, "`int` <= 1000 - at `$.k`"),
    "k as text": recommend({"k": "5"}, 422, "got `str` - at `$.k`"),
    "k with a part": recommend({"k": 2.5}, 422, "got `float` - at `$.k`"),
    "k is true": recommend({"k": True}, 422, "got `bool` - at `$.k`"),
    "k of 400 digits": recommend(b'{"k": ' + b"9" * 400 + b"}", 422, "at `$.k`"),
    "user is true": recommend({"user": True}, 422, "got `bool` - at `$.user`"),
    "user is a float": recommend({"user": 1.5}, 422, "got `float` - at `$.user`"),
    "user is a list": recommend({"user": [1]}, 422, "got `array` - at `$.user`"),
    "user without letters": recommend({"user": ""}, 422, "length >= 1 - at `$.user`"),
    "user of 257 letters": recommend({"user": "x" * 257}, 422, "length <= 256 - at `$.user`"),
    "user of a megabyte": recommend({"user": "x" * 1_000_000}, 422, "length <= 256"),
    "user beyond 64 bits": recommend({"user": 2**63}, 422, "at `$.user`"),
    "user of 5,000 digits": recommend(b'{"user": ' + b"1" * 5000 + b"}", 422, "at `$.user`"),
    "user at 1e400": recommend(b'{"user": 1e400}', 422, "Number out of range - at `$.user`"),
    "id is a number": recommend({"id": 7}, 422, "got `int` - at `$.id`"),
    "id of 257 letters": recommend({"id": "x" * 257}, 422, "length <= 256 - at `$.id`"),
    "history of objects": recommend({"history": [{}]}, 422, "at `$.history[0]`"),
    "history with null": recommend({"history": [1, None]}, 422, "at `$.history[1]`"),
    "history is no list": recommend({"history": 1}, 422, "at `$.history`"),
    "too much history": recommend({"history": [1] * 10_001}, 422, "length <= 10000"),
    "too much to exclude": recommend({"exclude": [1] * 10_001}, 422, "length <= 10000"),
    "too much to allow": recommend({"allow": [1] * 10_001}, 422, "length <= 10000"),
    # candidates
    "no candidates": rerank({"items": []}, "length >= 1 - at `$.items`"),
    "candidates left out": rerank({"k": 1}, "missing required field `items`"),
    "candidates are ids": rerank({"items": [1, 2]}, "at `$.items[0]`"),
    "too many candidates": rerank(candidates(*[(1, 1)] * 10_001), "length <= 10000"),
    "no score": rerank({"items": [{"id": 1}]}, "missing required field `score`"),
    "no id": rerank({"items": [{"score": 1}]}, "missing required field `id`"),
    "a score as text": rerank(candidates((1, "0.5")), "got `str`"),
    "a score of null": rerank(candidates((1, None)), "got `null`"),
    "a score of 1e400": rerank(b'{"items": [{"id": 1, "score": 1e400}]}', "Number out of range"),
    "a score of 1e39": rerank(
        candidates((1, 1e39)), "must be finite, from -1e30 to 1e30: 1e+39", "leave out"
    ),
    "a candidate twice": rerank(candidates((7, 1), ("7", 2)), "candidate twice", "once"),
    "history of candidates": rerank(candidates((1, 1)) | {"history": [1]}, "field `history`"),
    # what was shown
    "no events": shown({"events": []}, "length >= 1 - at `$.events`"),
    "events left out": shown({}, "missing required field `events`"),
    "too many events": shown({"events": [{"id": "a"}] * 1001}, "length <= 1000"),
    "an empty event": shown({"events": [{}]}, "needs the id of a request", "has an id"),
    "a user alone": shown({"events": [{"user": 1}]}, "or a user and items: event 0", "has an id"),
    "no user": shown({"events": [{"items": [1]}]}, "or a user and items", "has an id"),
    "the second is empty": shown({"events": [{"id": "a"}, {}]}, "event 1", "has an id"),
    "no items": shown({"events": [{"id": "a", "items": []}]}, "length >= 1"),
    "too many items": shown({"events": [{"id": "a", "items": [1] * 1001}]}, "length <= 1000"),
    "before 1970": shown({"events": [{"id": "a", "time": -1}]}, "`float` >= 0.0"),
    "in 5138": shown({"events": [{"id": "a", "time": 1e12}]}, "`float` <= 1"),
    "a date as text": shown({"events": [{"id": "a", "time": "2026-01-01"}]}, "got `str`"),
    # parameters
    "top is no number": Bad("GET", f"{EXPOSURE}?top=x", None, 422, "top must be a", "?top=20"),
    "top is empty": Bad("GET", f"{EXPOSURE}?top=", None, 422, "top must be a", "?top=20"),
    "top below 0": Bad("GET", f"{EXPOSURE}?top=-1", None, 422, "0 to 1,000: '-1'", "?top=20"),
    "top too large": Bad("GET", f"{EXPOSURE}?top=1001", None, 422, "0 to 1,000", "?top=20"),
    "top of 9,000 digits": Bad("GET", f"{EXPOSURE}?top={'1' * 9000}", None, 422, "top", "?top=20"),
    "top in other digits": Bad("GET", f"{EXPOSURE}?top=%D9%A3", None, 422, "top must", "?top=20"),
    "no such model": Bad("GET", f"{EXPOSURE}?model=x", None, 422, "name: 'x'", "are: demo"),
    # size
    "a large body": recommend(LARGE, 413, "at most 1,048,576 bytes", "name fewer items"),
    "a large report": Bad("POST", SHOWN, LARGE, 413, "at most 1,048,576 bytes", "name fewer"),
    "too many lines": Bad(
        "POST",
        BATCH,
        b"\n" * 100_001,
        413,
        "at most 100,000 lines",
        "send several batches",
        {"Content-Type": "application/x-ndjson"},
    ),
    # admins
    "admin without a token": Bad("POST", RELOAD, None, 401, "token is missing", "Bearer TOKEN"),
    "admin with another": Bad(
        "POST",
        TARGET,
        {"gini": 0.5},
        401,
        "the token is wrong",
        "Bearer TOKEN",
        JSON | {"Authorization": "Bearer not-the-admin-token"},
    ),
    "admin by password": Bad(
        "POST",
        TARGET,
        {"gini": 0.5},
        401,
        "the token is missing",
        "Bearer TOKEN",
        JSON | {"Authorization": "Basic b2Y6YWRtaW5z"},
    ),
    "gini of 1": admin(TARGET, {"gini": 1.0}, 422, "`float` < 1.0 - at `$.gini`"),
    "gini of 0": admin(TARGET, {"gini": 0}, 422, "`float` > 0.0 - at `$.gini`"),
    "gini as text": admin(TARGET, {"gini": "0.5"}, 422, "got `str` - at `$.gini`"),
    "coverage above 1": admin(TARGET, {"min_coverage": 1.1}, 422, "at `$.min_coverage`"),
    "target of no model": admin(TARGET, {"model": "x"}, 422, "name: 'x'", "the models are: demo"),
    "a bound of no groups": admin(TARGET, {"group_cap": 0.1}, 422, "need groups of items", ""),
    "target of nothing": admin(TARGET, b"", 400, "not JSON", OBJECT),
    "reload of no model": admin(RELOAD, {"model": "x"}, 422, "name: 'x'", "the models are: demo"),
    "reload with a list": admin(RELOAD, [], 422, "Expected `object`, got `array`"),
}


def content_of(bad: Bad) -> bytes | None:
    """Return what is sent."""
    if bad.body is None or isinstance(bad.body, bytes):
        return bad.body
    return json.dumps(bad.body).encode()
