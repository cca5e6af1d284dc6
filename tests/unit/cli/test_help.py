"""Every command explains itself, and the explanations are true."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import chain
from typing import TYPE_CHECKING

import pytest
import typer
from tests.support.commands import VERBS

from limelight import cli
from limelight.models.folder import MODELS

if TYPE_CHECKING:
    from tests.support.commands import Run


@pytest.mark.parametrize("command", VERBS)
def test_help_teaches(limelight: Run, command: str) -> None:
    ended = limelight(*command.split(), "--help")
    assert ended.code == 0
    assert ended.err == ""
    assert "In: " in ended.out
    assert "Out" in ended.out
    assert f"limelight {command}" in ended.out.partition("Examples:")[2]
    assert ended.out == limelight(*command.split(), "-h").out


@pytest.mark.parametrize("command", VERBS)
def test_examples_use_flags_that_exist(limelight: Run, command: str) -> None:
    text = limelight(*command.split(), "--help").out
    examples = text.partition("Examples:")[2].partition("\n\n")[0]
    options = text.partition("Examples:")[2].partition("\n\n")[2]
    for flag in re.findall(r" (--?[a-z][a-z-]*)", examples):
        assert re.search(rf"^  (-., )?{flag}\b", options, re.MULTILINE), flag


def test_the_list_of_commands(limelight: Run) -> None:
    text = limelight("--help").out
    listed = re.findall(r"^  ([a-z]+)  +[A-Z].*\.$", text.partition("Commands:")[2], re.MULTILINE)
    first = "demo data tune fit recommend evaluate audit rerank frontier serve replay export"
    assert " ".join(listed) == f"{first} plot report card reproduce simulate bench doctor"
    assert "..." not in text.partition("Commands:")[2], "a summary was cut short"


def test_the_list_of_commands_says_what_each_command_says() -> None:
    commands = typer.main.get_group(cli.app).commands
    lines = {name: command.get_short_help_str(100) for name, command in commands.items()}
    assert lines == cli.VERBS


def test_without_arguments(limelight: Run) -> None:
    assert "Usage: limelight" in "".join(limelight()[1:])
    assert "Usage: limelight data" in "".join(limelight("data")[1:])


def test_every_setting_has_a_flag_and_shows_its_default(limelight: Run) -> None:
    words = " ".join(limelight("fit", "--help").out.split())
    renamed = {"random_state": "--seed", "num_threads": "--threads"}
    for field in chain.from_iterable(fields(config) for _, config in MODELS.values()):
        flag = renamed.get(field.name, "--" + field.name.replace("_", "-"))
        shown = rf"{flag} [A-Za-z0-9|+]+ [^\[]*\[default: [^\]]*{field.default}"
        assert re.search(shown, words), flag
    assert "[default: 50 for ials, 50 for exadmm, 200 for multvae," in words
    assert "[default: 0.0; only for exadmm]" in words


def test_defaults_of_other_commands(limelight: Run) -> None:
    def words(*command: str) -> str:
        return " ".join(limelight(*command, "--help").out.split())

    assert "[default: 98765]" in words("data", "split")
    assert "[default: 5, 20]" in words("evaluate")
    assert "[default: 10]" in words("audit")


def test_version(limelight: Run) -> None:
    ended = limelight("--version")
    assert ended.code == 0
    assert re.fullmatch(r"limelight \d\S*\n", ended.out)
