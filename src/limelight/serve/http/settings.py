"""What a service is told when it starts: models, a target, where exposure is kept, and limits."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import short
from limelight.data.sources import TableSource
from limelight.serve.targets.goal import ServedGoal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

VARIABLE = "LIMELIGHT_SERVE"
"""The environment variable through which several workers get their settings."""
TOKEN, ADMIN_TOKEN = "LIMELIGHT_TOKEN", "LIMELIGHT_ADMIN_TOKEN"
DEFAULT_WINDOW = 7 * 86_400.0
_PARTS = 10_000
_SHORTEST_TOKEN = 16

Counting = Literal["shown", "served"]


@dataclass(frozen=True)
class ServiceLimits:
    """What a client may take; see :mod:`limelight.serve.http.wire` for those of single values."""

    body_bytes: int = 1 << 20
    """Of a body, and of a line of a batch."""
    batch_bytes: int = 1 << 26
    header_bytes: int = 1 << 15
    connections: int = 1000
    queue: int = 512
    """Requests that may wait for an answer."""
    seconds: float = 2.0
    """A request may wait for its list."""
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    """A client may take to send the head of a request, and its body or the next part of a batch."""
    idle_seconds: float = 75.0
    """A connection may stay open without a request."""
    rate: float | None = None
    """Requests a second from one address."""

    def __post_init__(self) -> None:
        for own in fields(self):
            value = getattr(self, own.name)
            if value is not None and not value > 0:
                message = f"{own.name.replace('_', ' ')} must be positive: {value:g}"
                raise ConfigError(message, hint="leave the flag out for the usual limit")


@dataclass(frozen=True)
class ServeSettings:
    """All settings of a service but its tokens, which stay out of files and lists of processes."""

    models: dict[str, str]
    """Folders by name."""
    split: dict[str, float] = field(default_factory=dict)
    """The share of the users that each model serves; equal ones if not given."""
    k: int = 20
    candidates: int | None = None
    target: dict[str, Any] = field(default_factory=dict)
    """gini, min_coverage, max_relevance_loss, group_cap, group_floor."""
    groups: str | None = None
    window: float | None = None
    half_life: float | None = None
    never_show: str | None = None
    catalogue: str | None = None
    """A table of titles."""
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How the columns of groups, never_show and catalogue are named, where they were named."""
    ledger: str | None = None
    """A folder, or the address of a Valkey or Redis server."""
    flush_every: float = 1.0
    """Seconds between writings of the ledger: so much may be lost by a kill."""
    durable: bool = False
    """Whether the ledger is written before every answer, so that a kill loses nothing."""
    count: Counting = "shown"
    log_users: bool = False
    log_requests: bool = True
    threads: int = 1
    workers: int = 1
    token_file: str | None = None
    admin_token_file: str | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    def __post_init__(self) -> None:
        if not self.models:
            message = "there is no model to serve"
            raise ConfigError(message, hint="name a model folder")
        if self.window is not None and self.half_life is not None:
            message = f"a window and a half-life exclude each other: {self.half_life:g} s"
            raise ConfigError(message, hint="leave one of them out")
        if not 0 < self.flush_every <= 3600:
            message = (
                f"the flush interval must be above 0, and at most 1 hour: {self.flush_every:g} s"
            )
            raise ConfigError(message, hint="1 is usual; --durable loses nothing")
        if self.workers < 1:
            message = f"there must be at least one worker: {self.workers}"
            raise ConfigError(message, hint="--workers 1 serves from one process")
        if self.workers > 1 and not self.shares_ledger:
            message = f"{self.workers} workers must share a ledger, and a folder is of one process"
            hint = "add --ledger redis://HOST:6379/0, or leave --workers out"
            raise ConfigError(message, hint=hint)
        if self.k < 1 or self.threads < 0:
            message = f"k must be at least 1, and threads at least 0: {self.k}, {self.threads}"
            raise ConfigError(message, hint="20 and 1 are usual")
        if self.goal is not None and self.goal.has_groups and self.groups is None:
            message = f"caps and floors need groups of items: {self.goal}"
            raise ConfigError(message, hint="name a table item_id,group[,weight] with --groups")
        if self.split and set(self.split) != set(self.models):
            names = ", ".join(self.models)
            message = f"a split names every model, and no other: {', '.join(self.split)}"
            raise ConfigError(message, hint=f"the models are: {names}")

    def table(self, name: str) -> TableSource | None:
        """Return groups, never_show or catalogue with the names of its columns, if it was given."""
        path = getattr(self, name)
        return None if path is None else TableSource(path, **self.columns.get(name, {}))

    @property
    def shares_ledger(self) -> bool:
        """Whether other processes count into the same ledger."""
        return self.ledger is not None and "://" in self.ledger

    @property
    def goal(self) -> ServedGoal | None:
        """What is to be held; None if nothing is."""
        return ServedGoal(**self.target) if self.target else None

    @property
    def forgetting(self) -> tuple[float | None, float | None]:
        """The window and the half-life in seconds, of which one is None."""
        if self.half_life is not None:
            return None, self.half_life
        return self.window or DEFAULT_WINDOW, None

    def to_json(self) -> str:
        """Write the settings for other processes."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote.

        Examples
        --------
        >>> ServeSettings.from_json(ServeSettings({"a": "model/"}, k=5).to_json()).k
        5
        """
        found = json.loads(text)
        return cls(**found | {"limits": ServiceLimits(**found["limits"])})

    def ledger_folder(self, name: str) -> Path:
        """Say where the exposure of a model is kept."""
        if self.ledger is not None:
            folder = Path(self.ledger)
            return folder if len(self.models) == 1 else folder / name
        folder = default_ledger(self.models[name])
        return folder if len(self.models) == 1 else folder.with_name(f"{folder.name}-{name}")


