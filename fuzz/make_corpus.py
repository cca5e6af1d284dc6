"""Write the inputs that fuzzing starts from: sound files, for the fuzzer to damage."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from folders import Folders
from sound import checkpoint_folders, journal_folders, model_folders, run_folders
from tables import KINDS

CORPUS = Path(__file__).parent / "corpus"
FLAGS = {
    "read_interactions": (0, 255),
    "read_candidates": (0, 1),
    "audit_lists": (0, 1, 2, 3, 4, 255),
}
TEXT = {
    "read_interactions": """user_id,item_id,rating,time
1,a,5,2024-01-02
2,b,0.5,2024-01-03 04:05:06
""",
    "read_candidates": 'user_id,item_id,score\n1,a,0.5\n1,"b",1e-3\n2,a,-2\n',
    "audit_lists": """user_id,item_id,rank,time,group,weight
1,a,1,1700000000,x,1
1,b,2,1700000000,y,0.5
2,a,1,1700086400,y,2
""",
}

FOLDERS = {
    "load_models": model_folders,
    "load_runs": run_folders,
    "load_checkpoints": checkpoint_folders,
    "serve_journal": journal_folders,
}
BODIES = (
    (0, '{"user": 7, "k": 5}'),
    (0, '{"id": "x", "history": [3, 9, "4"], "exclude": [1], "allow": [2, 3, 5, 8]}'),
    (1, '{"items": [{"id": 3, "score": 0.5}, {"id": "new", "score": -2e3}], "user": 1, "k": 1}'),
    (2, '{"user": 7, "history": [1], "k": 2}'),
    (2, '{"items": [{"id": 3, "score": 1e30}], "id": "z"}'),
    (3, '{"events": [{"id": "x"}, {"user": 7, "items": [1, 2], "time": 1000000000}]}'),
)


def main() -> None:
    """Write the corpus of every target."""
    for target, text in TEXT.items():
        for flags in FLAGS[target]:
            for kind, content in _tables(text).items():
                _write(target, f"{flags}-{kind}", bytes([flags, KINDS.index(kind)]) + content)
    for target, make in FOLDERS.items():
        for name, content in Folders(make(Path(tempfile.mkdtemp()))).seeds():
            _write(target, name, content)
    for number, (which, body) in enumerate(BODIES):
        _write("serve_requests", str(number), bytes([which]) + body.encode())
    for number in range(16):
        _write("native_kernels", str(number), random.Random(number).randbytes(150))


def _tables(text: str) -> dict[str, bytes]:
    """Write the same rows in every kind of file, and a frame of any types."""
    sink = pa.BufferOutputStream()
    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(text.encode())), sink, compression="none")
    return {
        "csv": text.encode(),
        "tsv": text.replace(",", "\t").encode(),
        "csv.gz": gzip.compress(text.encode(), mtime=0),
        "parquet": sink.getvalue().to_pybytes(),
        "frame": bytes(range(63)),
    }


def _write(target: str, name: str, content: bytes) -> None:
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
