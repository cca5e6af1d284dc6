"""What a fit on a cluster would move, hold and take, from its size alone.

Nothing is run and nothing is allocated. The sums are those of the exchange that a fit uses
(:mod:`limelight.scale.traffic`); seconds are as good as the speeds they are worked out from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.scale.footprint import footprint
from limelight.scale.forecast import Forecast
from limelight.scale.phases import phases
from limelight.scale.traffic import expected_routes, traffic

if TYPE_CHECKING:
    from limelight._arrays import Int64
    from limelight.scale.workload import Cluster, Workload


def simulate(work: Workload, cluster: Cluster, *, routes: Int64 | None = None) -> Forecast:
    """Predict the traffic, the memory and the time of a fit.

    Parameters
    ----------
    work
        What is to be fitted.
    cluster
        On what.
    routes
        How many rows of users each machine sends to each other one, as
        :func:`limelight.scale.traffic.count_routes` counts them in a data set. Without it, users'
        items are taken to lie on machines at random.

    Examples
    --------
    >>> from limelight.scale.workload import Cluster, Workload
    >>> work = Workload(n_users=10**8, n_items=10**7, n_interactions=10**10, factors=128)
    >>> forecast = simulate(work, Cluster(machines=64, network=25))
    >>> round(forecast.traffic["exchange_rows"].total / 1e12, 2)
    2.56
    """
    ways = expected_routes(work, cluster) if routes is None else routes
    loads = traffic(work, cluster, ways)
    return Forecast(
        work, cluster, loads, footprint(work, cluster, ways), phases(work, cluster, loads)
    )
