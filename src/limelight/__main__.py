"""Run the command line with ``python -m limelight``."""

from __future__ import annotations

from limelight.cli import main

if __name__ == "__main__":
    main()
