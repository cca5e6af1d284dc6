"""Small model folders and runs that are as they should be."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

import limelight as ll
from limelight.data.groups import Groups
from limelight.report.exhibit import ExampleUsers, Exhibit, ExhibitPoint, ShownLists
from limelight.report.exhibit_folder import save_exhibit
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.ledger import Ledger
from limelight.store.checkpoint import ResultCache

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
    ResultCache(folder / "run", ABOUT).once("plain", lambda: {"ndcg@2": 0.5, "sights": [1, 2]})
    return [folder / "run"]


def checkpoint_folders(folder: Path) -> list[Path]:
    """Leave the checkpoints of fits that were stopped after two epochs."""

    def stop(epoch: int, _: object) -> None:
        if epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    paths = []
    for name, model in unfinished().items():
        paths.append(folder / name)
        with contextlib.suppress(KeyboardInterrupt):
            model.fit(MATRIX, checkpoint=paths[-1], callback=stop, show_progress=False)
    return paths


def unfinished() -> dict[str, ll.IALS | ll.ExADMM]:
    """Name the models whose fits are stopped, and gone on with."""
    more = {"factors": 2, "epochs": 3, "num_threads": 1, "trace_every": 1}
    return {
        "ials.checkpoint": ll.IALS(**more),
        "exact.checkpoint": ll.ExADMM(exposure_weight=1e-3, **more),
        "admm.checkpoint": ll.ExADMM(exposure_weight=1e-3, solver="admm", **more),
    }


def journal_folders(folder: Path) -> list[Path]:
    """Leave the ledger of a service: a snapshot, a journal after it, and a state."""
    place = folder / "ledger"
    ledger = Ledger(4, window=3600.0)
    with Journal(place, ledger, item_ids=JOURNAL_IDS, flush_every=1e6) as journal:
        for number in range(6):
            ledger.advance(1e9 + number)
            items = np.array([number % 4, (number + 1) % 4, -1], dtype=np.int32)
            ledger.count(items, time=1e9 + number, plain=0.1, shown=0.2, event=str(number))
        journal.write_state({"strength": 0.5})
        journal.flush(1e9)
        copied = {file.name: file.read_bytes() for file in place.iterdir()}
    for file in place.iterdir():
        file.unlink()
    for name, content in copied.items():
        (place / name).write_bytes(content)
    return [place]


JOURNAL_IDS = ["a", "b", "c", "d"]
