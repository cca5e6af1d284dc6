"""Docstrings as the site shows them: with links, and a model with the settings of its config."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TYPE_CHECKING, Any

import griffe

import limelight

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLE = re.compile(r":(?:attr|class|func|meth|mod):`~?([\w.]+)`")
PARAMETERS = re.compile(r"(?<=^Parameters\n----------\n).*?(?=^\w+\n---|\Z)", re.M | re.S)
GROUPED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*\n?)+)", re.MULTILINE)
SETTINGS = re.compile(r"Parameters are the fields of :class:`~([\w.]+)`.*?\.\n", re.DOTALL)


class Docstrings(griffe.Extension):
    """Rewrite the docstrings of a package once all of it is known."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through every object."""
        for one in _objects(pkg):
            if one.docstring is not None:
                text = SETTINGS.sub(lambda found: _settings(pkg, found[1]), one.docstring.value)
                text = PARAMETERS.sub(lambda section: GROUPED.sub(_apart, section[0]), text)
                one.docstring.value = ROLE.sub(lambda role, one=one: _link(one, role[1]), text)


def _objects(parent: griffe.Object) -> Iterator[griffe.Object]:
    yield parent
    for child in parent.members.values():
        if not child.is_alias:
            yield from _objects(child)


def _settings(package: griffe.Module, path: str) -> str:
    """Write the fields of a config as the parameters of what it configures."""
    config = package[path.removeprefix(f"{package.name}.")]
    lines = ["Parameters", "----------"]
    for name, field in config.all_members.items():
        if field.is_attribute and field.value is not None and field.docstring is not None:
            lines.append(f"{name} : {field.annotation}, default: {field.value}")
            lines.append(indent(field.docstring.value, "    "))
    return "\n".join(lines) + "\n"


def _apart(grouped: re.Match[str]) -> str:
    """Give parameters that are described together an entry each: their types differ."""
    text = grouped[2].rstrip("\n")
    return "".join(f"{name}\n{text}\n" for name in grouped[1].split(", "))


def _link(here: griffe.Object, name: str) -> str:
    """Link a name where the site has it; elsewhere it stays plain code."""
    shown = name.rpartition(".")[2]
    return f'<autoref identifier="{_path(here, name)}" optional>`{shown}`</autoref>'


def _path(here: griffe.Object, name: str) -> str:
    package, _, last = name.rpartition(".")
    if package == "limelight" and last in limelight.__all__:
        # Some functions have the name of a folder; only Python itself knows where they are.
        return f"{getattr(limelight, last).__module__}.{last}"
    if package.startswith("limelight"):
        return name
    try:
        return here.resolve(name)
    except griffe.NameResolutionError:
        return name
