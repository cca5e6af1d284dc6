"""Lanes of tests, workers with a core of their own, and where real data are looked for.

A lane is a folder of `tests`, and nothing else decides: what a test needs to run says where it
lives. ``pytest -m unit`` runs one lane, ``make test`` all but ``memory``.
"""

import os
import signal
from pathlib import Path

from tests.support.places import ROOT, SHARED

LANES = {
    "ray": "starts a Ray cluster",
    "browser": "looks at pages in Chromium",
    "kills": "kills commands at random moments",
    "reliability": "fails or kills commands at their system calls",
    "docs": "runs the code of README and guide",
    "disk": "mounts a small disk",
    "process": "starts processes",
    "neural": "compiles networks with JAX",
    "runs": "whole runs of commands, from data to lists, pages and figures",
    "memory": "counts or bounds the memory of a process, so nothing else may take any",
    "unit": "needs nothing but this process: the inner loop; examples in docstrings, too",
}
"""In the order in which they begin: those that wait for other processes leave a core to others."""
TOGETHER = {"ray", "browser"}
"""Lanes of one cluster and one browser: a single worker runs each of them."""


def keep_to_one_core():
    """Give a worker of pytest-xdist a core: two that use all cores would be slower than one."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if worker and cores:
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


# Before NumPy is imported, whose threads are counted then.
keep_to_one_core()
# A shell lets what it starts in the background ignore Ctrl-C, which tests of interrupts send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A network that was compiled once is compiled, for this run and for the next.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / "build" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import limelight as ll  # noqa: E402

pytest_plugins = [
    "tests.support.bench",
    "tests.support.commands",
    "tests.support.reproduction",
    "tests.support.tables",
]

# How many examples a property is tried with, in percent; see tests.support.examples. A test never
# asserts a time: a busy machine is slow, not wrong.
for profile, percent in {"dev": 10, "gate": 100, "soak": 2000}.items():
    settings.register_profile(profile, deadline=None, max_examples=percent)
settings.load_profile("gate")


def lane_of(item):
    """Return the lane of a test: its folder of `tests`; an example's is unit, or its package's."""
    if item.path.is_relative_to(ROOT / "tests"):
        lane = item.path.relative_to(ROOT / "tests").parts[0]
        if lane not in LANES:
            message = f"tests/{lane} is no lane: choose one of {', '.join(LANES)}"
            raise pytest.UsageError(message)
        return lane
    folders = item.path.relative_to(Path(ll.__file__).parent).parts
    return next((folder for folder in folders if folder in LANES), "unit")


def pytest_configure(config):
    for lane, meaning in LANES.items():
        config.addinivalue_line("markers", f"{lane}: {meaning}")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    lanes = {item: lane_of(item) for item in items}
    for item, lane in lanes.items():
        item.add_marker(lane)
    yield  # pytest-randomly shuffles
    items.sort(key=lambda item: list(LANES).index(lanes[item]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give a worker a file at a time, so that its fixtures are made once, in the order above."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return next((lane for lane in TOGETHER if file.startswith(f"tests/{lane}/")), file)

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.fixture(scope="session")
def golden():
    """A 70 x 45 problem and every solver's answer, by an independent implementation."""
    path = SHARED / "golden" / "small.npz"
    if not path.exists():
        pytest.skip(
            f"the stored answers are not at {path}; LIMELIGHT_SHARED may say where they are"
        )
    with np.load(path) as stored:
        return dict(stored)


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets."""
    folder = SHARED / "data"
    if not (folder / "epinions_raw.parquet").is_file():
        pytest.skip(f"real data are not at {folder}; LIMELIGHT_SHARED may say where they are")
    return folder


@pytest.fixture(scope="session")
def epinions(real_data):
    """The paper's Epinions split."""
    path = real_data / "epinions_raw.parquet"
    data = ll.read(path, rating="rating", min_rating=4, min_user=20, min_item=20)
    return ll.split_users(data, validation=500, test=500, seed=98765)
