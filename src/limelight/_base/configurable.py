"""What models and re-rankers share: settings by name, and a docstring that lists them."""

from __future__ import annotations

import inspect
import math
import textwrap
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

from limelight._base.settings import Declared, check_names, declared_settings, kind_of

if TYPE_CHECKING:
    from dataclasses import Field

    from limelight._base.settings import Settings, SettingType

_LATER = ("Attributes\n---", "Examples\n---")
"""Sections of a docstring that stand after the parameters."""


class Configurable:
    """Has settings, given to its constructor by name and kept as ``config``."""

    config: Any

    def __init_subclass__(cls, **more: Any) -> None:
        """List the settings in the docstring, where ``help`` and notebooks look for them."""
        super().__init_subclass__(**more)
        config = getattr(cls.__dict__.get("__init__"), "config", None)
        if config is not None and cls.__doc__:
            cls.__doc__ = with_parameters(cls.__doc__, config)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Return the settings by name.

        Parameters
        ----------
        deep
            Taken because scikit-learn gives it; settings hold no estimators.

        Examples
        --------
        >>> import limelight as ll
        >>> ll.IALS(factors=8).get_params()["factors"]
        8
        """
        del deep
        return {own.name: getattr(self._settings(), own.name) for own in fields(self._settings())}

    def set_params(self, **given: Any) -> Self:
        """Change settings by name; unknown names and values out of bounds are refused.

        A fitted model stays as it is: it serves, and is saved, with the settings that it was
        learnt with, and the next fit uses the new ones. ``num_threads`` counts at once. So do all
        settings of a re-ranker.

        Examples
        --------
        >>> import limelight as ll
        >>> ll.IALS(factors=8).set_params(epochs=3)
        IALS(factors=8, epochs=3)
        """
        settings = self._settings()
        check_names(given, [own.name for own in fields(settings)])
        self._take(replace(settings, **given))
        return self

    def _settings(self) -> Settings:
        """Return the settings as they were last given."""
        found: Settings = self.config
        return found

    def _take(self, config: Settings) -> None:
        self.config = config


def with_parameters(text: str, config: type[Settings]) -> str:
    """Write the settings into a docstring, before its examples.

    Examples
    --------
    >>> from limelight.models.popularity import RandomConfig
    >>> for line in with_parameters("Draws items.", RandomConfig).splitlines()[4:]:
    ...     print(line)
    num_threads : int, default 0
        How many threads to use; 0: all that the process may use. From 0 to 4,096.
    random_state : int, NumPy generator or None, default 0
        The same seed gives the same result. From 0 up.
    """
    declared = declared_settings(config)
    lines = [
        line
        for own in fields(config)
        if own.name in declared
        for line in _described(own, declared[own.name])
    ]
    section = "\n".join(["Parameters", "----------", *lines])
    parts = inspect.cleandoc(text).split("\n\n")
    parts = [part for part in parts if not part.startswith("Parameters are the fields of")]
    place = next((n for n, part in enumerate(parts) if part.startswith(_LATER)), len(parts))
    return "\n\n".join([*parts[:place], section, *parts[place:]])


def _described(own: Field[Any], declared: Declared) -> list[str]:
    kind = kind_of(own)
    about = f"{declared.help} {_bounds(kind, declared)}".strip()
    wrapped = textwrap.wrap(about, 92, initial_indent="    ", subsequent_indent="    ")
    return [f"{own.name} : {_type(own, kind)}, default {own.default!r}", *wrapped]


def _type(own: Field[Any], kind: SettingType | None) -> str:
    """Write a type as people do: ``float or 'auto'``."""
    if own.name == "random_state":
        return "int, NumPy generator or None"
    if kind is None:
        return str(getattr(own.type, "__name__", own.type)).replace(" | ", " or ")
    names = [] if kind.number is None else [kind.number.__name__]
    return " or ".join([*names, *map(repr, kind.choices), *(["None"] if kind.optional else [])])


def _bounds(kind: SettingType | None, declared: Declared) -> str:
    """Say between what a number must lie."""
    if kind is None or kind.number not in {int, float} or declared.above == -math.inf:
        return ""
    least, most = f"From {_number(declared.at_least or 0)}", " up"
    if declared.above is not None:
        least, most = f"Above {_number(declared.above)}", ""
    if declared.at_most is not None:
        most = f" to {_number(declared.at_most)}"
    elif declared.below is not None:
        most = f" to below {_number(declared.below)}"
    return f"{least}{most}."


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
