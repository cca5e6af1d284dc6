"""Other libraries' fits, one epoch at a time, from our first factors and with our loss.

Each class says in its docstring how its epoch is timed.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError
from limelight._base.machine import version_of
from limelight.lab.bench.task import UNOBSERVED_WEIGHT, Learnt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight._base.arrays import Float32
    from limelight.lab.bench.task import Task, Trainer

PACKAGES = ("irspack", "implicit", "lenskit")
Solver: TypeAlias = Literal["CHOLESKY", "CG", "IALSPP"]
_SUBSPACE = 64  # irspack's own default
_SCALE = float(np.sqrt(1 + UNOBSERVED_WEIGHT))


def irspack_instructions() -> str | None:
    """Say what irspack was built to use, in its own words: wheels are built for many machines."""
    if not version_of("irspack"):
        return None
    with quiet_imports():
        from irspack.recommenders import _ials_core
    return str(_ials_core.__doc__).strip().splitlines()[-1].strip()


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Suppress the warnings that other libraries raise while they are imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def irspack_cholesky(task: Task) -> list[Trainer]:
    """Return the fastest peer that solves every row exactly, if it is installed."""
    return [Irspack(task, "CHOLESKY")] if version_of("irspack") else []


def exact_solvers(task: Task) -> list[Trainer]:
    """Return the peers that solve every row exactly, as far as they are installed."""
    found = irspack_cholesky(task)
    if version_of("implicit"):
        found.append(Implicit(task, use_cg=False))
    if version_of("lenskit"):
        with suppress(ConfigError):  # its threads cannot be changed
            found.append(LensKit(task))
    return found


def descents(task: Task) -> list[Trainer]:
    """Return the peers that take a few steps for every row, as far as they are installed."""
    found: list[Trainer] = []
    if version_of("irspack"):
        found += [Irspack(task, "CG"), Irspack(task, "IALSPP")]
    if version_of("implicit"):
        found.append(Implicit(task, use_cg=True))
    return found


class Irspack:
    """irspack's IALSRecommender with loss_type="IALSPP", which is our loss.

    Timed: ``run_epoch`` of its trainer, which is one step of its C++ core over users and items.
    """

    def __init__(self, task: Task, solver: Solver) -> None:
        with quiet_imports():
            from irspack.recommenders.ials import IALSTrainer, LossType, SolverType
        self.who = f"irspack {solver}"
        self._trainer = IALSTrainer(
            task.data.split.train.matrix,
            n_components=task.factors,
            alpha0=UNOBSERVED_WEIGHT,
            reg=task.regularization,
            nu=0.0,
            init_std=0.1,
            solver_type=getattr(SolverType, solver),
            max_cg_steps=3,
            ialspp_subspace_dimension=min(_SUBSPACE, task.factors),
            loss_type=LossType.IALSPP,
            random_seed=0,
            n_threads=task.threads,
            prediction_time_max_cg_steps=3,
            prediction_time_ialspp_iteration=1,
        )
        core = self._trainer.core_trainer
        core.user, core.item = task.first_factors()

    def epoch(self) -> None:
        """Update all users and all items once."""
        self._trainer.run_epoch()

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far."""
        core = self._trainer.core_trainer
        return Learnt(np.asarray(core.user), np.asarray(core.item))


class _Hu:
    """The loss of Hu, Koren and Volinsky (2008), by which implicit and LensKit go.

    An observed pair has the weight 1 + 1/a0 and the target 1, any other the weight 1. Times a0 that
    is (1 + a0) (x - 1)^2 and a0 x^2. Ours is, up to a constant, (1 + a0) (x - 1/(1 + a0))^2 and
    a0 x^2: the same for factors that are sqrt(1 + a0) times ours, with (1 + a0)/a0 times our
    regularisation.
    """

    confidence = 1 + 1 / UNOBSERVED_WEIGHT

    @staticmethod
    def regularization(task: Task) -> float:
        return task.regularization * (1 + UNOBSERVED_WEIGHT) / UNOBSERVED_WEIGHT

    @staticmethod
    def first_factors(task: Task) -> tuple[Float32, Float32]:
        U, V = task.first_factors()
        return U * np.float32(_SCALE), V * np.float32(_SCALE)

    @staticmethod
    def learnt(U: Float32, V: Float32) -> Learnt:
        return Learnt(U / np.float32(_SCALE), V / np.float32(_SCALE))


