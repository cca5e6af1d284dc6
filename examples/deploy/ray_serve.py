"""limelight on Ray Serve: replicas of the same application, which share one ledger.

LIMELIGHT_MODEL=run/model LIMELIGHT_LEDGER=redis://localhost:6379/0 \
    serve run --app-dir examples/deploy ray_serve:lists
"""

import os

from ray import serve


def application():
    """Make the application, in every replica once."""
    from limelight.serve import ServeSettings, create_app

    return create_app(
        ServeSettings(
            models={"model": os.environ["LIMELIGHT_MODEL"]},
            ledger=os.environ["LIMELIGHT_LEDGER"],
            target={"gini": 0.6},
            window=7 * 86_400.0,
        )
    )


lists = serve.deployment(serve.ingress(application)()).options(num_replicas=2).bind()
