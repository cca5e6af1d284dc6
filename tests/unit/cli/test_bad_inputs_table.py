"""Every bad input gets one sentence and a way out, and docs/guide/errors.md says which.

``LIMELIGHT_WRITE_ERRORS=1 pytest tests/unit/cli/test_bad_inputs_table.py`` writes the page anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.support.commands import is_note
from tests.support.places import ROOT
from tests.unit.cli.bad_inputs import CASES, THEIRS

import limelight as ll
from limelight.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.cli.bad_inputs import Case

PAGE = ROOT / "docs" / "guide" / "errors.md"
FAILED, WRONG_USE = 1, 2
INTRODUCTION = """\
# What limelight says to bad inputs

Every input below was tried when this page was written, and is tried again by every run of the tests
(`tests/unit/cli/bad_inputs.py`). Each gets one sentence on standard error and, after `hint:`, a way
out. There is no traceback, nothing is left behind, and what was there before is untouched. The exit
code is {failed} if a command failed, {wrong_use} if it was used wrongly; in Python the same
sentence is a `DataError`, a `ConfigError` or a `SolveError`. Where a sentence ends in {theirs}, the
rest is in the words of the library that reads such files, or depends on the machine.

What this means for files from strangers: none of them is ever run as code; sizes, shapes and
numbers of rows that a file declares are checked before memory is taken; numbers that are not finite
are refused; and a name that stands in a file never leads out of its folder. A link in place of a
file or a folder is followed, but nothing is deleted through one.
"""


class Refusal(NamedTuple):
    code: int
    message: str
    hint: str


@pytest.fixture(scope="module")
def stage(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every case begins with: the files of all commands, and a run."""
    folder = tmp_path_factory.mktemp("stage")
    shutil.copytree(files, folder, dirs_exist_ok=True)
    trace = "frontier split --factors 8 --epochs 3 --points 3 --method exadmm -o run"
    with contextlib.chdir(folder):
        assert run(trace)[0] == 0
    return folder


@pytest.fixture(scope="module")
def refusals(stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Refusal]:
    """Meet a bad input once, however many tests ask about it."""
    known: dict[Case, Refusal] = {}

    def meet(case: Case) -> Refusal:
        if case not in known:
            folder = tmp_path_factory.mktemp("case")
            shutil.copytree(stage, folder, dirs_exist_ok=True)
            with contextlib.chdir(folder):
                case.make()
                before = state_of(folder)
                known[case] = refusal_of(case, folder)
                assert state_of(folder) == before, "something was left behind, or changed"
            shutil.rmtree(folder)
        return known[case]

    return meet


def run(command: str) -> tuple[int, str, str]:
    """Run a command in this process."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main(command.split())
    out.flush()
    return int(end.value.code or 0), out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def refusal_of(case: Case, folder: Path) -> Refusal:
    if case.call is not None:
        with pytest.raises(ll.LimelightError) as error:
            case.call()
        return Refusal(0, error.value.message, error.value.hint or "")
    code, out, err = run(case.command)
    assert code in {FAILED, WRONG_USE}, err
    assert out == ""
    # Whole, so that neither a traceback nor a warning can hide before or behind the sentence.
    # Only what was said before the work may stand there, too.
    lines = err.replace(str(folder), "/folder").splitlines()
    message, blank, hint = (line for line in lines if not is_note(line))
    assert blank == ""
    return Refusal(code, message.removeprefix("error: "), hint.removeprefix("hint: "))


def state_of(folder: Path) -> dict[str, str]:
    return dict(sorted(_contents(folder)))


def _contents(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        content = hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else ""
        yield str(path.relative_to(folder)), content


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.what}")
def test_a_bad_input_gets_one_sentence_and_a_way_out(
    refusals: Callable[[Case], Refusal], case: Case
) -> None:
    found = refusals(case)
    assert found.message.startswith(case.cut)
    assert found.hint
    for said in (found.message, found.hint):
        assert len(said) < 500
        assert said.isprintable()


def test_the_page_of_errors_is_true(refusals: Callable[[Case], Refusal]) -> None:
    page = page_of(refusals)
    if os.environ.get("LIMELIGHT_WRITE_ERRORS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def test_there_are_a_hundred_cases_and_each_has_a_name_of_its_own() -> None:
    names = {(case.group, case.what) for case in CASES}
    assert len(names) == len(CASES) >= 100


def page_of(refusals: Callable[[Case], Refusal]) -> str:
    parts = [INTRODUCTION.format(failed=FAILED, wrong_use=WRONG_USE, theirs=THEIRS)]
    for group, cases in groupby(CASES, key=lambda case: case.group):
        in_python = group == "In Python"
        parts.append(f"## {group if in_python else f'`{group}`'}\n")
        parts.append(
            "| input | call | sentence | hint |"
            if in_python
            else "| input | command | sentence | hint | exit |"
        )
        parts.append("|---|---|---|---|" if in_python else "|---|---|---|---|---|")
        parts += [_row(case, refusals(case)) for case in cases]
        parts.append("")
    return "\n".join(parts)


def _row(case: Case, found: Refusal) -> str:
    message = case.cut + THEIRS if case.cut else found.message
    cells = [case.what, f"`{case.command}`", message, found.hint]
    if case.call is None:
        cells.append(str(found.code))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