def default_ledger(model: str | os.PathLike[str]) -> Path:
    """Give the folder of a model's ledger in the user's folder of states, by the model's path.

    Examples
    --------
    >>> default_ledger("run/model").parent.name
    'ledgers'
    """
    path = Path(model).resolve()
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(base) / "limelight" / "ledgers" / f"{path.name or 'model'}-{digest}"


def parse_models(texts: Sequence[str]) -> dict[str, str]:
    """Read ``name=folder``; one folder alone is named after itself.

    Examples
    --------
    >>> parse_models(["a=run/old", "b=run/new"]), parse_models(["run/model"])
    ({'a': 'run/old', 'b': 'run/new'}, {'model': 'run/model'})
    """
    found: dict[str, str] = {}
    for text in texts:
        name, is_named, folder = text.partition("=")
        if not is_named or Path(text).exists():
            # A folder may have any name; that of a model stands in addresses and figures.
            own = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(text).resolve().name).strip("-.")
            name, folder = own or "model", text
        if not (
            name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        ):
            message = f"a model's name has letters, digits, '-', '_' and '.': {short(name)}"
            raise ConfigError(message, hint="for example --model old=run/model")
        if name in found:
            message = f"two models have the same name: {name!r}"
            raise ConfigError(message, hint="name them: --model a=FOLDER --model b=FOLDER")
        found[name] = folder
    return found


def parse_split(text: str | None) -> dict[str, float]:
    """Read ``a=90,b=10``.

    Examples
    --------
    >>> parse_split("a=90,b=10")
    {'a': 90.0, 'b': 10.0}
    """
    found: dict[str, float] = {}
    for part in (text or "").split(",") if text else ():
        name, _, share = part.partition("=")
        try:
            found[name.strip()] = float(share)
        except ValueError:
            found = {}
            break
    if text and not (found and all(0 <= s < 1e9 for s in found.values()) and sum(found.values())):
        message = f"--split must say how many users each model serves: {short(text)}"
        raise ConfigError(message, hint="for example --split a=90,b=10")
    return found


class UserSplit:
    """Which model serves whom: by a hash of the user, so that she always meets the same one.

    Examples
    --------
    >>> split = UserSplit(["a", "b"], {"a": 90, "b": 10})
    >>> split.of(17) == split.of("17")
    True
    >>> sum(split.of(user) == "b" for user in range(10_000))
    1001
    """

    def __init__(self, names: Sequence[str], shares: Mapping[str, float]) -> None:
        self._names = list(names)
        whole = sum(shares.values()) or len(self._names)
        self._ends, end = [], 0.0
        for name in self._names:
            end += _PARTS * (shares[name] if shares else 1) / whole
            self._ends.append(end)

    def of(self, user: str | int) -> str:
        """Return the name of the model."""
        if len(self._names) == 1:
            return self._names[0]
        digest = hashlib.blake2b(str(user).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        place = int.from_bytes(digest, "big") % _PARTS
        return next(
            (name for name, end in zip(self._names, self._ends, strict=True) if place < end),
            self._names[-1],
        )


def read_tokens(file: str | None, variable: str) -> tuple[bytes, ...]:
    """Read tokens from a file, one a line, or from an environment variable; none: no token.

    Raises
    ------
    DataError
        If the file cannot be read.
    ConfigError
        If a token is so short that it can be guessed.
    """
    text = os.environ.get(variable, "")
    if file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            message = f"the file of tokens cannot be read ({reason}): {file!r}"
            raise DataError(message, hint="it holds one token a line") from None
    found = tuple(line.strip().encode() for line in text.splitlines() if line.strip())
    if file is not None and not found:
        message = f"the file of tokens is empty: {file!r}"
        raise DataError(message, hint="it holds one token a line")
    if any(len(token) < _SHORTEST_TOKEN for token in found):
        message = f"a token must have at least {_SHORTEST_TOKEN} characters: {file or variable}"
        raise ConfigError(message, hint="make one with: openssl rand -hex 32")
    return found
