"""Run every fuzz target for some seconds, and say how often each was executed, now and in all.

A finding ends its target, leaves the input that caused it in build/fuzz/, and fails the run. Counts
add up over runs in build/fuzz/counts.json, so that hours can be spent in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "fuzz"
COUNTS = WORK / "counts.json"
MEMORY = Path("/dev/shm")
NATIVE = "native_kernels"
TARGETS = (
    "read_interactions",
    "read_candidates",
    "audit_lists",
    "load_models",
    "load_runs",
    "load_checkpoints",
    "serve_requests",
    "serve_journal",
    NATIVE,
)
LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=4096")


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--sanitized", type=Path, help="a build for the target of the kernels")
    parser.add_argument(
        "--coverage", action="store_true", help="only say which lines the inputs so far run"
    )
    options = parser.parse_args()
    if options.coverage:
        return report_coverage(options.targets)
    failed, now = [], 0
    print(f"{'':20} {'this run':>14} {'in all':>14}")
    for target in options.targets:
        code, log = fuzz(target, options.seconds, options.sanitized)
        found = executions(log)
        now += found
        print(f"{target:20} {found:>14,} {count(target, found):>14,}", flush=True)
        if code or not found:
            failed.append(target)
            story = [line for line in log.splitlines() if not line.startswith("#")]
            print(*story[-60:], sep="\n", file=sys.stderr)
    print(f"{'total':20} {now:>14,} {sum(counts().values()):>14,}")
    if failed:
        print(f"findings in: {', '.join(failed)}; the inputs are in {WORK}", file=sys.stderr)
    return bool(failed)


def executions(log: str) -> int:
    """Return how often a target ran: what it says at its end or, after a finding, said last."""
    ended = re.findall(r"number_of_executed_units: (\d+)", log)
    return int((ended or re.findall(r"^#(\d+)\s", log, re.MULTILINE) or ["0"])[-1])


def counts() -> dict[str, int]:
    """Read how often every target has run so far."""
    return json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.is_file() else {}


def count(target: str, found: int) -> int:
    """Add to the executions of a target, and return how many there are."""
    known = counts()
    known[target] = known.get(target, 0) + found
    COUNTS.parent.mkdir(parents=True, exist_ok=True)
    fresh = COUNTS.with_suffix(".tmp")
    fresh.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    fresh.replace(COUNTS)
    return known[target]


def fuzz(target: str, seconds: int, sanitized: Path | None) -> tuple[int, str]:
    """Run one target; return its exit code and what it wrote."""
    flags = [
        *LIMITS,
        f"-max_total_time={seconds}",
        "-print_final_stats=1",
        f"-artifact_prefix={WORK}/{target}-",
    ]
    environment = dict(os.environ)
    if target == NATIVE and sanitized is not None:
        environment |= preload(sanitized)
    return start(target, flags, environment)


def start(target: str, flags: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Start a target on its own inputs and those of the corpus."""
    found = WORK / target
    found.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / f"{target}.py"), *flags, str(found)]
    # Files that are written for each execution belong in memory, where the system has such a place.
    shared = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=shared) as folder:
        done = subprocess.run(
            [*command, str(HERE / "corpus" / target)],
            env=environment | {"TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode, done.stdout.decode(errors="replace")


def report_coverage(targets: list[str]) -> int:
    """Say how many lines of each room all inputs run, by target and together."""
    together: dict[str, set[int]] = {}
    lengths: dict[str, int] = {}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.json"
        for target in targets:
            file.unlink(missing_ok=True)
            code, log = start(target, [], {**os.environ, "FUZZ_COVERAGE": str(file)})
            if code or not file.is_file():
                failed += 1
                print(f"{target}:\n{log[-2000:]}", file=sys.stderr)
                continue
            for path, (ran, length) in json.loads(file.read_text(encoding="utf-8")).items():
                together.setdefault(path, set()).update(ran)
                lengths[path] = length
    rooms: dict[str, list[int]] = {}
    for path, ran in together.items():
        inside = Path(path.rpartition("/limelight/")[2]).parts
        room = rooms.setdefault(inside[0], [0, 0])
        room[0] += len(ran)
        room[1] += lengths[path]
    for name, (ran, length) in sorted(rooms.items()):
        print(f"{name:20} {ran:>6,} of {length:>6,} lines ({ran / max(length, 1):.0%})")
    return bool(failed)


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
