"""JAX and optax are an extra: they are imported where they compute, and asked for first."""

from __future__ import annotations

from limelight._errors import ConfigError


def require_jax() -> None:
    """Say how to install JAX, where it is missing."""
    try:
        import jax
        import optax
    except ImportError as error:
        message = f"neural models need JAX and optax: {error}"
        raise ConfigError(message, hint="pip install 'limelight[neural]'") from error
    del jax, optax
