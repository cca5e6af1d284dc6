"""Ray is an extra: it is imported where it is used, and asked for first."""

from __future__ import annotations

from limelight._errors import ConfigError


def require_ray() -> None:
    """Say how to install Ray, where it is missing."""
    try:
        import ray
    except ImportError as error:
        message = f"work on a cluster needs Ray: {error}"
        raise ConfigError(message, hint="pip install 'limelight[ray]'") from error
    del ray
