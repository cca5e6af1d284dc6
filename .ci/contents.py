"""Check what is in the wheel and in the source distribution: all that belongs, nothing else.

python .ci/contents.py dist/
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

LICENCES = ("LICENSE", "charts.LICENSE.txt", "nanobind.txt", "robin-map.txt")
WHEEL = re.compile(
    r"limelight/.+\.(py|pyi|so|js|css|html|txt)|limelight/py\.typed|[^/]+\.dist-info/.+"
)
SDIST = re.compile(
    r"(src/limelight|native|requirements)/.+"
    r"|CMakeLists\.txt|Makefile|pyproject\.toml|PKG-INFO|LICENSE|[A-Z_]+\.(md|cff)|page/.+"
)


def strangers(names: list[str], allowed: re.Pattern[str]) -> list[str]:
    """Return the files that have no business there.

    >>> strangers(["limelight/__init__.py", "tests/test_a.py", "limelight/data.csv"], WHEEL)
    ['tests/test_a.py', 'limelight/data.csv']
    """
    return [name for name in names if not allowed.fullmatch(name) or "__pycache__" in name]


def missing(names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return the files that should be there under whatever folder.

    >>> missing(["a.dist-info/licenses/LICENSE"], ("LICENSE", "nanobind.txt"))
    ['nanobind.txt']
    """
    return [file for file in wanted if not any(Path(name).name == file for name in names)]


def complaints(folder: Path) -> list[str]:
    """Return all that is wrong with the one wheel and the one source distribution of a folder."""
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(sdist) as archive:
        entries = [entry.name for entry in archive.getmembers() if entry.isfile()]
    in_sdist = [name.partition("/")[2] for name in entries]
    return [
        *(f"{wheel.name} has what it should not: {name}" for name in strangers(in_wheel, WHEEL)),
        *(f"{sdist.name} has what it should not: {name}" for name in strangers(in_sdist, SDIST)),
        *(f"{wheel.name} lacks {name}" for name in missing(in_wheel, (*LICENCES, "py.typed"))),
        *(f"{sdist.name} lacks {name}" for name in missing(in_sdist, (*LICENCES, "README.md"))),
    ]


if __name__ == "__main__":
    sys.exit("\n".join(complaints(Path(sys.argv[1]))) or 0)
