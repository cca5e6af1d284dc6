"""What is loaded when a process starts, and what its environment may say."""

from tests.support.commands import run_limelight, run_python


def test_extras_are_not_imported_with_the_core():
    extras = {"jax", "matplotlib", "pandas", "polars", "ray"}
    code = f"import limelight, sys; print({extras} & set(sys.modules))"
    shown = run_python(code)
    assert shown.stdout.strip() == "set()"


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
