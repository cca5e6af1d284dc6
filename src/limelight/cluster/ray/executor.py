"""Pieces of work as tasks of a Ray cluster."""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from limelight._base.errors import ConfigError, LimelightError
from limelight._base.progress import progress_bar
from limelight._base.settings import check_integer
from limelight._base.text import first_words
from limelight.cluster.ray.connect import connected, of_the_system, require_ray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limelight._base.executor import Piece, Result, Work

_AHEAD = 2
"""How many pieces wait or are at work for each worker: a free one finds the next at once."""
_RETRIES = 3
"""How often a piece is done again whose worker was lost."""


class RayExecutor:
    """Does pieces as tasks of a Ray cluster; a piece whose worker is lost is done again.

    The cluster is joined when there is work. Workers read and write the same files as this process:
    paths must mean the same everywhere.

    Parameters
    ----------
    address
        Of a cluster, or "auto" for the one that this machine belongs to. Without it, a cluster of
        this machine alone is started, and ended by :meth:`close`. Where this process has joined a
        cluster already, that one is used and left as it is.
    workers
        How many pieces are worked on at once, at most; as many as there are cores for, unless
        given.
    threads
        How many cores a piece takes.
    """

    parallel = True

    def __init__(
        self, address: str | None = None, workers: int | None = None, threads: int = 1
    ) -> None:
        if workers is not None:
            check_integer("workers", workers, least=1)
        check_integer("threads", threads, least=1)
        require_ray()
        self.workers, self._address, self._threads = workers, address, threads
        self._joined: ExitStack | None = None

    def _join(self) -> int:
        """Join the cluster at the first work, and return how many pieces are worked on at once."""
        import ray

        workers, threads = self.workers, self._threads
        if self._joined is None:
            self._joined = ExitStack()
            cores = workers and workers * threads
            self._joined.enter_context(connected(self._address, cores))
        nodes: Any = ray.nodes  # has no types
        machines = [int(node["Resources"].get("CPU", 0)) for node in nodes() if node["Alive"]]
        if threads > max(machines):
            # Ray would wait for a machine with so many to come.
            self.close()
            message = f"a piece takes more threads than any machine has cores: {threads}"
            raise ConfigError(message, hint=f"use at most --threads {max(machines)}")
        return workers or max(1, sum(machines) // threads)

    def map(
        self, work: Work[Piece, Result], pieces: Iterable[Piece], total: int | None = None
    ) -> Iterator[Result]:
        """Do all pieces and give their results in the order of the pieces."""
        import ray

        workers = self._join()
        task = ray.remote(num_cpus=self._threads, max_retries=_RETRIES)(_do)
        sent = ray.put(work)
        waiting: deque[tuple[str, Any]] = deque()
        shows = None if total else False
        with progress_bar(work.name, total or 0, show=shows) as advance:
            try:
                for number, piece in enumerate(pieces):
                    name = f"{work.name} {number}"
                    waiting.append((name, task.options(name=name).remote(sent, piece)))
                    if len(waiting) >= _AHEAD * workers:
                        yield _result(*waiting.popleft())
                        advance()
                while waiting:
                    yield _result(*waiting.popleft())
                    advance()
            finally:
                for _, left in waiting:
                    ray.cancel(left)

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        if self._joined is not None:
            self._joined.close()
            self._joined = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Refusal(NamedTuple):
    """An error of ours, as it travels; the library would wrap it in one of its own."""

    kind: type[LimelightError]
    message: str
    hint: str | None
    system: OSError | None
    """What the operating system said, where that was the cause."""


def _do(work: Any, piece: Any) -> Any:
    try:
        return work(piece)
    except LimelightError as error:
        cause = error.__cause__
        system = OSError(cause.errno, cause.strerror) if isinstance(cause, OSError) else None
        return _Refusal(type(error), error.message, error.hint, system)


def _result(name: str, reference: Any) -> Any:
    import ray

    try:
        found = ray.get(reference)
    except (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.ObjectLostError,
    ) as error:
        message = f"workers were lost {_RETRIES + 1} times at '{name}': {first_words(error)}"
        hint = "if they ran out of memory, use fewer --workers; finished parts are kept"
        raise LimelightError(message, hint=hint) from of_the_system(error)
    if isinstance(found, _Refusal):
        raise found.kind(found.message, hint=found.hint) from found.system
    return found
