"""How many examples Hypothesis tries: fewer while one works, all in the gate, many in a soak."""

from typing import Any

from hypothesis import settings


def examples(in_the_gate: int = 100, **more: Any) -> settings:
    """Return settings with so many examples in the gate, and in proportion in other profiles."""
    percent = settings.default.max_examples
    return settings(max_examples=max(5, in_the_gate * percent // 100), **more)
