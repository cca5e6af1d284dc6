"""What users have built on: public names with their signatures, and the help of every verb."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from tests.support.commands import GROUPS, VERBS
from tests.support.snapshots import FOLDER, compare

import limelight as ll

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.support.commands import Run


def test_public_names_and_their_signatures() -> None:
    lines = [line for name in sorted(ll.__all__) for line in describe(name, getattr(ll, name))]
    compare("public_names.txt", "\n".join(lines) + "\n")


def describe(name: str, thing: Any) -> Iterator[str]:
    """Write a name with its signature; those of a class or of a module follow."""
    if inspect.ismodule(thing):
        for member in sorted(thing.__all__):
            yield from describe(f"{name}.{member}", getattr(thing, member))
    elif not callable(thing):
        yield f"{name}: {type(thing).__name__}"
    else:
        yield f"{name}{signature(thing)}"
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            for member, value in sorted(inspect.getmembers_static(thing)):
                if not member.startswith("_") and belongs_to_limelight(thing, member):
                    yield f"    {member}{signature(value)}"


def signature(thing: Any) -> str:
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    try:
        return str(inspect.signature(thing)) if callable(thing) else f": {type(thing).__name__}"
    except ValueError:  # written in C
        return "(...)"


def belongs_to_limelight(kind: type, member: str) -> bool:
    """Tell whether a member is ours, and not one of ``tuple`` or of ``Mapping``."""
    owner = next(base for base in kind.__mro__ if member in vars(base))
    return owner.__module__.startswith("limelight")


@pytest.mark.parametrize("verb", [*VERBS, *GROUPS])
def test_the_help_of_a_verb(limelight: Run, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ended = limelight(*verb.split(), "--help")
    compare(f"help/{file_of(verb)}", ended.out)


def test_no_help_of_a_verb_that_is_gone() -> None:
    known = {file_of(verb) for verb in (*VERBS, *GROUPS)}
    assert {file.name for file in (FOLDER / "help").iterdir()} == known


def file_of(verb: str) -> str:
    return "-".join(["limelight", *verb.split()]) + ".txt"
