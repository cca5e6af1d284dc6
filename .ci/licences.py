"""The licences of all that limelight needs or carries, from what is installed, as THIRD_PARTY.md.

python .ci/licences.py          write THIRD_PARTY.md
python .ci/licences.py --check  fail if the run-time needs a licence that is not permissive
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "THIRD_PARTY.md"
EXTRAS = ("plot", "neural", "tune", "ray", "serve", "export")
PERMISSIVE = re.compile(
    r"\(?(0BSD|Apache|BSD|CC0|HPND|ISC|MIT|PSF|Python Software|Unlicense|Zlib)\b",
    re.IGNORECASE,
)
CARRIED = [
    ("Apache ECharts", "Apache-2.0", "src/limelight/report/template/charts.LICENSE.txt"),
    ("ZRender", "BSD-3-Clause", "src/limelight/report/template/charts.LICENSE.txt"),
    ("tslib", "0BSD", "src/limelight/report/template/charts.LICENSE.txt"),
    ("nanobind", "BSD-3-Clause", "native/licences/nanobind.txt"),
    ("robin-map", "MIT", "native/licences/robin-map.txt"),
]
"""What is inside the package itself, and where its terms are."""
TOP = """# What limelight needs and carries

`make licences` writes this page from the metadata of what is installed. limelight itself is under
Apache-2.0. All that it needs at run time has a permissive licence; a test keeps it so.

Wheels of NumPy and SciPy carry OpenBLAS (BSD-3-Clause) and the run-time libraries of GCC (GPL-3.0
with the GCC runtime library exception, which allows their use in programs under any licence); their
own licence files say more.
"""


def licence_of(name: str) -> str:
    """Return the licence of an installed package as it is declared: the expression comes first."""
    about = distribution(name).metadata
    declared = about.get("License-Expression")
    if declared:
        return str(declared)
    prefix = "License :: OSI Approved :: "
    classified = [
        entry.removeprefix(prefix)
        for entry in about.get_all("Classifier") or []
        if entry.startswith(prefix)
    ]
    if classified:
        return " AND ".join(classified)
    # Some packages put the whole text there, of which the first line is the name.
    return (about.get("License") or "").strip().partition("\n")[0] or "not declared"


def is_permissive(licence: str) -> bool:
    """Tell whether every part of a licence expression is permissive; of "A OR B" one is enough.

    >>> is_permissive("BSD-3-Clause AND (GPL-3.0-only OR MIT)")
    True
    >>> is_permissive("MIT AND LGPL-2.1-only")
    False
    """
    return all(
        any(PERMISSIVE.match(choice.strip()) for choice in part.split(" OR "))
        for part in licence.split(" AND ")
    )


def needs(extra: str | None = None) -> set[str]:
    """Return all that limelight needs, directly or not; what is not installed is left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = project["dependencies"] + project["optional-dependencies"].get(extra, [])
    found: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in found and _installed(name):
            found.add(name)
            waiting += _asked_for(name, requirement.extras)
    return found


def _asked_for(name: str, extras: set[str]) -> list[str]:
    """Return what a package asks for on this system, with some of its extras."""
    markers = [(text, Requirement(text).marker) for text in requires(name) or ()]
    return [
        text
        for text, marker in markers
        if not marker or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def page() -> str:
    """Return THIRD_PARTY.md."""
    core = needs()
    lines = [TOP, "## At run time", *_table([(name, licence_of(name)) for name in sorted(core)])]
    for extra in EXTRAS:
        more = sorted(needs(extra) - core)
        lines += ["", f"## With the extra `{extra}`"]
        lines += _table([(name, licence_of(name)) for name in more])
    lines += ["", "## Inside the package", *_table(CARRIED, "package", "licence", "terms")]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]], *heads: str) -> list[str]:
    heads = heads or ("package", "licence")
    cells = [heads, ("---",) * len(heads), *rows]
    return ["", *(f"| {' | '.join(row)} |" for row in cells)]


def refused() -> list[str]:
    """Return what is needed at run time and is not permissive."""
    licences = {name: licence_of(name) for name in sorted(needs())}
    return [f"{name}: {text}" for name, text in licences.items() if not is_permissive(text)]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(refused()) or 0)
    PAGE.write_text(page(), encoding="utf-8")
