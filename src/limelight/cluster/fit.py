"""A fit that runs on many ranks, from the data to the model folder.

Each rank leaves the factors of its shards in files, and one process puts the model together.
"""

from __future__ import annotations

import json
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from limelight._base.errors import ConfigError, LimelightError
from limelight._base.files import (
    atomic_file,
    atomic_folder,
    delete_folder,
    refuse_stranger,
    tidying,
)
from limelight.cluster.checkpoint import ShardCheckpoint, flip
from limelight.cluster.ingest.prepare import about_source, prepare
from limelight.cluster.ingest.shards import (
    ITEMS,
    USERS,
    ShardedData,
    has_shards,
    load_shards,
    stream_indices,
    stream_indptr,
)
from limelight.cluster.partition import Partition, Stopwatch
from limelight.models.config import settled
from limelight.models.factor_model import chosen_of, factor_solver, fit_schedule, unpadded
from limelight.models.folder import config_of
from limelight.solve.loop import run
from limelight.solve.problem import padded_width, sparse_rows, stacked
from limelight.store.arrays import Stretches, read_rows, save_arrays, save_stretches, shape_of
from limelight.store.checkpoint import EVERY, described, read_record
from limelight.store.model_folder import (
    CONFIG,
    FACTORS,
    SEEN,
    config_text,
    is_model_folder,
    require_finite,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from limelight._base.arrays import Float32, Float64
    from limelight._native._kernels import Csr
    from limelight.cluster.collectives import Communicator, Program
    from limelight.models.factor_model import FactorModel
    from limelight.solve.loop import Status
    from limelight.solve.state import TraceRecord

    OnNews = Callable[[int, int, dict[str, Any]], object]

_RECORD, _SHARDS, _RESULT = "cluster.json", "shards", "result"


class Runtime(Protocol):
    """What runs a program on many ranks."""

    def __call__(
        self, program: Program, *, on_commit: Callable[[int], object], on_news: OnNews
    ) -> list[Any]:
        """Return what each rank returned."""


class CheckpointOptions(NamedTuple):
    """How often a fit writes checkpoints, and whether it goes on from one."""

    every: float = EVERY
    """Seconds between two checkpoints; 0 writes one after every epoch."""
    resume: bool = False
    """Whether to go on from where an earlier run of the same fit stopped."""


class FitEnding(NamedTuple):
    """What all ranks know alike at the end of a fit; the factors are left on disk."""

    mean_user: Float64
    dual: Float64
    trace: list[TraceRecord]
    status: Status
    is_complete: bool
    shape: tuple[int, int, int]
    """Users, items, interactions."""
    chosen: dict[str, Any]
    """What settings that are "auto" came to."""


@dataclass
class ShardedFit:
    """What every rank of a fit does."""

    model: FactorModel
    source: Any
    reading: dict[str, Any]
    work: Path
    """A folder that all ranks can reach."""
    about: dict[str, Any]
    every: float

    def __post_init__(self) -> None:
        self._partition: Partition | None = None
        self._checkpoint = ShardCheckpoint(self.work, self.every)

    def prepare(self, comm: Communicator) -> None:
        """Read this rank's users, and find out what has to travel."""
        folder = self.work / _SHARDS
        alone = has_shards(folder)
        data = prepare(self.source, folder, comm, **self.reading)
        cut = data.cut
        numbers = settled(
            asdict(self.model.config),
            n_users=cut.n_users,
            n_items=cut.n_items,
            observed=cut.n_entries,
        )
        width = padded_width(numbers.factors)
        if alone:
            self._partition = Partition.again(comm, data.cut, width, _all_rows(folder, data))
        else:
            self._partition = Partition.of(comm, data.cut, width, stacked(_rows(data)))

    def run(self, comm: Communicator) -> FitEnding:
        """Fit; leave the factors of this rank's users and items in the folder."""
        assert self._partition is not None
        partition = replace(self._partition, comm=comm, stopwatch=Stopwatch())
        solver = factor_solver(self.model, partition, threads=comm.threads)
        checkpoint, self._checkpoint.partition = self._checkpoint, partition
        outcome = run(
            solver,
            fit_schedule(self.model, show_progress=False, checkpoint=checkpoint, about=self.about),
        )
        factors, state = solver.problem.factors, solver.state
        if not checkpoint.is_stopped:
            place = self.work / _RESULT
            for shard, (users, _), items in zip(
                partition.numbers, partition.cells, partition.item_cells, strict=True
            ):
                leave_rows(place, "user_factors", shard, unpadded(state.U[users], factors))
                leave_rows(place, "item_factors", shard, unpadded(state.V[items], factors))
        return FitEnding(
            state.s[:factors],
            state.w[:factors],
            outcome.trace,
            outcome.status,
            not checkpoint.is_stopped,
            (partition.n_users, len(state.V), partition.n_entries),
            chosen_of(self.model.config, solver.problem),
        )


def _rows(data: ShardedData) -> list[Csr]:
    return [sparse_rows(*shard, data.cut.n_items) for shard in data.shards]


def _all_rows(folder: Path, data: ShardedData) -> Iterator[Csr]:
    """Read the histories of all shards, one shard at a time."""
    for shard in range(data.cut.n_shards):
        yield from _rows(load_shards(folder, range(shard, shard + 1)))


def fit_shards(
    model: FactorModel,
    source: Any,
    path: str | os.PathLike[str],
    runtime: Runtime,
    *,
    n_shards: int,
    checkpoints: CheckpointOptions | None = None,
    history: bool = True,
    on_news: OnNews = lambda *_: None,
    **reading: Any,
) -> FitEnding:
    """Fit a model on many ranks and write its folder.

    Parameters
    ----------
    model
        A model of factors, not fitted.
    source
        A file, a folder of parts or a split folder that all ranks can reach; or interactions.
    path
        Where the model folder shall be. The work is kept beside it until it is complete, in a
        folder whose name ends in ".cluster", which all ranks must be able to reach, too.
    runtime
        What runs the ranks.
    n_shards
        How many shards users and items are cut into.
    checkpoints
        How often they are written, and whether to go on from one.
    history
        Whether to keep the training histories in the model folder.
    on_news
        Called with a rank, an epoch, and what the rank tells of it.
    **reading
        As for :func:`limelight.read`.

    Returns
    -------
    FitEnding
        What is known at the end. If the fit was stopped before, there is no model yet.
    """
    refuse_descent(model)
    target = Path(path).expanduser()
    work = work_folder(target)
    about = {
        "kind": "a fit on a cluster",
        "model": type(model).__name__,
        **{name: v for name, v in model.get_params().items() if name != "num_threads"},
        "source": about_source(source, n_shards, **reading),
    }
    checkpoints = checkpoints or CheckpointOptions()
    token = _open(work, about, resume=checkpoints.resume)
    program = ShardedFit(model, source, reading, work, about, checkpoints.every)

    def on_commit(epoch: int) -> None:
        _require_ours(work, token)
        flip(work, epoch, about)

    with _leaving_what_can_be_resumed(work):
        ending: FitEnding = runtime(program, on_commit=on_commit, on_news=on_news)[0]
        _require_ours(work, token)
    if ending.is_complete:
        data = load_shards(work / _SHARDS, range(0))
        arrays: dict[str, Any] = {
            name: left_rows(work / _RESULT, name, data.cut.n_shards)
            for name in ("user_factors", "item_factors")
        }
        arrays |= {"mean_user": ending.mean_user, "dual": ending.dual}
        arrays["item_counts"] = data.cut.item_counts
        config = config_of(model, data.fingerprint, ending.trace, ending.status, ending.chosen)
        write_model(target, config, arrays, data, history=history)
        with tidying(f"{str(target)!r} is written"):
            delete_folder(work)
    return ending


@contextmanager
def _leaving_what_can_be_resumed(work: Path) -> Iterator[None]:
    """Delete the work folder after an error that a second run would meet again.

    The folder stays after the loss of workers and after errors of the operating system, such as a
    full disk, because a second run may then succeed.
    """
    try:
        yield
    except LimelightError as error:
        is_final = type(error) is not LimelightError and not isinstance(error.__cause__, OSError)
        if is_final or not has_shards(work / _SHARDS):
            delete_folder(work)
        raise


def work_folder(path: Path) -> Path:
    """Return the folder of unfinished work; its name is not that of a fit on one machine."""
    target = path.resolve()
    return target.with_name(f"{target.name}.cluster")


def is_begun(path: Path) -> bool:
    """Tell whether there is a fit to go on with."""
    return (work_folder(path) / _RECORD).is_file()


def refuse_descent(model: FactorModel) -> None:
    """Refuse row solves that need the rows of an item more than once."""
    if model.config.row_solver != "cholesky":
        message = f"a fit on many machines needs row_solver='cholesky': {model.config.row_solver!r}"
        raise ConfigError(message, hint="leave row_solver out")


def _open(work: Path, about: dict[str, Any], *, resume: bool) -> str:
    """Make the folder of the work, or take up the one that is there.

    Returns a token that is written there: whoever begins another fit at the same place writes
    another one, so that the first can tell.
    """
    refuse_stranger(work, lambda folder: (folder / _RECORD).is_file())
    if resume and (work / _RECORD).is_file():
        read_record(work / _RECORD, described(about))
    else:
        delete_folder(work)
        work.mkdir(parents=True)
    token = secrets.token_hex(8)
    with atomic_file(work / _RECORD) as temporary:
        record = {"about": described(about), "record": {"token": token}}
        temporary.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return token


def _require_ours(work: Path, token: str) -> None:
    """Refuse to go on with what another fit has begun at the same place."""
    try:
        found = json.loads((work / _RECORD).read_text(encoding="utf-8"))["record"]["token"]
    except (OSError, ValueError, KeyError):
        found = None
    if found != token:
        message = f"another fit works at the same place: {str(work)!r}"
        raise LimelightError(message, hint="let one of them write to another --output")


def leave_rows(folder: str | os.PathLike[str], name: str, shard: int, rows: Float32) -> None:
    """Leave the rows that a shard has of an array such as ``user_factors``, whole or not at all."""
    save_arrays(_file(folder, name, shard), {name: rows.astype(np.float32, copy=False)})


def left_rows(folder: str | os.PathLike[str], name: str, n_shards: int) -> Stretches:
    """Put the rows that all ranks left one below the other, without reading them yet.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for shard in range(3):
    ...     leave_rows(folder, "user_factors", shard, np.ones((shard, 2), np.float32))
    >>> left_rows(folder, "user_factors", 3).shape
    (3, 2)
    """
    files = [_file(folder, name, shard) for shard in range(n_shards)]
    shapes = [shape_of(file, name) for file in files]

    def read() -> Iterator[NDArray[Any]]:
        for file in files:
            yield from read_rows(file, name)

    n_rows = sum(rows for rows, _ in shapes)
    return Stretches((n_rows, shapes[0][1]), np.dtype(np.float32), read)


def write_model(
    path: str | os.PathLike[str],
    config: dict[str, Any],
    arrays: Mapping[str, NDArray[Any] | Stretches],
    data: ShardedData,
    *,
    history: bool = True,
) -> None:
    """Write a model folder, whole or not at all; one process does this, once all rows are left.

    The folder is, byte for byte, what ``model.save`` writes on one machine. Nobody holds all rows:
    they go from file to file in stretches, as :func:`left_rows` finds them.
    """
    text = config_text(config)
    with atomic_folder(path, replace_if=is_model_folder) as temporary:
        (temporary / CONFIG).write_text(text, encoding="utf-8")
        finite = {name: _finite(name, array) for name, array in arrays.items()}
        save_stretches(temporary / FACTORS, finite)
        for name in (USERS, ITEMS):
            shutil.copyfile(data.folder / name, temporary / name)
        if history:
            save_stretches(temporary / SEEN, _histories(data))


def _finite(name: str, array: NDArray[Any] | Stretches) -> Stretches:
    """Check an array while it is written; the folder appears only when all of it was finite."""

    def read() -> Iterator[NDArray[Any]]:
        for stretch in array.read() if isinstance(array, Stretches) else [array]:
            require_finite(stretch, f"the model: {name!r}")
            yield stretch

    return Stretches(array.shape, array.dtype, read)


def _histories(data: ShardedData) -> dict[str, Stretches]:
    folder, n_shards = data.folder, data.cut.n_shards
    return {
        "indptr": Stretches(
            (data.cut.n_users + 1,),
            np.dtype(np.int64),
            lambda: stream_indptr(folder, n_shards),
        ),
        "indices": Stretches(
            (data.cut.n_entries,), np.dtype(np.int32), lambda: stream_indices(folder, n_shards)
        ),
    }


def _file(folder: str | os.PathLike[str], name: str, shard: int) -> Path:
    return Path(folder) / f"{name}-{shard:05d}.safetensors"
