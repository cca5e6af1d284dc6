"""What several verbs do alike: resume, choose an executor, and say what memory they take."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from limelight._base.errors import ConfigError, DataError
from limelight._base.executor import LocalExecutor
from limelight._base.memory import limit, require, resident, size
from limelight.cli.output import note, remark
from limelight.store.checkpoint import EVERY, Checkpoint
from limelight.store.model_folder import CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from limelight._base.executor import Executor
    from limelight.data.interactions import Interactions
    from limelight.models.config import Config
    from limelight.store.model_size import ModelSize


ENDING = ".checkpoint"


def checkpoint_of(output: Path, *, resume: bool, every: float | None = None) -> Checkpoint:
    """Return the checkpoint beside an output, saved every so many seconds.

    What is not to be resumed is removed.
    """
    from limelight._base.settings import check_number

    seconds = EVERY if every is None else every
    check_number("--checkpoint-every", seconds)
    target = output.resolve()
    kept = Checkpoint(target.with_name(target.name + ENDING), seconds)
    if not resume:
        kept.remove()
    elif not kept.exists:
        say_nothing_to_resume()
    return kept


def say_nothing_to_resume() -> None:
    """Say that --resume has no effect."""
    note("There is nothing to resume: starting from the beginning.")


class Where(StrEnum):
    """Where work can be done."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class ExecutorFlags:
    """Where the work of a command is done, and by how many."""

    panel: ClassVar[str] = "Cluster"
    executor: Annotated[
        Where,
        typer.Option(
            metavar="local|ray",
            help="ray: share the work among the workers of a Ray cluster, all of which must see "
            "the same files.",
        ),
    ] = Where.local
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a Ray cluster; auto: the one that this machine belongs to. Without it, the "
            "one in RAY_ADDRESS or, if there is none, this machine alone.",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many pieces are worked on at once, each by as many threads as --threads "
            "says, or by one; if not given, as many as there are cores for.",
        ),
    ] = None

    @property
    def is_cluster(self) -> bool:
        """Whether work is cut into pieces for the workers of a cluster."""
        return self.executor is Where.ray

    def check(self) -> bool:
        """Tell whether work is for a cluster; refuse flags that would have no effect."""
        if self.is_cluster:
            return True
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name != "executor" and value not in (None, False):
                told = "" if value is True else f": {value}"
                message = f"--{own.name.replace('_', '-')} is for a cluster{told}"
                raise ConfigError(message, hint="add --executor ray")
        return False

    def refuse_file(self, output: Path | None) -> None:
        """Refuse a single file: pieces are written as the parts of a folder."""
        if self.is_cluster and (output is None or output.suffix):
            message = f"--executor ray writes a folder of parts: {output or 'no -o was given'}"
            raise ConfigError(message, hint="name a folder: -o lists/")

    def announce(self, what: str, look: Callable[[int | None], Estimate | None]) -> None:
        """Say how much memory work takes that this process does, or refuse it."""
        if not self.is_cluster:
            announce_look(what, look)

    @contextmanager
    def open(self, threads: int | None = None) -> Iterator[Executor]:
        """Join the cluster for as long as the block runs, if there is one."""
        if not self.is_cluster:
            yield LocalExecutor()
            return
        from limelight.cluster.ray.executor import RayExecutor

        with RayExecutor(self.address, self.workers, threads or 1) as executor:
            yield executor


class Estimate(NamedTuple):
    """How much memory work takes, and what to change where that is too much."""

    needed: int
    hint: str


def announce(what: str, needed: int, *, hint: str) -> None:
    """Print how much memory the process will hold at the peak; refuse where there is less.

    Parameters
    ----------
    what
        What takes it, such as "reading".
    needed
        Bytes, all that the process holds included.
    hint
        What would fit.
    """
    most = require(needed, what, hint=hint)
    of = "" if most is None else f" (of {size(most)})"
    remark(f"{what} takes about {size(needed)} of memory{of}")


def announce_look(what: str, look: Callable[[int | None], Estimate | None]) -> None:
    """Announce the memory that is estimated from files, beside what the process held before.

    Parameters
    ----------
    what
        What takes memory, such as "reading".
    look
        Estimates how many bytes are needed, given how many there are (None if that is unknown).
        If it cannot read a file, nothing is printed: the work itself then says what is wrong.
    """
    import pyarrow as pa

    held, most = resident(), limit()
    try:
        found = look(None if most is None else most - held)
    except (DataError, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return
    pa.default_memory_pool().release_unused()  # memory that the estimate took
    if found is not None:
        announce(what, held + found.needed, hint=found.hint)


def announce_fit(data: Interactions, config: Config) -> None:
    """Say how much memory a run takes, reading included, or refuse it; not of networks."""
    from limelight._base.memory import limit, peak, resident
    from limelight._native import resolve_threads
    from limelight.models.config import FactorConfig, settled
    from limelight.models.ease import EASEConfig
    from limelight.solve.cost import fit_bytes, most_factors
    from limelight.solve.ease import inverse_bytes

    hint = "keep fewer users and items: --min-user, --min-item"
    n_entries = data.nnz * (1 if data.weights is None else 2)  # a weight is as long
    if isinstance(config, EASEConfig):
        needed = inverse_bytes(data.n_items, n_entries, resolve_threads(config.num_threads))
        announce("the fit", max(peak(), resident() + needed), hint=hint)
    if not isinstance(config, FactorConfig):
        return
    sizes = {
        "n_users": data.n_users,
        "n_items": data.n_items,
        "n_entries": n_entries,
        "threads": resolve_threads(config.num_threads),
    }
    held, room = resident(), limit()
    fits = 0 if room is None else most_factors(room - held, **sizes)
    shape = {"n_users": data.n_users, "n_items": data.n_items, "observed": data.nnz}
    factors = settled(asdict(config), **shape).factors
    if 0 < fits < factors:
        hint = f"use --factors {fits}"
    needed = held + fit_bytes(factors=factors, **sizes)
    announce("the fit", max(peak(), needed), hint=hint)


def known_size(folder: Path) -> ModelSize | None:
    """Look how large a saved model is; None for a network, whose memory is not only its arrays."""
    from limelight.models.folder import MODELS
    from limelight.models.neural.model import NeuralModel
    from limelight.store.model_size import model_size

    size = model_size(folder)
    return None if issubclass(MODELS[size.model][0], NeuralModel) else size


def holds_model(path: Path) -> bool:
    """Tell a folder that `limelight fit` wrote from one of tables, even if parts are damaged."""
    return (path / CONFIG).is_file()


def parse_shares(text: str | None, table: Any) -> str | dict[Any, float] | None:
    """Take the name of a target, or read its table of shares if there is one.

    Examples
    --------
    >>> parse_shares("equal", None)
    'equal'
    """
    if table is None:
        return text
    from limelight.rerank.targets.groups import read_shares

    return read_shares(table)
