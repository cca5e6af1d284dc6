"""Settings: what a model or a re-ranker can be told, each declared once.

A setting is a field of a frozen dataclass, made by :func:`setting`: its default, its bounds and a
sentence about it. The check of its values, its flag on the command line, its place in the files of
a model and its row in the reference all follow from that.
"""

from __future__ import annotations

import difflib
import inspect
import math
from dataclasses import Field, dataclass, field, fields
from numbers import Integral
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Union,
    get_args,
    get_origin,
)

from limelight._base.errors import ConfigError
from limelight._base.seeds import is_generator, seed_of
from limelight._base.text import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

P = ParamSpec("P")
_DECLARED = "limelight"
"""Under which key the metadata of a field hold what was declared."""


class Declared(NamedTuple):
    """What is known of a setting beside its name, its type and its default."""

    help: str
    at_least: float | None
    at_most: float | None
    above: float | None
    below: float | None
    hint: str | None
    """What to do about a number beyond the bounds."""
    flag: str
    metavar: str
    search: tuple[float, float] | None
    """Between which numbers tuning looks for a better one, if it does."""


def setting(  # noqa: PLR0913
    default: Any,
    help: str,  # noqa: A002
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    hint: str | None = None,
    flag: str = "",
    metavar: str = "",
    search: tuple[float, float] | None = None,
) -> Any:
    """Declare a setting, as a field of a dataclass.

    Parameters
    ----------
    default
        What holds unless told otherwise.
    help
        A sentence for whoever sets it.
    at_least, at_most, above, below
        Bounds of a number. All numbers are finite and at least 0.
    hint
        What to do about a number beyond them, unless it is an integer.
    flag
        Its name on the command line; made of its name unless given.
    metavar
        What stands for its value there; follows from its type unless given.
    search
        Between which numbers ``ll.tune`` looks for a better one; of a setting that is "auto", in
        multiples of what this comes to.

    Examples
    --------
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Config(Settings):
    ...     factors: int = setting(64, "Length of the vectors.", at_least=1)
    >>> Config(factors=8)
    Config(factors=8)
    """
    declared = Declared(help, at_least, at_most, above, below, hint, flag, metavar, search)
    return field(default=default, metadata={_DECLARED: declared})


class SettingType(NamedTuple):
    """The type of a setting, as far as checks and flags need to know it."""

    number: type[int] | type[float] | type[bool] | None
    """What numbers it takes, if any."""
    choices: tuple[str, ...]
    """What words it takes."""
    optional: bool
    """Whether it may be None."""


def declared_settings(config: type[Settings]) -> dict[str, Declared]:
    """Return what was declared of each setting, by its name."""
    return {f.name: f.metadata[_DECLARED] for f in fields(config) if _DECLARED in f.metadata}


def flag_of(config: type[Settings], name: str) -> str:
    """Return the flag of a setting on the command line.

    Examples
    --------
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Config(Settings):
    ...     batch_size: int = setting(500, "Users of an update.", at_least=1)
    >>> flag_of(Config, "batch_size")
    '--batch-size'
    """
    return declared_settings(config)[name].flag or f"--{name.replace('_', '-')}"


def kind_of(own: Field[Any]) -> SettingType | None:
    """Read the type of a setting; None if it is neither a number nor a word.

    Examples
    --------
    >>> @dataclass
    ... class Config:
    ...     penalty: float | Literal["auto"] = 1.0
    >>> kind_of(fields(Config)[0])
    SettingType(number=<class 'float'>, choices=('auto',), optional=False)
    """
    annotation = own.type
    if isinstance(annotation, str):
        try:
            # Annotations are our own source; names that only type checkers know are no numbers.
            annotation = eval(annotation, {"Literal": Literal})
        except NameError:
            return None
    is_union = get_origin(annotation) in {Union, UnionType}
    parts = get_args(annotation) if is_union else (annotation,)
    words = [get_args(part) for part in parts if get_origin(part) is Literal]
    plain = [part for part in parts if get_origin(part) is not Literal and part is not NoneType]
    if any(part not in {int, float, bool} for part in plain) or len(plain) > 1:
        return None
    return SettingType(plain[0] if plain else None, sum(words, ()), NoneType in parts)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a model or a re-ranker can be told; the fields are its own."""

    def __post_init__(self) -> None:
        """Refuse settings that nobody could use, and draw a seed where a generator was given."""
        given = getattr(self, "random_state", 0)
        if given is None or is_generator(given):
            # Settings are written to files, so they hold the number that was drawn. Without a seed
            # it is the usual one, as everywhere: the same call gives the same result.
            object.__setattr__(self, "random_state", seed_of(given))
        for own in fields(self):
            if _DECLARED in own.metadata:
                check_setting(own, getattr(self, own.name))
        self.check_own_settings()

    def check_own_settings(self) -> None:
        """Check what no single declaration can say: several settings together, other types."""

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults.

        Examples
        --------
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Config(Settings):
        ...     factors: int = setting(64, "Length of the vectors.", at_least=1)
        >>> Config(factors=32).changed()
        {'factors': 32}
        """
        values = {own.name: (getattr(self, own.name), own.default) for own in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}


