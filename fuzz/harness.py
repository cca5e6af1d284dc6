"""What every fuzz target shares: how it runs, and what counts as an answer.

A target is a function of some bytes. It may return, or raise one of the errors that a user is told
about. Anything else that leaves it is a finding, and so is a crash, a hang or a flood of memory,
for which libFuzzer watches.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import atheris

if TYPE_CHECKING:
    from collections.abc import Callable

    Target = Callable[[bytes], None]
    Mutator = Callable[[bytes, int, int], bytes]


def run(target: Target, answer: type[Exception], mutator: Mutator | None = None) -> None:
    """Let libFuzzer call a target until it finds something or its time is up.

    Parameters
    ----------
    target
        What to call.
    answer
        The errors that are a fair answer.
    mutator
        Makes an input of another one, given the largest size and a seed; libFuzzer's own if none.
    """

    def one(data: bytes) -> None:
        try:
            target(data)
        except answer:
            return

    atheris.Setup(sys.argv, one, **({"custom_mutator": mutator} if mutator else {}))
    atheris.Fuzz()
