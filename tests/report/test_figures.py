"""Figures say what the numbers say."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from limelight._errors import ConfigError, DataError
from limelight.evaluate.exposure import lorenz as lorenz_curve
from limelight.report.figures import PALETTE, Point, front, lorenz, save

pytest.importorskip("matplotlib")

if TYPE_CHECKING:
    from pathlib import Path

SKEWED, EVEN = np.array([9.0, 1.0, 0.0, 0.0]), np.ones(4)


def labels(ax: object) -> list[str]:
    return [text.get_text() for text in ax.texts]  # type: ignore[attr-defined]


def test_lorenz_draws_every_curve() -> None:
    ax = lorenz({"iALS": SKEWED, "even": EVEN})
    diagonal, first, second = ax.get_lines()
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert np.array_equal(first.get_xydata().T, lorenz_curve(SKEWED))
    assert np.allclose(second.get_xdata(), second.get_ydata())
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["iALS (Gini 0.70)", "even (Gini 0.00)"]
    assert ax.get_title(loc="left") == "Half of the items hold 0 % of the exposure"
    assert lorenz({"even": EVEN}, title="Fair").get_title(loc="left") == "Fair"


def test_front_draws_one_series_for_each_method() -> None:
    points = [Point(0.9, 0.2, "1e-06"), Point(0.8, 0.1, "1e-03")]
    ax = front({"iALS": [Point(0.95, 0.21)], "exADMM": points}, accuracy="nDCG@20")
    baseline, series = ax.get_lines()
    assert baseline.get_xydata().tolist() == [[0.95, 0.21]]
    assert series.get_xydata().tolist() == [[0.9, 0.2], [0.8, 0.1]]
    assert (baseline.get_color(), series.get_color()) == PALETTE[:2]
    assert labels(ax) == ["1e-06", "1e-03"]
    assert ax.get_ylabel() == "nDCG@20"
    assert ax.get_title(loc="left") == "nDCG@20 against the inequality of exposure"


def test_labels_do_not_cover_each_other() -> None:
    crowd = [
        Point(0.9 + shift, 0.2 + shift, f"{number}")
        for number, shift in enumerate([0, 1e-5, 1e-4, 2e-4])
    ]
    ax = front({"exADMM": [*crowd, Point(0.5, 0.1, "far")]})
    assert "far" in labels(ax)
    assert len(labels(ax)) < 5
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_drawing_into_axes_of_ones_own() -> None:
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    assert lorenz({"even": EVEN}, ax=left) is left
    assert front({"iALS": [Point(0.9, 0.2)]}, ax=right) is right


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_save(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "deep" / f"lorenz.{ending}"
    save(lorenz({"even": EVEN}), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.stat().st_size > 1000


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no exposures to draw"):
        lorenz({})
    with pytest.raises(DataError, match="no points to draw"):
        front({"iALS": []})
    with pytest.raises(ConfigError, match=r"unknown kind of figure: .*lorenz\.docx"):
        save(lorenz({"even": EVEN}), tmp_path / "lorenz.docx")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        lorenz({"even": EVEN})
    assert caught.value.hint == "pip install 'limelight[plot]'"
