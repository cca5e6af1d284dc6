import os
import subprocess
import sys

import limelight as ll


def test_every_public_name_exists_once():
    assert len(set(ll.__all__)) == len(ll.__all__)
    assert all(hasattr(ll, name) for name in ll.__all__)


def test_architecture_names_are_there():
    promised = (
        "read split_users marketplace load IALS ExADMM evaluate audit ndcg recall gini exposure"
    )
    assert set(promised.split()) | {"lorenz", "coverage", "entropy", "plot"} <= set(ll.__all__)


def test_figures_are_a_namespace():
    assert set(ll.plot.__all__) == {
        "Point", "convergence", "exposure", "front", "groups", "lorenz", "save",
    }  # fmt: skip
    assert all(callable(getattr(ll.plot, name)) for name in ll.plot.__all__)


def test_extras_are_not_imported_with_the_core():
    extras = {"jax", "matplotlib", "pandas", "polars", "ray"}
    code = f"import limelight, sys; print({extras} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_kernel_variant_by_environment():
    code = "from limelight._native import variant; print(variant())"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LIMELIGHT_KERNEL": "baseline"},
    )
    assert shown.stdout.strip() == "baseline"


def test_unknown_kernel_variant_by_environment():
    shown = subprocess.run(
        [sys.executable, "-m", "limelight", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LIMELIGHT_KERNEL": "mmx"},
    )
    assert "LIMELIGHT_KERNEL not available on this processor: 'mmx'" in shown.stderr
    assert "hint: choose one of: " in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.returncode == 2
