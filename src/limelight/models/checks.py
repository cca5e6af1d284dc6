"""Checks of hyper-parameters, each with a sentence that names the setting and its value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from limelight._errors import ConfigError
from limelight._short import short

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_integer(name: str, value: object, *, least: int, most: int = 2**31 - 1) -> None:
    """Refuse anything but an integer from ``least`` to ``most``.

    Examples
    --------
    >>> check_integer("factors", 64, least=1)
    """
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
    """Refuse anything but a finite number from 0 up, or strictly above ``above``; -inf is any.

    Examples
    --------
    >>> check_number("unobserved_weight", 0.1)
    """
    is_one = hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0
    if isinstance(value, bool) or not is_one:
        message = f"{name} must be a number: {short(value)}"
        raise ConfigError(message, hint="use a finite number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    low_enough = number > above if above is not None else number >= 0
    if not (math.isfinite(number) and low_enough):
        bound = f" above {above:g}" if above is not None else " 0 or more"
        if above == -math.inf:
            bound = ""
        message = f"{name} must be a finite number{bound}: {short(value)}"
        raise ConfigError(message, hint=f"use a finite number{bound}")


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True or False.

    Examples
    --------
    >>> check_flag("envy_free", True)
    """
    if not isinstance(value, bool):
        message = f"{name} must be True or False: {short(value)}"
        raise ConfigError(message, hint="use True or False")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse anything but one of the choices.

    Examples
    --------
    >>> check_choice("fold_in", "price", ["price", "joint"])
    """
    if value not in choices:
        message = f"{name} is not a known choice: {short(value)}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(choices)}")
