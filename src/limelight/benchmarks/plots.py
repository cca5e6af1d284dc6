"""Results as figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from limelight.report.figures import MUTED, PALETTE, STYLE, load_matplotlib, save

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from limelight.benchmarks.records import Race, Results

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
    """Draw every figure for which there are races; return their names.

    Raises
    ------
    ConfigError
        If matplotlib is not installed.
    """
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
