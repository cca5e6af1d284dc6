"""Requests that are answered live, at a target that holds for what is shown."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from limelight.serve.control import RequestControl
from limelight.serve.engine import Engine
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.requests import Answer, Request

if TYPE_CHECKING:
    from limelight.serve.export.export import IndexOptions, export_model
    from limelight.serve.http.settings import ServeSettings
    from limelight.serve.service import create_app

__all__ = [
    "Answer",
    "Engine",
    "IndexOptions",
    "Ledger",
    "Request",
    "RequestControl",
    "ServeSettings",
    "create_app",
    "export_model",
]

# Loaded when first used: the engine needs no web server, and no reader of other libraries' files.
_MODULE_OF = {
    "IndexOptions": "export.export",
    "ServeSettings": "http.settings",
    "create_app": "service",
    "export_model": "export.export",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _MODULE_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
