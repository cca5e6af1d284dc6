"""Changes one line after the other of a copy of the sources, and runs the tests that must notice.

    python -m tests.mutants.mutants solvers --every 2

A change that no test notices survives, and fails the run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.mutations import MUTATIONS, Mutation
from tests.support.places import ROOT

SOURCE = ROOT / "src" / "limelight"
# An editable installation finds its modules before PYTHONPATH is looked at.
_SITE = """import sys
sys.meta_path[:] = [one for one in sys.meta_path if "Redirecting" not in type(one).__name__]
"""


def copy_of_sources(place: Path) -> Path:
    """Copy the package with its compiled part; return what to put into PYTHONPATH."""
    from limelight._native import kernels

    package = place / "limelight"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(kernels.__file__, package / "_native")
    (place / "sitecustomize.py").write_text(_SITE)
    return place


def mutated(text: str, change: Mutation) -> str:
    """Return a source with the change, which must fit in one place alone."""
    if text.count(change.before) != 1:
        message = f"{change.file} has {change.before!r} {text.count(change.before)} times"
        raise SystemExit(message)
    return text.replace(change.before, change.after)


def run_tests(place: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run test files against the copy, up to the first failure."""
    flags = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *flags, "--hypothesis-profile", "dev", *tests]
    env = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def is_caught(place: Path, change: Mutation) -> bool:
    """Tell whether a test fails with the change; only a failed test counts."""
    path = place / "limelight" / change.file
    sound = path.read_text(encoding="utf-8")
    tests = [str((ROOT / "tests" / "unit" / name).resolve()) for name in change.tests.split()]
    try:
        path.write_text(mutated(sound, change), encoding="utf-8")
        ended = run_tests(place, tests)
    finally:
        path.write_text(sound, encoding="utf-8")
    if ended.returncode not in (0, 1):
        raise SystemExit(f"the tests did not run:\n{ended.stdout[-3000:]}{ended.stderr[-1000:]}")
    return ended.returncode == 1


def main() -> None:
    """Try the changes that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(MUTATIONS), help=", ".join(MUTATIONS))
    parser.add_argument("--every", type=int, default=1, help="try every n-th change")
    given = parser.parse_args()
    survivors, total = [], 0
    with tempfile.TemporaryDirectory() as folder:
        place = copy_of_sources(Path(folder))
        for kind in given.kinds:
            chosen = MUTATIONS[kind][:: given.every]
            left = [one for one in chosen if not is_caught(place, one)]
            print(f"{kind}: {len(chosen) - len(left)} of {len(chosen)} caught", flush=True)
            for one in left:
                print(f"  survived: {one.file}: {one.before!r} -> {one.after!r}", flush=True)
            survivors += left
            total += len(chosen)
    print(f"{total - len(survivors)} of {total} caught")
    raise SystemExit(bool(survivors))


if __name__ == "__main__":
    main()
