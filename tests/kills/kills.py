"""Kills commands at random moments, again and again, and looks at what is left.

Each chain starts a command in an empty folder and kills it with SIGKILL at a random moment, then
starts it again with ``--resume`` and kills it again, and in the end lets it finish. After every
kill each file that can be seen must be whole; what the last run leaves must be, bit for bit, what
a run leaves that nobody disturbed.

    python -m tests.kills.kills --kills 1000

Commands run in forks of one process that has imported everything, so that kills hit the work and
not the imports.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import limelight as ll
from limelight.cli import main
from limelight.store.arrays import load_arrays

LONGEST_CHAIN = 8
CHANGING = {"seconds", "wall_seconds", "cost", "Took", "Time", "Command"}
"""What tells of time: the only values in which two runs may differ."""


def jobs(folder):
    """Make the data and return the commands, each with the output that it names."""
    market = ll.marketplace(20_000, 300, 200_000, seed=5)
    split = ll.split_users(market.interactions, validation=300, test=300)
    split.save(folder / "split")
    ll.IALS(factors=16, epochs=4).fit(split.train).save(folder / "given")
    small = ll.marketplace(2000, 120, 30_000, seed=6).interactions
    ll.IALS(factors=8, epochs=4).fit(small).save(folder / "small")
    often, epochs = ["--checkpoint-every", "0"], ["--epochs", "12", "--tolerance", "0"]
    return {
        "fit": ["fit", folder / "split", *epochs, "--factors", "16", *often, "-o", "out"],
        "recommend": ["recommend", folder / "given", "-k", "10", *often, "-o", "out.parquet"],
        "rerank": ["rerank", folder / "small", "--gini", "0.25", "-k", "10", "-o", "out"],
        "frontier": [
            "frontier", folder / "split", "--points", "4", "--factors", "8", "--epochs", "6",
            "-o", "out",
        ],
    }  # fmt: skip


def start(arguments, folder):
    """Run a command in a fork."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    sink = os.open("../log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    code = 70
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def finish(arguments, folder):
    """Run a command to its end; returns how long it took."""
    started = time.perf_counter()
    _, status = os.waitpid(start(arguments, folder), 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{arguments[0]} failed:\n{(folder.parent / 'log').read_text()}")
    return time.perf_counter() - started


def kill_within(arguments, folder, seconds, chance):
    """Kill a command at a random moment; tells whether it still ran."""
    child = start(arguments, folder)
    time.sleep(chance.uniform(0, seconds))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def contents(folder):
    """Read everything that can be seen, which finds what is not whole; times are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or any(part.startswith(".") for part in Path(name).parts):
            continue
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            kept = [column for column in table.column_names if column not in CHANGING]
            found[name] = table.select(kept).to_pydict()
        elif path.suffix == ".safetensors":
            arrays = load_arrays(path).items()
            found[name] = {key: a.tobytes() for key, a in arrays if not key.endswith("seconds")}
        elif path.suffix == ".json":
            found[name] = timeless(json.loads(path.read_text()))
        elif path.suffix == ".png":
            if not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
                raise SystemExit(f"half a picture: {path}")
        else:
            raise SystemExit(f"an unknown file: {path}")
    return found


def timeless(value):
    if isinstance(value, dict):
        return {
            key: timeless(entry) for key, entry in value.items() if key not in CHANGING | {"cost"}
        }
    return [timeless(entry) for entry in value] if isinstance(value, list) else value


def chain(name, arguments, expected, seconds, chance, place):
    """Kill a command several times, let it finish, and compare; returns the number of kills."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kills, resume = 0, []
    for _ in range(chance.randint(1, LONGEST_CHAIN)):
        kills += kill_within([*arguments, *resume], folder, seconds, chance)
        contents(folder)
        resume = ["--resume"]
    finish([*arguments, "--resume"], folder)
    left = [path.name for path in folder.rglob(".*")]
    if left:
        raise SystemExit(f"{name} left behind: {left}")
    found = contents(folder)
    if found != expected:
        different = [
            key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)
        ]
        raise SystemExit(f"{name} went on to something else: {different}")
    return kills


def run(wanted, seed, tell=print):
    """Kill commands so many times in all; returns the kills of each."""
    chance = random.Random(seed)
    counts, chains = Counter(), Counter()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        commands = jobs(place)
        known = {}
        for name, arguments in commands.items():
            (place / name).mkdir()
            finish(arguments, place / name)  # once to warm up
            shutil.rmtree(place / name)
            (place / name).mkdir()
            seconds = finish(arguments, place / name)
            known[name] = contents(place / name), seconds
            tell(f"{name}: {seconds:.2f} s undisturbed")
        while sum(counts.values()) < wanted:
            name = min(commands, key=lambda one: counts[one])
            expected, seconds = known[name]
            counts[name] += chain(name, commands[name], expected, 1.1 * seconds, chance, place)
            chains[name] += 1
            if sum(chains.values()) % 20 == 0:
                tell(f"{sum(counts.values())} kills: {dict(counts)}")
    tell(
        f"{sum(counts.values())} kills ({dict(counts)}), {sum(chains.values())} resumed runs, "
        "every file whole, every result bit-identical"
    )
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    np.seterr(all="ignore")
    sys.stdout.reconfigure(line_buffering=True)
    run(given.kills, given.seed)
