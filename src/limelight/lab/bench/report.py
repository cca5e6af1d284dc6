"""What a run of benchmarks writes: a page with the machine, the ratios and all numbers; figures."""

from __future__ import annotations

import inspect
import json
import platform
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.documents import Table
from limelight._base.errors import ConfigError, DataError
from limelight._base.files import atomic_file
from limelight._base.machine import blas, package_version, processor, total_memory, version_of
from limelight._native import resolve_threads, variant
from limelight.lab.bench import peers
from limelight.lab.bench.jobs import JOBS
from limelight.lab.bench.large import describe
from limelight.lab.bench.peers import PACKAGES, irspack_instructions
from limelight.lab.bench.records import Results
from limelight.lab.tables import details, glance
from limelight.report.figures.style import MUTED, PALETTE, STYLE, load_matplotlib, save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from limelight.lab.bench.records import Race


_EPOCHS = ("exact", "cg", "exadmm", "user-step", "topk")
_WIDTH, _LINE = 7.2, 0.28  # inches


class Plot(NamedTuple):
    """A figure: its title, which races it shows, and who draws it."""

    title: str
    choose: Callable[[Results], Sequence[Race]]
    draw: Callable[[Sequence[Race], str], Axes]


def _ratios(results: Results) -> list[Race]:
    return [race for race in results.races if race.job in _EPOCHS and len(race.entries) > 1]


def _rates(results: Results) -> list[Race]:
    return [race for race in results.races if race.share_of_peak(race.entries[0])]


def _of(*jobs: str) -> Callable[[Results], list[Race]]:
    return lambda results: [race for race in results.races if race.job in jobs]


def draw_ratios(races: Sequence[Race], title: str) -> Axes:
    """Draw one line for each rival and data set, and on it a dot for each number of factors."""
    from matplotlib.ticker import LogLocator

    lines: dict[str, list[tuple[int, float]]] = {}
    for race in races:
        for entry in race.entries[1:]:
            threads = "" if race.threads == 1 else f", {race.threads} threads"
            name = f"{race.job}, {race.data}{threads}: {entry.who}"
            lines.setdefault(name, []).append((race.factors or 0, race.ratio(entry)))
    sizes = sorted({size for dots in lines.values() for size, _ in dots})
    ax = _axes(len(lines))
    for number, size in enumerate(sizes):
        dots = [(x, y) for y, line in enumerate(lines.values()) for d, x in line if d == size]
        ax.scatter(*zip(*dots, strict=True), color=PALETTE[number % len(PALETTE)], label=f"{size}")
    ax.axvline(1, color=MUTED, linewidth=1)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.figure.legend(title="factors", loc="outside right upper")
    return _finish(ax, list(lines), title, "our time by theirs (left of 1: ours is shorter)")


def draw_rates(races: Sequence[Race], title: str) -> Axes:
    """Draw how close we come to the peak, one bar for each race."""
    shares = [race.share_of_peak(race.entries[0]) or 0.0 for race in races]
    names = [f"{race.job}, {race.data}, {race.factors} factors" for race in races]
    return _bars(names, shares, title, "share of the sgemm peak measured in the same race")


def draw_growth(races: Sequence[Race], title: str) -> Axes:
    """Draw by what factor the time grows, one bar for each race, and a line at 2."""
    names = [f"{race.data}: {race.part}" for race in races]
    ax = _bars(names, [race.ratio(race.entries[1]) for race in races], title, "times as long")
    ax.axvline(2, color=MUTED, linewidth=1)
    return ax


def draw_speedups(races: Sequence[Race], title: str) -> Axes:
    """Draw what more threads bring, one bar for each kernel."""
    names = [f"{race.data}: {race.part}, {race.threads} threads" for race in races]
    ratios = [race.ratio(race.entries[1]) for race in races]
    return _bars(names, ratios, title, "times as fast as one thread")


def draw_memory(races: Sequence[Race], title: str) -> Axes:
    """Draw peak memory, one bar for each candidate."""
    entries = [(race, entry) for race in races for entry in race.entries]
    names = [f"{race.data}{race.part and ' '}{race.part}: {entry.who}" for race, entry in entries]
    return _bars(names, [entry.cost / 2**20 for _, entry in entries], title, "MiB")