class Implicit:
    """implicit's AlternatingLeastSquares on the processor.

    Timed: the two calls of its solver that make up one turn of the loop in ``fit``, first for the
    users, then for the items; what ``fit`` prepares before (the transpose, the first factors) is
    left out.
    """

    def __init__(self, task: Task, *, use_cg: bool) -> None:
        with quiet_imports():
            from implicit.cpu.als import AlternatingLeastSquares
        self.who = "implicit CG" if use_cg else "implicit Cholesky"
        self._model = AlternatingLeastSquares(
            factors=task.factors,
            regularization=_Hu.regularization(task),
            use_cg=use_cg,
            num_threads=task.threads,
        )
        self._by_user = (task.data.split.train.matrix * np.float32(_Hu.confidence)).tocsr()
        self._by_item = self._by_user.T.tocsr()
        self._U, self._V = _Hu.first_factors(task)

    def epoch(self) -> None:
        """Update all users and all items once."""
        model, U, V = self._model, self._U, self._V
        for matrix, own, other in ((self._by_user, U, V), (self._by_item, V, U)):
            model.solver(matrix, own, other, model.regularization, num_threads=model.num_threads)

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far."""
        return _Hu.learnt(self._U, self._V)


class LensKit:
    """LensKit's ImplicitMFScorer, which has a Cholesky solver only.

    Timed: ``train_epoch`` of its trainer. Its pool of threads is made once and cannot be changed,
    so it races only with the number of threads that it was first used with.
    """

    who = "LensKit Cholesky"

    def __init__(self, task: Task) -> None:
        with quiet_imports():
            from lenskit.als import ImplicitMFScorer
            from lenskit.training import TrainingOptions
        _start_lenskit(task.threads)
        scorer = ImplicitMFScorer(
            embedding_size=task.factors,
            regularization=_Hu.regularization(task),
            weight=_Hu.confidence - 1,
        )
        self._trainer = scorer.create_trainer(_lenskit_data(task), TrainingOptions())
        names = ("user_embeddings", "item_embeddings")
        self._trainer.load_parameters(dict(zip(names, _Hu.first_factors(task), strict=True)))
        self._scorer = scorer

    def epoch(self) -> None:
        """Update all users and all items once."""
        self._trainer.train_epoch()

    def learnt(self) -> Learnt:
        """Return the factors after the epochs so far."""
        return _Hu.learnt(self._scorer.user_embeddings, self._scorer.item_embeddings)


def _start_lenskit(threads: int) -> None:
    from lenskit.parallel import config as parallel

    if parallel._config is None:
        parallel.initialize(processes=1, threads=threads, backend_threads=1)
    if parallel._config.threads != threads:
        message = f"LensKit's pool has {parallel._config.threads} threads and cannot have {threads}"
        raise ConfigError(message, hint="measure LensKit in a run of its own")


def _lenskit_data(task: Task) -> Any:
    """Number users and items as we do, those without interactions included."""
    import pyarrow as pa
    from lenskit.data import DatasetBuilder

    matrix = task.data.split.train.matrix.tocoo()
    builder = DatasetBuilder()
    builder.add_entities("user", np.arange(matrix.shape[0]))
    builder.add_entities("item", np.arange(matrix.shape[1]))
    pairs = pa.table({"user_id": matrix.row, "item_id": matrix.col})
    builder.add_interactions(
        "click", pairs, entities=["user", "item"], missing="error", default=True
    )
    return builder.build()
