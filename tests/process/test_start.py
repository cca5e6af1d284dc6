"""What is loaded when a process starts, and what its environment may say."""

import json

import pytest
from tests.support.commands import run_limelight, run_python

EXTRAS = {"jax", "matplotlib", "pandas", "polars", "ray"}
HEAVY = EXTRAS | {"narwhals", "numpy", "pyarrow", "scipy", "scipy.sparse"}


def loaded_by(code):
    """Return which large libraries, and which of our modules, some code loads."""
    shown = run_python(f"{code}\nimport json, sys; print(json.dumps(list(sys.modules)))")
    assert not shown.stderr
    modules = set(json.loads(shown.stdout.splitlines()[-1]))
    return HEAVY & modules, {name for name in modules if name.startswith("limelight.")}


def test_nothing_is_loaded_before_it_is_used():
    assert loaded_by("import limelight") == (set(), set())
    assert loaded_by("import limelight; dir(limelight); limelight.__all__") == (set(), set())


def test_a_name_loads_what_it_needs():
    assert loaded_by("import limelight; limelight.DataError")[1] == {
        "limelight._base", "limelight._base.errors", "limelight._base.printable",
    }  # fmt: skip
    heavy, ours = loaded_by("import limelight; limelight.ExADMM")
    assert not heavy & {*EXTRAS, "scipy.sparse"}
    assert "limelight.control" not in ours


def test_the_list_of_commands_loads_no_verb():
    code = "from limelight.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    heavy, ours = loaded_by(code)
    assert not heavy
    assert {name for name in ours if name.startswith("limelight.cli.")} == {"limelight.cli.output"}


@pytest.mark.parametrize(
    "before",
    [
        "import limelight.rerank.welfare",
        "import limelight.audit.lists",
        "import limelight.audit",
        "from limelight import audit",
        "from limelight.rerank import rerank",
        "from limelight import *",
    ],
)
def test_names_of_functions_stay_functions(before):
    code = """
import inspect, pickle
import limelight as ll
for name in ("audit", "evaluate", "exposure", "frontier", "load", "read", "recall", "rerank"):
    function = getattr(ll, name)
    assert inspect.isfunction(function), name
    assert pickle.loads(pickle.dumps(function)) is function, name
"""
    shown = run_python(f"{before}{code}{before}{code}")
    assert shown.returncode == 0, shown.stderr


def test_packages_are_found_from_the_top():
    code = "import limelight as ll; help(ll.ExADMM); ll.plot.lorenz; ll.data.read_candidates"
    shown = run_python(code)
    assert shown.returncode == 0, shown.stderr
    assert "class ExADMM" in shown.stdout


def test_kernel_variant_by_environment():
    code = "from limelight._native import variant; print(variant())"
    shown = run_python(code, LIMELIGHT_KERNEL="baseline")
    assert shown.stdout.strip() == "baseline"


def test_unknown_kernel_variant_by_environment():
    shown = run_limelight("doctor", LIMELIGHT_KERNEL="mmx")
    assert "LIMELIGHT_KERNEL not available on this processor: 'mmx'" in shown.stderr
    assert "hint: choose one of: " in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.returncode == 2
