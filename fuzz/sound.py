"""Small model folders and runs that are as they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

import limelight as ll
from limelight.data.groups import Groups
from limelight.report.exhibit import ExampleUsers, Exhibit, ExhibitPoint, ShownLists
from limelight.report.exhibit_folder import save_exhibit
from limelight.store.checkpoint import Notebook

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = {"data": "7efaa93d20cf6004", "k": 2}
MATRIX = csr_matrix([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])


def model_folders(folder: Path) -> list[Path]:
    """Save a model of every kind that needs no extra, some with a re-ranker."""
    ials = ll.IALS(factors=2, epochs=2, num_threads=1).fit(MATRIX)
    models = {
        "ials": ials,
        "exadmm": ll.ExADMM(factors=2, epochs=2, exposure_weight=1e-3, num_threads=1).fit(MATRIX),
        "popularity": ll.Popularity().fit(MATRIX),
        "best-response": ll.BestResponse(strength=0.3).over(ials),
        "prices": ll.FrankWolfe(strength=0.3).fit(ials.ranking(), k=2).over(ials),
    }
    for name, model in models.items():
        model.save(folder / name)
    return [folder / name for name in models]


def run_folders(folder: Path) -> list[Path]:
    """Save an exhibit with everything in it, and a notebook."""
    item_ids = np.array(["a", "b", "c", "d"], dtype=object)
    figures = {
        "ndcg@2": 0.5,
        "ndcg@2_low": 0.4,
        "ndcg@2_high": 0.6,
        "gini@2": 0.3,
        "coverage@2": 1.0,
    }
    points = tuple(
        ExhibitPoint(
            method=method,
            label=f"{method} {strength}",
            figures=figures,
            strength=strength,
            settings={"factors": 2},
            shown=ShownLists(
                np.array([3.0, 2.0, 1.0, 0.0]),
                np.array([[0, 1], [2, -1]], dtype=np.int32),
                {"epoch": [1.0, 2.0], "objective": [9.0, 8.0]},
            ),
        )
        for method, strength in (("IALS", None), ("ExADMM", 0.1))
    )
    history = (np.array([0, 1], dtype=np.int32), np.array([3], dtype=np.int32))
    exhibit = Exhibit(
        kind="frontier",
        title="A run",
        k=2,
        points=points,
        item_ids=item_ids,
        titles=("A", "B", "C", "D"),
        interactions=np.array([3, 2, 1, 1]),
        groups=Groups(np.array([0, 1]), np.array([0, 1]), np.ones(2), ["x", "y"], n_ignored=0),
        examples=ExampleUsers(np.array([7, 9]), history, history),
        data={"users": "3"},
        notes=("a note",),
    )
    save_exhibit(folder / "run", exhibit)
    Notebook(folder / "run", ABOUT).once("plain", lambda: {"ndcg@2": 0.5, "sights": [1, 2]})
    return [folder / "run"]
