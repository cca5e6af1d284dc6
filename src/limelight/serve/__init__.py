"""Requests that are answered live, at a target that holds for what is shown."""

from limelight.serve.control import RequestControl
from limelight.serve.engine import Engine
from limelight.serve.ledger import Ledger
from limelight.serve.requests import Answer, Request

__all__ = ["Answer", "Engine", "Ledger", "Request", "RequestControl"]
