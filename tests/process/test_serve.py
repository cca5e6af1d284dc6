"""``limelight serve`` as a process: what it prints, answers and keeps, and how it ends."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.commands import run_limelight, start_limelight

import limelight as ll

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAILED = 1
N_ITEMS = 200


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    data = ll.marketplace(300, N_ITEMS, 5000).interactions
    ll.IALS(factors=8, epochs=3, num_threads=1).fit(data).save(path)
    return path


class Served:
    """A service, and what it said at its start."""

    def __init__(self, *arguments: object, **variables: str) -> None:
        self.process = start_limelight("serve", *arguments, "--port", 0, **variables)
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if line.startswith("serving at "):
                break
        assert self.said[-1].startswith("serving at "), self.said
        self.address = re.findall(r"http://[\d.:]+", self.said[-1])[0]

    def send(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        method = "GET" if body is None else "POST"
        return httpx.request(
            method, f"{self.address}{path}", json=body, headers=headers, timeout=20
        )

    def ask(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send(path, body, **headers).raise_for_status().json()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Start services, which end with the test."""
    started: list[Served] = []

    def start(*arguments: object, ledger: object = None, **variables: str) -> Served:
        place = tmp_path / "ledger" if ledger is None else ledger
        started.append(Served(*arguments, "--ledger", place, **variables))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def test_the_lines_to_try_work(model: Path, serve: Any) -> None:
    served = serve(model)
    assert served.said[0] == "model: IALS, 300 users, 200 items"
    lines = [line.removeprefix("try:").strip() for line in served.said if "curl" in line]
    recommend, shown, exposure = (
        json.loads(subprocess.run(shlex.split(line), capture_output=True, check=True).stdout)
        for line in lines
    )
    assert len(recommend["items"]) == 5
    assert shown == {"accepted": 1, "known": 0, "late": 0, "unknown": []}
    assert exposure["lists"] == 1


def test_what_was_shown_is_counted_once_and_kept(model: Path, serve: Any) -> None:
    served = serve(model)
    answer = served.ask("/v1/recommend", {"user": 5, "k": 3})
    event = {"events": [{"id": answer["id"]}]}
    assert served.ask("/v1/shown", event)["accepted"] == 1
    assert served.ask("/v1/shown", event)["known"] == 1
    code, out, err = served.end()
    assert (code, err) == (0, "all requests are answered, and the ledger is written\n")
    logged = [json.loads(line) for line in out.splitlines()]
    assert [line["route"] for line in logged] == ["/v1/recommend", "/v1/shown", "/v1/shown"]
    assert not any("user" in line for line in logged)
    again = serve(model)
    assert again.ask("/v1/exposure")["lists"] == 1
    assert again.ask("/v1/shown", event | {"events": [{"id": answer["id"], "items": [1]}]}) == {
        "accepted": 0, "known": 1, "late": 0, "unknown": [],
    }  # fmt: skip


def test_the_model_folder_is_not_written_to(model: Path, serve: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in [model, *model.iterdir()]}
    served = serve(model, "--gini", 0.5, "--count", "served", "--window", "1h")
    for user in range(50):
        served.ask("/v1/recommend", {"user": user})
    assert served.end()[0] == 0
    assert {path: path.stat().st_mtime_ns for path in [model, *model.iterdir()]} == before


def test_ctrl_c_ends_it_as_sigterm_does(model: Path, serve: Any) -> None:
    code, _, err = serve(model).end(signal.SIGINT)
    assert (code, err) == (0, "all requests are answered, and the ledger is written\n")


def test_sighup_reads_the_model_again(tmp_path: Path, serve: Any) -> None:
    folder = tmp_path / "model"
    data = ll.marketplace(300, N_ITEMS, 5000).interactions
    ll.IALS(factors=8, epochs=3).fit(data).save(folder)
    served = serve(folder, "--gini", 0.5, "--count", "served")
    for user in range(20):
        served.ask("/v1/recommend", {"user": user})
    first = served.ask("/health/ready")["models"]["model"]
    assert first == served.ask("/health/ready")["models"]["model"]
    ll.IALS(factors=12, epochs=3).fit(data).save(folder)
    served.process.send_signal(signal.SIGHUP)
    assert served.process.stderr.readline() == "models were read again\n"
    assert served.ask("/health/ready")["models"]["model"] != first
    assert served.ask("/v1/exposure")["lists"] == 20
    (folder / "factors.safetensors").write_bytes(b"")
    served.process.send_signal(signal.SIGHUP)
    assert served.process.stderr.readline().startswith("the old model goes on: ")
    assert len(served.ask("/v1/recommend", {"user": 7})["items"]) == 20


