"""Where a source of chance stands, as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = (1 << 64) - 1


def generator_state(generator: np.random.Generator) -> NDArray[np.uint64]:
    """Write down where a source of chance stands.

    Examples
    --------
    >>> one, other = np.random.default_rng(1), np.random.default_rng(2)
    >>> restore_generator(other, generator_state(one))
    >>> bool(one.random() == other.random())
    True
    """
    state = generator.bit_generator.state
    words = [state["state"]["state"], state["state"]["inc"]]
    halves = [half for word in words for half in (word & _WORD, word >> 64)]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def restore_generator(generator: np.random.Generator, stand: NDArray[np.uint64]) -> None:
    """Put a source of chance back to where it stood."""
    low, high, inc_low, inc_high, has, held = stand.tolist()
    state = dict(generator.bit_generator.state)
    state["state"] = {"state": low | high << 64, "inc": inc_low | inc_high << 64}
    state["has_uint32"], state["uinteger"] = has, held
    generator.bit_generator.state = state
