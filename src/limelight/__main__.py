"""Run the command line with ``python -m limelight``."""

from __future__ import annotations

from limelight.cli import console

if __name__ == "__main__":
    console()