def test_two_models_share_the_users(model: Path, tmp_path: Path, serve: Any) -> None:
    flags = ("--model", f"a={model}", "--model", f"b={model}", "--split", "a=50,b=50")
    served = serve(*flags, "--count", "served")
    arms = {user: served.ask("/v1/recommend", {"user": user})["model"] for user in range(60)}
    assert set(arms.values()) == {"a", "b"}
    assert arms[7] == served.ask("/v1/recommend", {"user": "7"})["model"]
    counted = [served.ask(f"/v1/exposure?model={name}")["lists"] for name in "ab"]
    assert sum(counted) == 61
    assert {path.name for path in (tmp_path / "ledger").iterdir()} == {"a", "b"}


def test_two_models_of_one_folder_have_ledgers_of_their_own(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    served = Served("--model", f"old={model}", "--model", f"new={model}", "--split", "old=9,new=1")
    assert served.end()[0] == 0
    names = {path.name[-4:] for path in (tmp_path / "limelight" / "ledgers").iterdir()}
    assert names == {"-old", "-new"}


def test_a_ledger_that_cannot_be_written_is_told_of(model: Path, serve: Any) -> None:
    served = serve(model, ledger="redis://127.0.0.1:1/0")
    assert any("cannot be used" in line for line in served.said)
    served.ask("/v1/recommend", {"user": 5})
    code, _, err = served.end()
    assert code == FAILED
    assert "the ledger is not whole" in err
    assert "hint: " in err


def test_tokens(model: Path, serve: Any) -> None:
    served = serve(model, LIMELIGHT_TOKEN="t" * 20, LIMELIGHT_ADMIN_TOKEN="a" * 20)
    assert served.send("/v1/recommend", {"user": 5}).status_code == 401
    mine = {"authorization": "Bearer " + "t" * 20}
    assert len(served.ask("/v1/recommend", {"user": 5}, **mine)["items"]) == 20
    assert served.send("/admin/target", {"gini": 0.5}, **mine).status_code == 403
    admin = {"authorization": "Bearer " + "a" * 20}
    assert served.ask("/admin/target", {"gini": 0.5}, **admin)["targets"]["model"] == {"gini": 0.5}
    assert served.ask("/v1/exposure", **mine)["target"] == {"gini": 0.5}
    # A cap needs groups, and the service has none.
    assert served.send("/admin/target", {"group_cap": 0.1}, **admin).status_code == 422
    assert served.ask("/v1/exposure", **mine)["target"] == {"gini": 0.5}


def test_groups_titles_and_items_that_are_never_shown(
    model: Path, tmp_path: Path, serve: Any
) -> None:
    ids = pq.read_table(model / "items.parquet")["item_id"]
    pq.write_table(
        pa.table({"item_id": ids, "group": [n % 4 for n in range(len(ids))]}),
        tmp_path / "groups.parquet",
    )
    pq.write_table(
        pa.table({"item_id": ids, "title": [f"Title {i}" for i in ids]}),
        tmp_path / "titles.parquet",
    )
    never = ids.to_pylist()[::2]
    pq.write_table(pa.table({"item_id": never}), tmp_path / "never.parquet")
    served = serve(
        model, "--count", "served", "--groups", tmp_path / "groups.parquet", "--group-cap", "60%",
        "--never-show", tmp_path / "never.parquet", "--catalogue", tmp_path / "titles.parquet",
    )  # fmt: skip
    for user in range(20):
        shown = [item["id"] for item in served.ask("/v1/recommend", {"user": user})["items"]]
        assert not set(shown) & set(never)
    found = served.ask("/v1/exposure?top=3")
    assert {account["group"] for account in found["accounts"]} <= {0, 1, 2, 3}
    assert found["accounts"][0]["cap"] == 0.6
    assert found["most"][0]["title"] == f"Title {found['most'][0]['id']}"


def test_two_services_do_not_share_a_folder(model: Path, tmp_path: Path, serve: Any) -> None:
    serve(model)
    ended = run_limelight("serve", model, "--ledger", tmp_path / "ledger", "--port", 0)
    assert ended.returncode == FAILED
    assert "another process" in ended.stderr
    assert "hint: " in ended.stderr
