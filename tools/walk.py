"""Count the files of limelight that a command visits.

python tools/walk.py                 fit --gini on a small made-up market
python tools/walk.py --list          the same, and name the files in the order of the first visit
python tools/walk.py -- COMMAND ...  another command, for example fit ratings.parquet -o model/

A file is visited when a function, method, lambda or comprehension that is written in it runs. What
runs while a module is being imported does not count, because the data have no part in it.

The package is the one that this Python imports. To count another checkout, run this file with the
Python of that checkout's environment.
"""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import chdir, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import limelight

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

MARKET = """
import limelight as ll, pyarrow as pa, pyarrow.parquet as pq
users, items = ll.marketplace(600, 300, 12_000).interactions.matrix.nonzero()
pq.write_table(pa.table({"user_id": users, "item_id": items}), "ratings.parquet")
"""
COMMAND = ["fit", "ratings.parquet", "--gini", "0.45", "-o", "model"]


class Imports(threading.local):
    """How many modules a thread is importing, one within the other."""

    depth = 0


class Walk:
    """Files of a package, in the order in which a function of theirs first ran."""

    def __init__(self, package: Path) -> None:
        self.files: dict[str, None] = {}
        self._package = f"{package}/"
        self._imports = Imports()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; `sys.setprofile` calls this."""
        code = frame.f_code
        if code.co_name == "<module>":
            self._imports.depth += {"call": 1, "return": -1}.get(event, 0)
        elif (
            event == "call"
            and not self._imports.depth
            and self._has_function(code)
            and not self._is_import(frame)
        ):
            self.files[code.co_filename.removeprefix(self._package)] = None

    def _has_function(self, code: CodeType) -> bool:
        """Tell functions of the package from others, and from bodies of classes.

        Only the variables of functions have fixed slots, which the flag says.
        """
        in_package = code.co_filename.startswith(self._package)
        return in_package and bool(code.co_flags & inspect.CO_OPTIMIZED)

    def _is_import(self, frame: FrameType) -> bool:
        """Tell calls of the import system, which sets attributes of packages."""
        caller = frame.f_back
        return caller is not None and caller.f_code.co_filename.startswith("<frozen importlib")

    def rooms(self) -> Counter[str]:
        """Count the files of each folder of the package; those of none are under a dot."""
        return Counter(name.partition("/")[0] if "/" in name else "." for name in self.files)


@contextmanager
def walking(walk: Walk) -> Iterator[None]:
    """Follow the calls of this thread, and of all that are started meanwhile."""
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run(arguments: list[str], walk: Walk) -> int | str | None:
    """Run a command as the installed script would, and return its exit code."""
    [script] = entry_points(group="console_scripts", name="limelight")
    command = script.load()
    sys.argv = ["limelight", *arguments]
    try:
        with walking(walk):
            command()
    except SystemExit as end:
        return end.code
    return 0


def run_on_market(walk: Walk) -> int | str | None:
    """Run the usual command on a made-up table, which a process of its own leaves behind."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        subprocess.run([sys.executable, "-c", MARKET], check=True)
        return run(COMMAND, walk)


def main() -> None:
    """Run the command and print what it visited."""
    usage = argparse.ArgumentParser(usage="walk.py [--list] [-- COMMAND ...]")
    usage.add_argument("--list", action="store_true", help="name the files in order")
    usage.add_argument("command", nargs="*")
    wanted = usage.parse_args()
    package = Path(limelight.__file__).parent
    walk = Walk(package)
    code = run(wanted.command, walk) if wanted.command else run_on_market(walk)
    if wanted.list:
        print(*walk.files, "", sep="\n")
    for room, files in sorted(walk.rooms().items()):
        print(f"{files:4} {room}")
    print(f"{len(walk.files):4} of {sum(1 for _ in package.rglob('*.py'))} files in {package}")
    sys.exit(code)


if __name__ == "__main__":
    main()
