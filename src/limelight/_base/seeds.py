"""Seeds of all that is drawn: a whole number, or one drawn from a generator of the caller's."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""What ``random_state`` may be; None is the usual seed."""
_LARGEST = 2**31 - 1
"""Every function takes seeds up to this."""


def is_generator(value: object) -> bool:
    """Tell whether seeds can be drawn from a value.

    Examples
    --------
    >>> is_generator(np.random.default_rng(0)), is_generator(0)
    (True, False)
    """
    return isinstance(value, np.random.Generator | np.random.RandomState)


def seed_of(random_state: Any, seed: Any = None, *, default: int = 0) -> Any:
    """Return the seed that was given under its name or under the older one, ``seed``.

    A generator gives a number that it draws now, so that its next use draws another. What is
    neither is returned as it is, for the caller to check.

    Examples
    --------
    >>> seed_of(None, default=98765), seed_of(7), seed_of(None, 7), seed_of(7, 7)
    (98765, 7, 7, 7)
    >>> generator = np.random.default_rng(0)
    >>> seed_of(generator) == seed_of(generator)
    False
    """
    is_twice = random_state is not None and seed is not None and random_state is not seed
    if is_twice and (is_generator(random_state) or is_generator(seed) or random_state != seed):
        message = f"random_state and seed mean the same, but differ: {random_state!r}, {seed!r}"
        raise ConfigError(message, hint="leave out seed, which is the older name")
    given = seed if random_state is None else random_state
    if isinstance(given, np.random.Generator):
        return int(given.integers(_LARGEST))
    if isinstance(given, np.random.RandomState):
        return int(given.randint(_LARGEST))
    return default if given is None else given
