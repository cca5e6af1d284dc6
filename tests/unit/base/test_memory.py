from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limelight import ConfigError, MemoryLimitError
from limelight._base.memory import limit, parse_size, peak, require, resident, room

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30


def machine(root: Path, free: int, groups: str = "") -> Path:
    """Make the folders of a system with so much free memory, and a process in some groups."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {free // 1024} kB\n")
    (root / "proc" / "self" / "cgroup").write_text(groups)
    return root


def second(root: Path, path: str, most: int | str, taken: int, cache: int = 0) -> None:
    folder = root / "sys" / "fs" / "cgroup" / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{taken}\n")
    (folder / "memory.stat").write_text(f"anon 5\nactive_file 0\ninactive_file {cache}\n")


def first(root: Path, path: str, most: int, taken: int, cache: int = 0) -> None:
    folder = root / "sys" / "fs" / "cgroup" / "memory" / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{most}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{taken}\n")
    (folder / "memory.stat").write_text(f"cache 9\ntotal_active_file {cache}\n")


def test_the_machine_alone(tmp_path: Path) -> None:
    assert room(machine(tmp_path, 2 * GIB)) == 2 * GIB


def test_a_control_group_leaves_less(tmp_path: Path) -> None:
    root = machine(tmp_path, 2 * GIB, "0::/\n")
    second(root, "", most=3000, taken=1000, cache=400)
    assert room(root) == 2400  # what is taken for files is given back


def test_a_group_around_the_own_one_counts(tmp_path: Path) -> None:
    root = machine(tmp_path, 2 * GIB, "1:cpu:/x\n0::/jobs/night\n")
    second(root, "jobs/night", most="max", taken=1000)
    second(root, "jobs", most=5000, taken=1000)
    assert room(root) == 4000


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    root = machine(tmp_path, 2 * GIB, "4:memory:/jobs/night\n0::/\n")
    first(root, "jobs/night", most=9000, taken=8000, cache=500)
    first(root, "", most=1 << 62, taken=8000)
    assert room(root) == 1500


def test_a_group_that_is_not_to_be_seen_from_here(tmp_path: Path) -> None:
    root = machine(tmp_path, 2 * GIB, "4:memory:/docker/1234\n")
    first(root, "", most=7000, taken=1000)
    assert room(root) == 6000


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    root = machine(tmp_path, 2 * GIB, "0::/\n")
    second(root, "", most=1000, taken=3000)
    assert room(root) == 0
    assert limit(root) == pytest.approx(resident(), rel=0.1)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("8GiB", 8 * GIB), ("500m", 500 << 20), ("1.5 GB", 3 * GIB // 2), ("7", 7)],
)
def test_sizes_as_people_write_them(text: str, n_bytes: int) -> None:
    assert parse_size(text) == n_bytes


def test_who_knows_better_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_MEMORY", "3GiB")
    assert limit() == 3 * GIB
    assert require(2 * GIB, "the fit", hint="less") == 3 * GIB
    with pytest.raises(MemoryLimitError, match=r"takes about 4.0 GiB of memory.* 3.0 GiB") as error:
        require(4 * GIB, "the fit", hint="use fewer factors")
    assert str(error.value.hint).startswith("use fewer factors; ")
    monkeypatch.setenv("LIMELIGHT_MEMORY", "plenty")
    with pytest.raises(ConfigError, match=r"LIMELIGHT_MEMORY must be a size .* 'plenty'"):
        limit()


def test_a_peak_is_seen() -> None:
    before = resident()
    held = b"x" * (64 << 20)
    assert resident() > before + (60 << 20)
    del held
    assert peak() > before + (60 << 20)
