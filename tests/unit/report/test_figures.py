"""What all figures share."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import limelight as ll
from limelight.report.figures.inputs import Point

mpl = pytest.importorskip("matplotlib")

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVEN = np.ones(4)
TRACE = [SimpleNamespace(epoch=1, objective=2.0, ndcg=0.1)]
DRAW: dict[str, Callable[..., Any]] = {
    "lorenz": lambda **more: ll.plot.lorenz({"a $ and a $": EVEN}, **more),
    "exposure": lambda **more: ll.plot.exposure({"a $ and a $": EVEN}, **more),
    "front": lambda **more: ll.plot.front({"a $_ and a $": [Point(0.9, 0.1, "$^$")]}, **more),
    "groups": lambda **more: ll.plot.groups({"a $_ and a $": (0.4, 0.3)}, **more),
    "convergence": lambda **more: ll.plot.convergence(TRACE, **more),
}
every_figure = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


@every_figure
def test_drawing_into_axes_of_ones_own(draw):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw(ax=ax, title="Mine, for 3 $ or 4 $_") is ax
    assert ax.get_title(loc="left") + ax.get_title() == "Mine, for 3 $ or 4 $_"


@every_figure
def test_names_are_written_as_they_are(draw, tmp_path):
    ll.plot.save(draw(), tmp_path / "figure.svg")  # with mathematics in the names this would fail


@every_figure
def test_settings_of_matplotlib_are_left_alone(draw):
    before = dict(mpl.rcParams)
    draw()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_figure_has_the_same_bytes(tmp_path, ending, monkeypatch):
    written = []
    for name, moment in (("a", "0"), ("b", "86400")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)  # what matplotlib takes for the time
        path = tmp_path / f"{name}.{ending}"
        ll.plot.save(ll.plot.lorenz({"$": EVEN}), path)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert b"Software" not in written[0]


@pytest.mark.parametrize("ending", ["png", "PDF", "svg"])
def test_save(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "deep" / f"lorenz.{ending}"
    ll.plot.save(ll.plot.lorenz(EVEN), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.stat().st_size > 1000


def test_an_unknown_kind_of_file(tmp_path):
    with pytest.raises(ll.ConfigError, match=r"unknown kind of figure: .*lorenz\.docx"):
        ll.plot.save(ll.plot.lorenz(EVEN), tmp_path / "lorenz.docx")
    assert list(tmp_path.iterdir()) == []


@every_figure
def test_without_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ll.ConfigError, match="not installed") as caught:
        draw()
    assert caught.value.hint == "pip install 'limelight[plot]'"


def stand_in(monkeypatch, shell):
    """Let IPython run this shell; matplotlib asks for its version, once in a process."""
    ipython = SimpleNamespace(get_ipython=lambda: shell, version_info=(9, 0))
    monkeypatch.setitem(sys.modules, "IPython", ipython)


class TestNotebooks:
    @pytest.fixture
    def pyplot(self):
        from matplotlib import pyplot

        pyplot.switch_backend("Agg")
        pyplot.close("all")
        yield pyplot
        pyplot.close("all")

    @pytest.mark.parametrize(("config", "figures"), [({"IPKernelApp": {}}, 1), ({}, 0)])
    def test_only_there_pyplot_shows_the_figure(self, pyplot, monkeypatch, config, figures):
        stand_in(monkeypatch, SimpleNamespace(config=config))
        ll.plot.lorenz(EVEN)
        assert len(pyplot.get_fignums()) == figures

    def test_ipython_imported_but_not_running(self, pyplot, monkeypatch):
        stand_in(monkeypatch, None)
        ll.plot.lorenz(EVEN)
        assert pyplot.get_fignums() == []
