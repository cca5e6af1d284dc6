"""Pieces on a real cluster, two at a time; what is computed is tested without one."""

import os
import signal

import numpy as np
import pytest

import limelight as ll
from limelight._base.errors import DataError, LimelightError
from limelight.jobs import recommend

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def pieces(cluster):
    from limelight.cluster.ray.executor import RayExecutor

    return RayExecutor(workers=2)


class Square:
    name = "square"

    def __call__(self, piece):
        return piece * piece


class DieOnce:
    """Dies at its first piece, as if the machine had run out of memory."""

    name = "die once"

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, piece):
        seen = self.folder / f"{piece}"
        if not seen.exists():
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return piece


class DieAlways:
    name = "die always"

    def __call__(self, piece):
        os.kill(os.getpid(), signal.SIGKILL)


class Refuse:
    name = "refuse"

    def __call__(self, piece):
        message = f"no such piece: {piece}"
        raise DataError(message, hint="take another") from OSError(28, "No space left on device")


def test_results_come_in_order(pieces):
    assert list(pieces.map(Square(), range(20), 20)) == [n * n for n in range(20)]


def test_a_piece_whose_worker_is_lost_is_done_again(pieces, tmp_path):
    assert list(pieces.map(DieOnce(tmp_path), [1, 2])) == [1, 2]


def test_a_piece_that_kills_all_its_workers_ends_the_work(pieces):
    with pytest.raises(
        LimelightError, match="workers were lost 4 times at 'die always 0'"
    ) as error:
        list(pieces.map(DieAlways(), [1]))
    assert isinstance(error.value.__cause__, OSError)  # so commands keep what is finished


def test_our_errors_come_back_as_themselves(pieces):
    with pytest.raises(DataError) as error:
        list(pieces.map(Refuse(), [7]))
    assert (error.value.message, error.value.hint) == ("no such piece: 7", "take another")
    assert error.value.__cause__.errno == 28


def test_lists_are_those_of_one_machine(pieces, tmp_path):
    model = ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 60, 4000).interactions)
    model.save(tmp_path / "model")
    recommend(tmp_path / "model", tmp_path / "lists", k=5, executor=pieces, per_piece=50)
    found = ll.audit(tmp_path / "lists", catalogue=model.item_ids)
    wanted = ll.exposure(model.recommend(k=5)[0], len(model.item_ids))
    np.testing.assert_allclose(found.exposure, wanted, rtol=1e-14)
