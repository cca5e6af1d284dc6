"""Ask the advisory services about everything that is pinned, with pip-audit.

A known vulnerability fails. A service that cannot be reached does not, but is never taken for good
news: pip-audit itself says "no known vulnerabilities" where it could not ask at all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINNED = sorted((Path(__file__).parents[1] / "requirements").glob("*.txt"))
SERVICES = ("pypi", "osv")


def ask(service: str) -> list[dict[str, Any]] | str:
    """Return what a service says of each package, or why it says nothing."""
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--timeout=15"]
    command += [f"--vulnerability-service={service}", "--format=json", "--progress-spinner=off"]
    for file in PINNED:
        command += ["--requirement", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError):
        return ended.stderr.strip().rpartition("\n")[2]
    return found


def verdict(answers: dict[str, list[dict[str, Any]] | str]) -> tuple[int, list[str]]:
    """Return the exit code and what to say.

    >>> verdict({"pypi": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]})
    (1, ['a 1 is vulnerable: CVE-1'])
    >>> verdict({"pypi": [{"name": "a", "skip_reason": "not found"}], "osv": "no route to host"})
    (0, ['NOT AUDITED by pypi: 1 of 1 packages, such as a: not found',
         'NOT AUDITED by osv: no route to host'])
    """
    bad, unknown = set(), []
    for service, answer in answers.items():
        if isinstance(answer, str):
            unknown.append(f"NOT AUDITED by {service}: {answer}")
            continue
        skipped = [one for one in answer if "skip_reason" in one]
        if skipped:
            example = f"{skipped[0]['name']}: {skipped[0]['skip_reason']}"
            count = f"{len(skipped)} of {len(answer)} packages"
            unknown.append(f"NOT AUDITED by {service}: {count}, such as {example}")
        bad |= {
            f"{one['name']} {one['version']} is vulnerable: {vulnerability['id']}"
            for one in answer
            for vulnerability in one.get("vulns", ())
        }
    # One service that knows everything is enough.
    if not bad and len(unknown) < len(answers):
        return 0, ["no known vulnerabilities in what is pinned"]
    return int(bool(bad)), [*sorted(bad), *unknown]


if __name__ == "__main__":
    code, lines = verdict({service: ask(service) for service in SERVICES})
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(code)
