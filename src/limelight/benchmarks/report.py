"""The page that a run writes: the machine, the ratios, every number, and how it was measured."""

from __future__ import annotations

import inspect
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from limelight._atomic import atomic_file
from limelight._base.documents import Table
from limelight._errors import ConfigError, DataError
from limelight.benchmarks import peers
from limelight.benchmarks.jobs import JOBS
from limelight.benchmarks.large import describe
from limelight.benchmarks.plots import PLOTS, draw_all
from limelight.benchmarks.records import Results
from limelight.benchmarks.tables import details, glance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from limelight.benchmarks.jobs import Job

PAGE, RECORD, FIGURES = "benchmarks.md", "benchmarks.json", "figures"

_INTRODUCTION = """\
# Benchmarks

Written by `limelight bench`. [How to run it again](../benchmarks/README.md).
"""
_HOW_RATIOS_READ = """\
A ratio is the cost of the first candidate by that of the other: 0.25 means a quarter of its time.
"""
_METHOD = """\
- **Same work.** All libraries minimise iALS's loss with the same weights, from the same first
  factors, on the same training users, for the same number of epochs. Our objective is evaluated on
  everybody's factors: where the method is the same, so is the number. nDCG@20 is measured on users
  who were held out; all are folded in by the same code.
- **Same run.** Candidates take turns in one process, in an order that turns round after every
  round. One round warms up, the fastest of the others counts. Peers are as pip installs them.
- **One thread** means one core: the process is pinned to it, BLAS has one thread, and processor
  time is measured. With **more threads** it is the time on the wall.
- **Epochs only.** Reading, transposing and first factors are left out for everybody.
- **The peak** is NumPy's single-precision product of 2,048 x 2,048 matrices, measured between the
  turns of the same race.
- **Operations** are counted as the method needs them. A row of n entries takes
  n (d² + 2d) + d³/3 + 2d², or, by way of an n x n system where n < d, n² d + 4nd + n³/3 + 2n². A
  half-step takes 2d² more for every row of both sides (rotations) and d² for every row of the
  other side (its Gramian). A user's gradient takes 4nd + 2d².
"""


def page(results: Results, figures: Sequence[str] = ()) -> str:
    """Write the whole page.

    Parameters
    ----------
    results
        What was measured.
    figures
        Which of the figures were drawn.

    Examples
    --------
    >>> page(Results({"processor": "abacus"})).splitlines()[0]
    '# Benchmarks'
    """
    by_job = {job: [race for race in results.races if race.job == job.name] for job in JOBS}
    measured = {job: races for job, races in by_job.items() if races}
    parts = [_INTRODUCTION, _machine(results)]
    several = {job: races for job, races in measured.items() if job.scope == "each size"}
    if several:
        parts.append(f"## At a glance\n\n{_HOW_RATIOS_READ}")
        parts += [f"**{job.title}**\n\n{glance(races)}\n" for job, races in several.items()]
    parts += [f"![{PLOTS[name].title}]({FIGURES}/{name})\n" for name in figures]
    parts += [_section(job, details(races)) for job, races in measured.items()]
    if results.large:
        parts.append(f"## The large run\n\n{describe(results.large)}\n")
    parts.append(f"## How it was measured\n\n{_METHOD}{_peers()}")
    return "\n".join(parts)


def _machine(results: Results) -> str:
    rows = [(name.replace("_", " "), _plain(value)) for name, value in results.machine.items()]
    machine = Table(["", ""], rows, left=2).markdown()
    sizes = [
        (name, *(_plain(value) for value in facts.values())) for name, facts in results.data.items()
    ]
    heads = ["data", "source", "users", "items", "interactions"]
    data = Table(heads, sizes, left=2).markdown()
    return f"## The machine and the data\n\n{machine}\n\n{data}\n"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(entry) for entry in value)
    if isinstance(value, int):
        return f"{value:,}"
    return "not installed" if value is None else str(value)


def _section(job: Job, table: str) -> str:
    return f"## {job.title}\n\n{job.about}\n\n{table}\n"


def _peers() -> str:
    """Say how each peer is timed, in the words of its own docstring."""
    texts = [inspect.getdoc(peer) or "" for peer in (peers.Irspack, peers.Implicit, peers.LensKit)]
    return "".join(f"- {' '.join(text.split())}\n" for text in texts)


def write(results: Results, folder: Path) -> None:
    """Write the record, the figures if matplotlib is there, and the page; each whole or not."""
    _write_text(folder / RECORD, json.dumps(results.to_dict(), indent=1) + "\n")
    figures: list[str] = []
    with suppress(ConfigError):
        figures = draw_all(results, folder / FIGURES)
    _write_text(folder / PAGE, page(results, figures))


def load(folder: Path, machine: Mapping[str, Any]) -> Results:
    """Take up the results that an earlier run left in a folder, or start anew.

    Raises
    ------
    ConfigError
        If they are another machine's: ratios of two machines do not belong on one page.
    """
    file = folder / RECORD
    if not file.exists():
        return Results(machine)
    try:
        results = Results.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError) as error:
        message = f"not a record of benchmarks: {str(file)!r}"
        raise DataError(message, hint="choose another folder with -o") from error
    for name, value in machine.items():
        if name != "date" and results.machine.get(name) != value:
            message = f"the folder's results are from another machine: {name} is not {value!r}"
            raise ConfigError(message, hint="leave --add out to start anew, or choose another -o")
    return results


def _write_text(file: Path, text: str) -> None:
    with atomic_file(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
