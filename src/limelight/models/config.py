"""Hyper-parameters: one frozen dataclass a method, the only place where a default stands."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

from limelight._errors import ConfigError
from limelight._short import settings
from limelight.models.checks import check_choice, check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")

_WEIGHTS = (
    "regularization",
    "regularization_exponent",
    "unobserved_weight",
    "init_scale",
    "exposure_weight",
    "exposure_strength",
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a model or a re-ranker can be told; the fields are its own."""

    def __post_init__(self) -> None:
        """Refuse settings that nobody could use."""
        self.check_own_settings()

    def check_own_settings(self) -> None:
        """Check the fields; nothing, unless a subclass says so."""

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults.

        Examples
        --------
        >>> FactorConfig(factors=32).changed()
        {'factors': 32}
        """
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """What all models can be told."""

    num_threads: int = 0
    """How many threads to use; 0 means all that the process may use."""

    def __post_init__(self) -> None:
        """Refuse settings that no fit could use."""
        check_integer("num_threads", self.num_threads, least=0, most=2**12)
        self.check_own_settings()


@dataclass(frozen=True, kw_only=True)
class FactorConfig(Config):
    """What all models of user and item factors can be told."""

    factors: int = 64
    """Length of every user's and item's vector."""
    regularization: float = 0.003
    """Weight of the squared norms, scaled by how much data stands behind a row."""
    regularization_exponent: float = 1.0
    """How that scale grows with the data: 0 not at all, 1 in proportion."""
    unobserved_weight: float = 0.1
    """Weight of a pair that was not observed; an observed one weighs 1."""
    row_solver: Literal["cholesky", "cg"] = "cholesky"
    """How a row is solved: exactly, or by a few conjugate-gradient steps (for many factors)."""
    epochs: int = 16
    """How many times all users and items are updated."""
    tolerance: float = 0.0
    """Stop when a traced epoch moves nothing by more than this share of its size."""
    init_scale: float = 0.1
    """Standard deviation of the first factors, times the square root of their number."""
    random_state: int = 0
    """Seed of the first factors; the same seed gives the same bits on any number of threads."""
    trace_every: int = 10
    """Measure the objective every so many epochs, and after the last one; 0 means only then."""

    def check_own_settings(self) -> None:
        """Check sizes and weights."""
        for name, least in (("epochs", 1), ("trace_every", 0), ("random_state", 0)):
            check_integer(name, getattr(self, name), least=least)
        check_integer("factors", self.factors, least=1, most=2**15)
        for name in ("regularization", "regularization_exponent", "unobserved_weight", "tolerance"):
            check_number(name, getattr(self, name))
        check_number("init_scale", self.init_scale, above=0)
        check_choice("row_solver", self.row_solver, ["cholesky", "cg"])

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


def hyperparameters(config: Callable[P, Settings]) -> Callable[Concatenate[Any, P], None]:
    """Make a constructor that takes a config's settings as keywords and keeps them as ``config``.

    Editors and ``help`` see the config's own signature, so no setting is written down twice.
    """
    signature = inspect.signature(config)
    names = list(signature.parameters)

    def construct(self: Any, /, *args: P.args, **given: P.kwargs) -> None:
        if args:
            message = f"hyper-parameters are given by name: {args[0]!r}"
            raise ConfigError(message, hint=f"write {names[0]}={args[0]!r}")
        for name in given:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                message = f"unknown hyper-parameter: {name!r}"
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
                raise ConfigError(message, hint=hint)
        self.config = config(*args, **given)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()], return_annotation=None
    )
    return construct
