"""What stands around the code: settings of tools and services, and the files that pages name."""

import os
import re
import tomllib

import pytest
import yaml
from tests.support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = sorted({*ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")} - {*ROOT.glob(".github/*/config.yml")})
OTHERS = [ROOT / name for name in ("CITATION.cff", ".pre-commit-config.yaml", "mkdocs.yml")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`(?:src/limelight/)?((?:[\w.-]+/)+(?:[\w-]+\.[\w.]+)?)(?:: [^`]+)?`")
TOP = {".ci", ".github", "benchmarks", "docs", "examples", "fuzz", "native", "page", "tests"}
MADE = {"api/commands.md", "changelog.md", "contributing.md", "running-benchmarks.md"}
"""Pages that hooks of the site make."""


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in load(workflow)["jobs"].values() for step in job["steps"]]


def ids(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("path", paths := [*WORKFLOWS, *FORMS, *OTHERS], ids=ids(paths))
def test_it_can_be_read(path):
    assert isinstance(load(path), dict)


def commands():
    for workflow in WORKFLOWS:
        yield from (step["run"] for step in steps(workflow) if "run" in step)
    for repository in load(ROOT / ".pre-commit-config.yaml")["repos"]:
        yield from (hook["entry"] for hook in repository["hooks"])


@pytest.mark.parametrize("command", sorted({*commands()}))
def test_what_services_and_hooks_run_is_there(command):
    program, *arguments = command.split()
    if program == "make":
        assert set(arguments) <= TARGETS
    elif program.startswith(".venv/bin/"):
        tool = program.removeprefix(".venv/bin/")
        assert any(needed.startswith(tool) for needed in PROJECT["optional-dependencies"]["dev"])
    else:
        assert os.access(ROOT / program, os.X_OK)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=ids(WORKFLOWS))
def test_a_workflow_may_only_read_and_pins_what_it_uses(workflow):
    assert load(workflow)["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in used)


def test_the_oldest_python_is_checked_and_passes_the_gate():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    jobs = load(ROOT / ".github/workflows/check.yml")["jobs"]
    assert jobs["check"]["strategy"]["matrix"]["python"][0] == oldest
    versions = [s.get("with", {}) for s in steps(ROOT / ".github/workflows/gate.yml")]
    assert {"python-version": oldest} in versions


@pytest.mark.parametrize("form", FORMS, ids=ids(FORMS))
def test_a_form_asks_for_something(form):
    found = load(form)
    assert found["name"]
    assert found["description"]
    fields = [part for part in found["body"] if part["type"] != "markdown"]
    assert any(part.get("validations", {}).get("required") for part in fields)
    assert len({part["id"] for part in fields}) == len(fields)


def test_the_citation_is_of_this_version_and_of_the_paper():
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    [paper] = citation["references"]
    assert paper["doi"] == "10.1145/3589334.3645390"
    assert [author["family-names"] for author in paper["authors"]] == ["Togashi", "Abe", "Saito"]


def test_every_page_is_in_the_navigation_once():
    written = [str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")]
    assert sorted(pages(load(ROOT / "mkdocs.yml")["nav"])) == sorted([*written, *MADE])


def pages(part):
    """List the pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    below = part.values() if isinstance(part, dict) else part
    return [page for one in below for page in pages(one)]


def is_ours(path):
    """Tell whether a path is meant to be one of the repository, not one of a user's run."""
    first, source = path.split("/")[0], ROOT / "src/limelight"
    is_code = path.endswith((".py", ".pyi", ".hpp", ".cpp"))
    return is_code or first in TOP or (source / first).is_dir()


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_the_files_that_a_page_names_exist(page):
    named = PATH.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    places = (ROOT, ROOT / "src", ROOT / "src/limelight")
    missing = {
        path
        for path in named
        if is_ours(path) and not any((place / path).exists() for place in places)
    }
    assert not missing
