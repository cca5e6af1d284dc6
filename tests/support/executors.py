"""An executor that sends everything as a cluster would, without one."""

from __future__ import annotations

import pickle


class Elsewhere:
    """Does pieces in turn, as another process would: copies go to and fro, which nobody writes to.

    The arrays that a cluster hands out are shared, so they are read-only.
    """

    parallel = True

    def map(self, work, pieces, total=None):
        del total
        for piece in pieces:
            yield sent(sent(work)(sent(piece)))


def sent(value):
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])
