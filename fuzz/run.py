"""Run every fuzz target for some seconds, and say how often each was executed.

A finding ends its target, leaves the input that caused it in build/fuzz/, and fails the run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "fuzz"
MEMORY = Path("/dev/shm")
NATIVE = "native_kernels"
TARGETS = (
    "read_interactions",
    "read_candidates",
    "audit_lists",
    "load_models",
    "load_runs",
    NATIVE,
)
LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=4096")


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--sanitized", type=Path, help="a build for the target of the kernels")
    options = parser.parse_args()
    counts = {}
    failed = []
    for target in options.targets:
        code, log = fuzz(target, options.seconds, options.sanitized)
        found = re.findall(r"number_of_executed_units: (\d+)", log)
        counts[target] = int(found[-1]) if found else 0
        print(f"{target:20} {counts[target]:>12,} executions", flush=True)
        if code or not found:
            failed.append(target)
            story = [line for line in log.splitlines() if not line.startswith("#")]
            print(*story[-60:], sep="\n", file=sys.stderr)
    print(f"{'total':20} {sum(counts.values()):>12,} executions")
    if failed:
        print(f"findings in: {', '.join(failed)}; the inputs are in {WORK}", file=sys.stderr)
    return bool(failed)


def fuzz(target: str, seconds: int, sanitized: Path | None) -> tuple[int, str]:
    """Run one target; return its exit code and what it wrote."""
    found = WORK / target
    found.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        str(HERE / f"{target}.py"),
        *LIMITS,
        f"-max_total_time={seconds}",
        "-print_final_stats=1",
        f"-artifact_prefix={WORK}/{target}-",
        str(found),
        str(HERE / "corpus" / target),
    ]
    environment = dict(os.environ)
    if target == NATIVE and sanitized is not None:
        environment |= preload(sanitized)
    # Files that are written for each execution belong in memory, where the system has such a place.
    shared = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=shared) as folder:
        environment["TMPDIR"] = folder
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    return done.returncode, done.stdout.decode(errors="replace")


def preload(sanitized: Path) -> dict[str, str]:
    """Name the environment in which Python loads a build with sanitizers."""
    compiler = os.environ.get("CXX", "c++")
    libraries = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    # Python never frees all it has; what a kernel cannot get, it must be able to refuse.
    options = "detect_leaks=0:allocator_may_return_null=1:handle_segv=0"
    return {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": options,
        "PYTHONPATH": str(sanitized.resolve()),
    }


if __name__ == "__main__":
    sys.exit(main())
