"""A disk of a few megabytes that nobody else sees: it can be filled, made read-only, taken away.

It lives in a mount namespace of its own, so nothing is left of it when its process ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.commands import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

MEGABYTES = 20
_BALLAST = "ballast"
_PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


class SmallDisk:
    """A mounted disk.

    Parameters
    ----------
    place
        The folder where the commands see it.
    holder
        The process that keeps it mounted.
    """

    def __init__(self, place: Path, holder: int) -> None:
        self.place = place
        # The same folder for this process, which is outside: through the eyes of the holder.
        self.seen = Path(f"/proc/{holder}/root") / place.relative_to("/")
        self._enter = ["nsenter", f"--target={holder}", "--mount"]
        if os.geteuid():
            self._enter += ["--user", "--preserve-credentials"]

    def limelight(self, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run limelight, as a process of its own that sees the disk."""
        return self.run(sys.executable, "-m", "limelight", *arguments, **variables)

    def run(self, *command: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run any command that sees the disk, to its end."""
        with self.start(*command, **variables) as process:
            out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def start(self, *command: object, **variables: str) -> subprocess.Popen[str]:
        """Start any command that sees the disk."""
        words = [*self._enter, *map(str, command)]
        return subprocess.Popen(words, env=environment(**variables), text=True, **_PIPES)

    def files(self) -> dict[str, bytes]:
        """Read all that is on the disk, but for the ballast and what `--resume` goes on from."""
        found = sorted(file for file in self.seen.rglob("*") if file.is_file())
        return {
            str(file.relative_to(self.seen)): file.read_bytes()
            for file in found
            if file.name != _BALLAST and ".checkpoint" not in str(file.parent)
        }

    def put(self, folder: Path) -> None:
        """Copy all of a folder to the disk."""
        shutil.copytree(folder, self.seen, dirs_exist_ok=True)

    def fill(self, *, leave: int) -> None:
        """Fill the disk but for some bytes."""
        self.relieve()
        state = os.statvfs(self.seen)
        size = max(state.f_bavail * state.f_frsize - leave, 0)
        with (self.seen / _BALLAST).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))

    def relieve(self) -> None:
        """Give the space back."""
        (self.seen / _BALLAST).unlink(missing_ok=True)

    def lock(self) -> None:
        """Let nobody write from now on."""
        self.run("mount", "-o", "remount,bind,ro", self.place).check_returncode()

    def vanish(self) -> None:
        """Take the disk away, also from those who are at it."""
        self.run("umount", "--lazy", self.place).check_returncode()


@contextmanager
def small_disk(place: Path) -> Iterator[SmallDisk | str]:
    """Mount a disk for a while; gives the reason where that is not allowed."""
    script = f'mount -t tmpfs -o size={MEGABYTES}m limelight "$0" && echo ready && exec cat'
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--mount", "--propagation=private", "sh", "-c", script, str(place)]
    try:
        holder = subprocess.Popen(command, text=True, **_PIPES)
    except FileNotFoundError:
        yield "this system has no unshare"
        return
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() == "ready\n":
            yield SmallDisk(place, holder.pid)
        else:
            yield f"this system does not let us mount a disk: {holder.stderr.read().strip()}"
        holder.stdin.close()
