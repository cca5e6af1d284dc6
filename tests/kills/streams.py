"""Kills processes that serve a stream at random moments, and looks at the state of its model.

Users are served part after part. Each part is killed a few times before it may finish. After every
kill the state must be whole: either that of before the part, or that of after it. A part that is
served again gets the lists that it had. What is left in the end must be, bit for bit, what a stream
leaves that nobody disturbed.

    python -m tests.kills.streams --kills 200
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from tests.kills.kills import finish, kill_within

import limelight as ll
from limelight.store.arrays import load_arrays

K, N_USERS, PARTS = 10, 3000, 4


def make(place):
    """Fit a stream, and draw the parts that its users are served in."""
    data = ll.marketplace(N_USERS, 150, 45_000, seed=8).interactions
    model = ll.IALS(factors=8, epochs=4, num_threads=1)
    fitted = ll.fit_to(data, gini=0.4, at=K, model=model, serve="stream", show_progress=False)
    fitted.model.save(place / "given")
    users = np.random.default_rng(0).permutation(fitted.model.user_ids)
    for number, part in enumerate(np.array_split(users, PARTS)):
        table = "\n".join(["user_id", *map(str, part.tolist())])
        (place / f"part-{number}.csv").write_text(table + "\n")


def command(place, number):
    users = place / f"part-{number}.csv"
    return ["recommend", "model", "-k", K, "--users", users, "--threads", 1, "-o", "lists.parquet"]


def state(folder):
    """Read the state; fails unless it is whole."""
    loaded = ll.load(folder / "model")
    arrays = load_arrays(folder / "model" / "control.safetensors")
    n_served = int((loaded.lists.ids[:, 0] >= 0).sum())
    return {name: values.tobytes() for name, values in arrays.items()}, n_served


def undisturbed(place):
    """Serve all parts; returns the state and the lists after each, and how long the last took."""
    folder = place / "undisturbed"
    folder.mkdir()
    shutil.copytree(place / "given", folder / "model")
    states, lists, seconds = [state(folder)], [], 0.0
    for number in range(PARTS):
        seconds = finish(command(place, number), folder)
        states.append(state(folder))
        lists.append(pq.read_table(folder / "lists.parquet"))
        assert states[-1][1] == (number + 1) * N_USERS // PARTS
    return states, lists, seconds


def disturbed(place, states, lists, seconds, chance):
    """Serve all parts, each killed a few times; tells of every kill whether the state was there."""
    folder, file = place / "work", place / "work" / "lists.parquet"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(place / "given", folder / "model")
    for number in range(PARTS):
        before, after = states[number : number + 2]
        for _ in range(chance.randint(1, 3)):
            file.unlink(missing_ok=True)
            was_before = state(folder) == before
            if not kill_within(command(place, number), folder, 1.2 * seconds, chance):
                continue
            found = state(folder)
            if found not in (before, after):
                raise SystemExit(f"part {number} left a state that nobody wrote")
            if was_before and found == after and not file.exists():
                raise SystemExit("the state counts lists that are not there")
            if file.exists() and not pq.read_table(file).equals(lists[number]):
                raise SystemExit(f"part {number} got other lists")
            yield found == after
        finish(command(place, number), folder)
        if state(folder) != after:
            raise SystemExit(f"part {number} went on to another state")
        if not pq.read_table(file).equals(lists[number]):
            raise SystemExit(f"part {number} got other lists in the end")
    left = [path.name for path in folder.rglob(".*")]
    if left:
        raise SystemExit(f"left behind: {left}")


def run(wanted, seed, tell=print):
    """Kill processes so many times; returns how many kills came before and after the state."""
    chance = random.Random(seed)
    counts = {"before": 0, "after": 0}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        make(place)
        states, lists, seconds = undisturbed(place)
        tell(f"a part takes {seconds:.2f} s undisturbed")
        while sum(counts.values()) < wanted:
            for is_after in disturbed(place, states, lists, seconds, chance):
                counts["after" if is_after else "before"] += 1
    tell(f"{sum(counts.values())} kills ({counts}), every state whole, every list the same")
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    run(given.kills, given.seed)
