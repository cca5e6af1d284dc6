"""A fit of a network that was interrupted goes on to the same bits."""

import os
import signal

import numpy as np
import pytest

import limelight as ll


def stop_after_two(epoch, _):
    if epoch == 2:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("kind", ["MultVAE", "MultiFR"])
def test_a_network_goes_on_to_the_same_bits(kind, tmp_path):
    data = ll.marketplace(300, 60, 4000).interactions
    settings = {"epochs": 4, "latent": 4, "batch_size": 64}
    make = getattr(ll, kind)
    whole = make(**settings).fit(data, show_progress=False)
    place = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        make(**settings).fit(data, checkpoint=place, callback=stop_after_two, show_progress=False)
    again = make(**settings).fit(data, checkpoint=place, show_progress=False)
    for array, values in whole.learned.arrays.items():
        np.testing.assert_array_equal(again.learned.arrays[array], values)
    assert [r.ndcg for r in again.trace_] == [r.ndcg for r in whole.trace_]
