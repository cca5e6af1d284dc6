"""What every fuzz target shares: how it runs, and what counts as an answer.

A target is a function of some bytes. It may return, or raise one of the errors that a user is told
about. Anything else that leaves it is a finding, and so is a crash, a hang or a flood of memory,
for which libFuzzer watches.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import atheris

if TYPE_CHECKING:
    from collections.abc import Callable

    Target = Callable[[bytes], None]
    Mutator = Callable[[bytes, int, int], bytes]
    Answer = type[Exception] | tuple[type[Exception], ...]


def _started() -> Any:
    """Begin to watch which lines run, where that is asked for; before limelight is imported."""
    if "FUZZ_COVERAGE" not in os.environ:
        return None
    from coverage import Coverage

    found = Coverage(data_file=None, source_pkgs=["limelight"], messages=False)
    found.start()
    return found


COVERAGE = _started()


def _measure(one: Target, folders: list[Path]) -> None:
    """Run every input once; write how many lines of each file there are, and how many ran."""
    for folder in folders:
        for file in sorted(path for path in folder.iterdir() if path.is_file()):
            one(file.read_bytes())
    COVERAGE.stop()
    lines = {}
    for file in COVERAGE.get_data().measured_files():
        _, statements, _, missing, _ = COVERAGE.analysis2(file)
        lines[file] = sorted(set(statements) - set(missing)), len(statements)
    Path(os.environ["FUZZ_COVERAGE"]).write_text(json.dumps(lines), encoding="utf-8")


def run(target: Target, answer: Answer, mutator: Mutator | None = None) -> None:
    """Let libFuzzer call a target until it finds something or its time is up.

    Parameters
    ----------
    target
        What to call.
    answer
        The errors that are a fair answer.
    mutator
        Makes an input of another one, given the largest size and a seed; libFuzzer's own if none.
    """

    def one(data: bytes) -> None:
        try:
            target(data)
        except answer:
            return

    if COVERAGE is not None:
        _measure(one, [Path(folder) for folder in sys.argv[1:] if Path(folder).is_dir()])
        return
    atheris.Setup(sys.argv, one, **({"custom_mutator": mutator} if mutator else {}))
    atheris.Fuzz()
