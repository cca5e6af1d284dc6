"""``limelight recommend --executor ray``: lists in pieces, a part of a folder for each."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight.cli.flags import Reading
from limelight.cli.frame import Executor
from limelight.cli.recommend import note_unknown, refuse_without_history

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight.data import Interactions
    from limelight.store.checkpoint import Checkpoint


@dataclass(frozen=True)
class PiecewiseLists:
    """What is asked of workers."""

    folder: Path
    k: int
    threads: int | None
    keep_seen: bool

    def check(self, output: Path | None, user_id: list[str] | None) -> Path:
        """Refuse what pieces cannot do; return the folder for their parts."""
        if user_id:
            message = f"--executor ray is for many users, not for one: {user_id[0]}"
            raise ConfigError(message, hint="leave --executor out")
        if output is None or output.suffix:
            message = f"--executor ray writes a folder of parts: {output or 'no -o was given'}"
            raise ConfigError(message, hint="name a folder: -o lists/")
        return output

    def write(
        self,
        output: Path,
        where: Executor,
        kept: "Checkpoint",
        history: Path | None,
        reading: Reading,
    ) -> dict[str, Any]:
        """Let workers make the lists; return what there is to say of them."""
        from limelight.jobs.recommend import recommend
        from limelight.jobs.service import Service, refuse_together
        from limelight.rerank.folder import open_light
        from limelight.store.model_folder import SEEN

        found = open_light(self.folder)
        refuse_together(found, unseen=history is not None)
        asked: dict[str, Any] = {}
        n_users, k = len(found.user_ids), min(self.k, len(found.item_ids))
        if history is not None:
            asked = _unseen(reading.interactions(history), found.item_ids)
            n_users = len(asked["user_ids"])
        elif not (self.folder / SEEN).exists():
            refuse_without_history(found, keep_seen=self.keep_seen)
        service = Service(self.folder.resolve(), n_users, not self.keep_seen, self.threads or 1)
        with where.pieces(self.threads) as pieces:
            exposure = recommend(pieces, service, k, output, kept, **asked)
        return {"users": n_users, "k": k, "output": str(output), **exposure.result()}


def _unseen(histories: "Interactions", item_ids: "NDArray[Any]") -> dict[str, Any]:
    """Number the items of unseen users' histories as the model does, once for all pieces."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from limelight.recommend.histories import match_items

    note_unknown(histories, item_ids)
    rows = match_items(histories, item_ids)
    ones = np.ones(len(rows.indices), dtype=np.float32)
    shape = (rows.n_users, len(item_ids))
    matrix = csr_matrix((ones, rows.indices, rows.indptr), shape=shape)
    return {"histories": matrix, "user_ids": histories.user_ids}