PLOTS = {
    "benchmarks-ratios.png": Plot("Our time against others'", _ratios, draw_ratios),
    "benchmarks-rates.png": Plot("How close to the machine's peak", _rates, draw_rates),
    "benchmarks-growth.png": Plot("When one thing doubles", _of("growth"), draw_growth),
    "benchmarks-threads.png": Plot("What threads bring", _of("threads"), draw_speedups),
    "benchmarks-memory.png": Plot("Peak memory of a fit", _of("memory"), draw_memory),
    "benchmarks-reading-memory.png": Plot(
        "Peak memory of reading", _of("reading-memory"), draw_memory
    ),
}


def draw_all(results: Results, folder: Path) -> list[str]:
    """Draw every figure for which there are races; return their names."""
    mpl = load_matplotlib()
    chosen = {name: plot for name, plot in PLOTS.items() if plot.choose(results)}
    for name, plot in chosen.items():
        with mpl.rc_context(STYLE):
            save(plot.draw(plot.choose(results), plot.title), folder / name)
    return list(chosen)


def _bars(names: Sequence[str], values: Sequence[float], title: str, label: str) -> Axes:
    ax = _axes(len(names))
    ax.bar_label(ax.barh(range(len(names)), values, color=PALETTE[1]), fmt="%.3g", padding=3)
    ax.margins(x=0.1)
    return _finish(ax, names, title, label)


def _axes(n_lines: int) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, 1.4 + _LINE * n_lines), layout="constrained").subplots()


def _finish(ax: Any, names: Sequence[str], title: str, label: str) -> Axes:
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=False, axis="y")
    ax.invert_yaxis()
    ax.set_xlabel(label)
    ax.set_title(title)
    axes: Axes = ax
    return axes


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
    """Write the whole page, with the figures that were drawn."""
    by_job = {job: [race for race in results.races if race.job == job.name] for job in JOBS}
    measured = {job: races for job, races in by_job.items() if races}
    parts = [_INTRODUCTION, _machine(results)]
    several = {job: races for job, races in measured.items() if job.scope == "each size"}
    if several:
        parts.append(f"## At a glance\n\n{_HOW_RATIOS_READ}")
        parts += [f"**{job.title}**\n\n{glance(races)}\n" for job, races in several.items()]
    parts += [f"![{PLOTS[name].title}]({FIGURES}/{name})\n" for name in figures]
    for job, races in measured.items():
        parts.append(f"## {job.title}\n\n{job.about}\n\n{details(races)}\n")
    if results.large:
        parts.append(f"## The large run\n\n{describe(results.large)}\n")
    parts.append(f"## How it was measured\n\n{_METHOD}{_peers()}")
    return "\n".join(parts)


def _machine(results: Results) -> str:
    rows = [(name.replace("_", " "), _plain(value)) for name, value in results.machine.items()]
    machine = Table(["", ""], rows, left=2).markdown()
    sizes = [(name, *map(_plain, facts.values())) for name, facts in results.data.items()]
    heads = ["data", "source", "users", "items", "interactions"]
    data = Table(heads, sizes, left=2).markdown()
    return f"## The machine and the data\n\n{machine}\n\n{data}\n"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(entry) for entry in value)
    if isinstance(value, int):
        return f"{value:,}"
    return "not installed" if value is None else str(value)


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

    Those of another machine are refused: ratios of two machines do not belong on one page.
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


def describe_machine() -> dict[str, Any]:
    """Say what the times depend on, versions of the peers included."""
    name, instructions = processor()
    memory = total_memory()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": name,
        "instructions": instructions,
        "threads": resolve_threads(0),
        "memory": None if memory is None else f"{memory / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "limelight": package_version(),
        "kernel": variant(),
        "blas": sorted(text.partition(",")[0] for text in blas()),
        **{name: version_of(name) for name in ("numpy", *PACKAGES, "pandas", "polars")},
        "irspack_is_built_for": irspack_instructions(),
    }
