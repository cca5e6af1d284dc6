"""A table of ids is a dictionary whatever is asked of it in between, also after a refusal."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.examples import examples

from limelight._native import kernels

IDS = st.lists(st.lists(st.sampled_from([0, 1, 255]), max_size=18).map(bytes), max_size=30)


class Table(RuleBasedStateMachine):
    """A table beside the dictionary that it stands for."""

    def __init__(self):
        super().__init__()
        self.table, self.twin = kernels.IdTable(), {}

    @rule(ids=IDS)
    def encode(self, ids):
        codes = np.empty(len(ids), dtype=np.int32)
        content = np.frombuffer(b"".join(ids), dtype=np.uint8)
        self.table.encode(np.cumsum([0, *map(len, ids)]), content, codes)
        assert codes.tolist() == [self.twin.setdefault(one, len(self.twin)) for one in ids]

    @rule(end=st.sampled_from([-1, 9, 2**62]))
    def refuse(self, end):
        with pytest.raises(ValueError, match="offsets"):
            self.table.encode(np.array([0, end]), np.zeros(3, np.uint8), np.empty(1, np.int32))

    @invariant()
    def holds_every_id_once(self):
        offsets, content = self.table.ids()
        ids = [content[start:stop].tobytes() for start, stop in pairwise(offsets)]
        assert ids == list(self.twin)
        assert [ids[code] for code in self.table.ascending()] == sorted(ids)


TestTable = Table.TestCase
TestTable.settings = examples(40, stateful_step_count=10)
