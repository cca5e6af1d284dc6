"""Good and bad tables of lists and of candidates, as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_LISTS = "user_id,item_id,rank,score,shown_at\n"
_GOOD_LISTS = _LISTS + "".join(
    f"{user},{item},{rank},{1 / rank},2024-01-0{user}\n"
    for user, items in ((1, "abc"), (2, "abd"), (3, "ace"))
    for rank, item in enumerate(items, 1)
)
LISTS = {
    "good.csv": _GOOD_LISTS,
    "before.csv": _GOOD_LISTS.replace("e,3", "b,3"),
    "items.csv": "item_id\na\nb\nc\nd\ne\nf\n",
    "few-items.csv": "item_id\na\nb\n",
    "groups.csv": "item_id,group\na,x\nb,x\nc,y\nd,y\ne,y\n",
    "chosen.csv": "user_id,item_id\n1,a\n2,a\n3,f\n",
    "no-items.csv": "user_id,rank\n1,1\n",
    "no-order.csv": "user_id,item_id\n1,a\n",
    "text-rank.csv": "user_id,item_id,rank\n1,a,first\n",
    "text-score.csv": "user_id,item_id,score\n1,a,high\n",
    "nan-rank.csv": "user_id,item_id,rank\n1,a,NaN\n",
    "nan-score.csv": "user_id,item_id,score\n1,a,0.5\n1,b,nan\n",
    "no-id.csv": "user_id,item_id,rank\n1,,1\n",
    "same-rank.csv": "user_id,item_id,rank\n1,a,1\n1,b,1\n",
    "same-item.csv": "user_id,item_id,rank\n1,a,1\n1,a,2\n",
    "empty.csv": "",
    "no-rows.csv": _LISTS,
    "strange.csv": "user_id,item_id\n1,zzz\n",
}

_CANDIDATES = "user_id,item_id,score\n"
_GOOD_CANDIDATES = _CANDIDATES + "".join(
    f"{user},{'abcdefgh'[item]},{1 / (1 + item) + 0.01 * ((user * item) % 3)}\n"
    for user in range(40)
    for item in range(8)
)
_VARIED_CANDIDATES = _CANDIDATES + "".join(
    f"{user},{'abcdefgh'[item]},{0.6 * (item < 4) + (user * (7 * item + 3) % 101) / 101}\n"
    for user in range(101)
    for item in range(8)
)
CANDIDATES = {
    "good.csv": _GOOD_CANDIDATES,
    "varied.csv": _VARIED_CANDIDATES,
    "items.csv": "item_id\n" + "\n".join("abcdefghij") + "\n",
    "few-items.csv": "item_id\na\nb\n",
    "groups.csv": "item_id,group\n" + "".join(f"{j},{'xy'[j > 'd']}\n" for j in "abcdefgh"),
    "strange-groups.csv": "item_id,group\nzzz,x\n",
    "shares.csv": "group,share\nx,60\ny,40\n",
    "other-shares.csv": "group,share\nx,0.6\nq,0.4\n",
    "seen.csv": "user_id,item_id\n0,a\n1,a\n2,b\n",
    "liked.csv": "user_id,item_id\n" + "".join(f"{u},{'ab'[u % 2]}\n" for u in range(40)),
    "strange.csv": "user_id,item_id\n990,zzz\n",
    "no-score.csv": "user_id,item_id\n1,a\n",
    "no-item.csv": "user_id,score\n1,0.5\n",
    "text-score.csv": _CANDIDATES + "1,a,high\n",
    "nan-score.csv": _CANDIDATES + "1,a,nan\n",
    "infinite.csv": _CANDIDATES + "1,a,inf\n",
    "twice.csv": _CANDIDATES + "1,a,0.5\n1,a,0.4\n",
    "no-id.csv": _CANDIDATES + "1,,0.5\n",
    "empty.csv": "",
    "no-rows.csv": _CANDIDATES,
}


@pytest.fixture(scope="session")
def list_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of lists; tests only read from it."""
    return _written(tmp_path_factory.mktemp("lists"), LISTS)


@pytest.fixture(scope="session")
def candidate_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of candidates; tests only read from it."""
    return _written(tmp_path_factory.mktemp("candidates"), CANDIDATES)


def _written(folder: Path, tables: dict[str, str]) -> Path:
    for name, text in tables.items():
        (folder / name).write_text(text)
    return folder
