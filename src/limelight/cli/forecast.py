"""What a fit on a cluster would take, before it begins or, with ``--dry-run``, instead."""

from typing import TYPE_CHECKING

from limelight._errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._arrays import Int64
    from limelight.models.config import FactorConfig
    from limelight.scale.forecast import Forecast
    from limelight.scale.workload import Solver


def predict(
    *,
    n_users: int,
    n_items: int,
    n_interactions: int,
    config: "FactorConfig",
    machines: int,
    shards: int,
    deterministic: bool = False,
    network: float = 10.0,
    speeds: "Mapping[str, float] | None" = None,
    user_lengths: "Int64 | None" = None,
    item_lengths: "Int64 | None" = None,
    routes: "Int64 | None" = None,
) -> "Forecast":
    """Predict what a fit on a cluster would move, hold and take.

    Parameters
    ----------
    n_users, n_items, n_interactions
        The size of the data.
    config
        The hyper-parameters of the model.
    machines, shards, deterministic
        How the work is dealt out.
    network
        Gigabits a second of a machine.
    speeds
        Cores of a machine and their speed, where they were measured: only seconds depend on them.
    user_lengths, item_lengths
        How long histories are, where the data have been read.
    routes
        How many rows of users each machine sends to each other one, where that has been counted.
    """
    from limelight.scale.simulate import simulate
    from limelight.scale.workload import Cluster, Workload

    work = Workload(
        n_users=n_users,
        n_items=n_items,
        n_interactions=n_interactions,
        factors=config.factors,
        solver=solver_of(config),
        epochs=config.epochs,
        user_lengths=user_lengths,
        item_lengths=item_lengths,
    )
    cluster = Cluster(
        machines=machines,
        shards=shards,
        network=network,
        deterministic=deterministic,
        **(speeds or {}),  # type: ignore[arg-type]
    )
    return simulate(work, cluster, routes=routes)


def solver_of(config: "FactorConfig") -> "Solver":
    """Name the way to fit that the hyper-parameters ask for.

    Examples
    --------
    >>> from limelight.models.exadmm import ExADMMConfig
    >>> solver_of(ExADMMConfig()), solver_of(ExADMMConfig(penalty=1.0))
    ('exact', 'admm')
    """
    from limelight.models.exadmm import ExADMMConfig

    if config.row_solver != "cholesky":
        message = f"only exact row solves can be predicted: row_solver={config.row_solver!r}"
        raise ConfigError(message, hint="use row_solver='cholesky'")
    if not isinstance(config, ExADMMConfig):
        return "ials"
    return "exact" if config.is_exact else "admm"
