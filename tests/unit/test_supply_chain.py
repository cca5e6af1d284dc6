"""What limelight depends on and carries: pinned, permissive, told."""

from __future__ import annotations

import doctest
import importlib.util
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def script(name: str) -> ModuleType:
    """Load a script of the gate."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["licences", "audit_deps", "contents"])
def test_the_examples_of_the_scripts(name: str) -> None:
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(script(name), optionflags=flags).failed == 0


def test_all_that_is_needed_at_run_time_is_permissive() -> None:
    assert script("licences").refused() == []


def test_the_page_of_licences_names_all_that_is_needed_and_carried() -> None:
    licences = script("licences")
    page = licences.PAGE.read_text(encoding="utf-8")
    for name in (*licences.needs(), *(name for name, *_ in licences.CARRIED)):
        assert f"| {name} |" in page, f"run `make licences`: {name} is missing"
    for _, _, terms in licences.CARRIED:
        assert (ROOT / terms).stat().st_size > 0


def test_the_charts_library_is_the_one_that_is_told() -> None:
    bundle = (ROOT / "src/limelight/report/template/charts.min.js").read_text(encoding="utf-8")
    terms = (ROOT / "src/limelight/report/template/charts.LICENSE.txt").read_text(encoding="utf-8")
    for name in ("echarts", "zrender", "tslib"):
        assert re.search(rf"^{name} \d+\.\d+\.\d+", bundle, re.MULTILINE)
        assert f"==== {name}/LICENSE" in terms


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["project"]["optional-dependencies"].values()
    asked = [*project["project"]["dependencies"], *(one for group in groups for one in group)]
    for file, wanted in (("dev", asked), ("build", project["build-system"]["requires"])):
        versions = pins(ROOT / "requirements" / f"{file}.txt")
        for requirement in map(Requirement, wanted):
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


def pins(file: Path) -> dict[str, str]:
    pairs = [line.split("==") for line in file.read_text(encoding="utf-8").splitlines()]
    return {canonicalize_name(name): version for name, version in pairs}