def check_setting(own: Field[Any], value: object) -> None:
    """Refuse a value that was not declared."""
    kind, declared = kind_of(own), own.metadata[_DECLARED]
    if kind is None or (value is None and kind.optional):
        return
    if kind.number is None:
        check_choice(own.name, value, kind.choices)
    elif kind.number is bool:
        check_flag(own.name, value)
    elif not (isinstance(value, str) and value in kind.choices):
        if kind.number is int:
            most = 2**31 - 1 if declared.at_most is None else int(declared.at_most)
            check_integer(own.name, value, least=int(declared.at_least or 0), most=most)
        else:
            check_number(own.name, value, above=declared.above)
            check_bounds(own.name, value, declared)


def check_bounds(name: str, value: Any, declared: Declared) -> None:
    """Refuse a number that is smaller or larger than was declared."""
    bound = None
    if declared.at_least is not None and value < declared.at_least:
        bound = f"at least {declared.at_least:g}"
    if declared.at_most is not None and value > declared.at_most:
        bound = f"at most {declared.at_most:g}"
    if declared.below is not None and value >= declared.below:
        bound = f"below {declared.below:g}"
    if bound:
        message = f"{name} must be {bound}: {short(value)}"
        raise ConfigError(message, hint=declared.hint or f"use a number {bound}")


def hyperparameters(config: Callable[P, Settings]) -> Callable[Concatenate[Any, P], None]:
    """Make a constructor that takes a config's settings as keywords and keeps them as ``config``.

    Editors and ``help`` see the config's own signature, so no setting is written down twice. The
    reference finds the config at the constructor.
    """
    signature = inspect.signature(config)
    names = list(signature.parameters)

    def construct(self: Any, /, *args: P.args, **given: P.kwargs) -> None:
        if args:
            message = f"hyper-parameters are given by name: {args[0]!r}"
            raise ConfigError(message, hint=f"write {names[0]}={args[0]!r}")
        check_names(given, names)
        self.config = config(*args, **given)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()], return_annotation=None
    )
    construct.config = config  # type: ignore[attr-defined]
    return construct


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Refuse the name of a setting that there is not."""
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            message = f"unknown hyper-parameter: {name!r}"
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
            raise ConfigError(message, hint=hint)


def is_integer(value: object, least: int, most: float = math.inf) -> bool:
    """Tell whether a value is an integer within bounds; True and False are none.

    Examples
    --------
    >>> is_integer(20, 1), is_integer(20.0, 1), is_integer(True, 1), is_integer(20, 1, most=10)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return least <= int(value) <= most


def check_integer(name: str, value: object, *, least: int, most: int = 2**31 - 1) -> None:
    """Refuse anything but an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        message = f"{name} must be an integer: {short(value)}"
        raise ConfigError(message, hint=f"use an integer of at least {least}")
    if value.__index__() < least:
        message = f"{name} must be at least {least}: {short(value)}"
        raise ConfigError(message, hint=f"use an integer of at least {least}")
    if value.__index__() > most:
        message = f"{name} must be at most {most:,}: {short(value)}"
        raise ConfigError(message, hint=f"use an integer of at most {most:,}")


def check_number(name: str, value: object, *, above: float | None = None) -> None:
    """Refuse anything but a finite number from 0 up, or above ``above`` (-inf allows any)."""
    is_scalar = hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0
    if isinstance(value, bool) or not is_scalar:
        message = f"{name} must be a number: {short(value)}"
        raise ConfigError(message, hint="use a finite number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    is_in_bounds = number > above if above is not None else number >= 0
    if not (math.isfinite(number) and is_in_bounds):
        bound = f" above {above:g}" if above is not None else " 0 or more"
        if above == -math.inf:
            bound = ""
        message = f"{name} must be a finite number{bound}: {short(value)}"
        raise ConfigError(message, hint=f"use a finite number{bound}")


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True or False."""
    if not isinstance(value, bool):
        message = f"{name} must be True or False: {short(value)}"
        raise ConfigError(message, hint="use True or False")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse anything but one of the choices."""
    if value not in choices:
        message = f"{name} is not a known choice: {short(value)}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(choices)}")
