"""Every example of README and documentation runs: a page is one session in a folder of its own.

Python blocks of a page share their names; shell blocks run as they stand. A comment before a block
says what is special about it: ``<!-- not run: why -->``, or ``<!-- printed -->`` before what the
block above it prints each time.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.commands import environment
from tests.support.places import ROOT

import limelight as ll

PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
ELSEWHERE = {"docs/guide/adapters.md"}  # needs other libraries: test_adapters.py
BLOCK = re.compile(r"(?:^<!-- ([^\n]+) -->\n)?^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"\b(?:\w+\.(?:parquet|csv)|(?:candidates|run)/)")
DEMO = re.compile(r"^limelight demo -o run/$", re.MULTILINE)
SMALL = "limelight demo -o run/ --users 3000 --items 300 --interactions 60000"
"""What stands in for the demo on pages; `make demo` runs it as it is."""
SHOWN = {"text", "csv", "json", "toml", "yaml"}
RUN = {"python", "bash", "console"}


class Block(NamedTuple):
    """A piece of code of a page."""

    note: str
    language: str
    code: str


def blocks(page):
    return [Block(*found.groups(default="")) for found in BLOCK.finditer((ROOT / page).read_text())]


def is_run(block):
    return block.language in RUN and not block.note.startswith("not run: ")


def run(block, names):
    """Run a block and return what it prints."""
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, "page", "exec"), names)
        return printed.getvalue()
    return shell(commands(block.code) if block.language == "console" else block.code)


def commands(code):
    """Return what is typed after the prompts of a console, without what it prints."""
    return "\n".join(re.findall(r"^\$ ((?:.*\\\n)*.*)$", code, re.MULTILINE))


def shell(code):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", DEMO.sub(SMALL, code)],
        env=environment(PATH=path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout


def check_printed(shown, printed):
    """Compare with what the page shows; an ellipsis stands for anything."""
    alike = doctest.OutputChecker().check_output(
        shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert alike, f"the page shows\n{shown}\nbut this is printed\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page):
    unknown = [b for b in blocks(page) if b.language not in SHOWN | RUN]
    assert not unknown


@pytest.mark.parametrize("page", [p for p in PAGES if any(map(is_run, blocks(p)))])
def test_page(page, stand_in):
    if page in ELSEWHERE:
        pytest.skip("has a test of its own")
    code = "\n".join(block.code for block in blocks(page) if is_run(block))
    for name in {*FILE.findall(code)}:
        stand_in(name)
    names, printed = {"__name__": "page"}, ""
    for block in blocks(page):
        if is_run(block):
            printed = run(block, names)
        elif block.note == "printed":
            check_printed(block.code, printed)


def test_the_reference_has_every_public_name():
    text = "".join(page.read_text() for page in ROOT.glob("docs/api/*.md"))
    paths = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    named = {path.rpartition(".")[2] for path in paths} | {path.split(".")[1] for path in paths}
    assert set(ll.__all__) <= named
