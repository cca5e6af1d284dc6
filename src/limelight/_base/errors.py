"""What limelight raises: one root, four children, each message with a way out.

LimelightError
├── DataError         the input: files, columns, ids, matrices
├── ConfigError       the settings: a hyper-parameter or a flag
├── SolveError        the arithmetic: a fit that diverged, a row that cannot be solved
└── MemoryLimitError  the machine: a run that would need more memory than there is

What it warns of is a LimelightWarning: the work is done, but not quite as asked.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from limelight._base.printable import printable_lines


class LimelightError(Exception):
    """The root of every error that limelight raises on purpose.

    Parameters
    ----------
    message
        What happened, ending with the offending value.
    hint
        What to do about it.

    Examples
    --------
    >>> print(DataError("column not found: 'movie'", hint="pass item='movieId'"))
    column not found: 'movie'
    <BLANKLINE>
    hint: pass item='movieId'
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the hint as a keyword, because Python alone would pass it by position."""
        return partial(type(self), hint=self.hint), (self.message,), self.__dict__

    def __str__(self) -> str:
        """Show the message and, below it, the hint."""
        # A message may quote what a stranger wrote; `message` keeps it as it is.
        text = f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message
        return printable_lines(text)


class DataError(LimelightError):
    """The input cannot be used as it is."""


class ConfigError(LimelightError):
    """A setting is out of range, unknown, or at odds with another."""


class SolveError(LimelightError):
    """The numbers went wrong, so no result is returned."""


class MemoryLimitError(LimelightError):
    """There is not enough memory, so the work was not begun."""


class LimelightWarning(UserWarning):
    """Something is not as the caller may think, though there is a result.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", LimelightWarning)
    """
