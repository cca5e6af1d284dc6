"""``limelight serve``: what it refuses before it listens."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.support.commands import Run

FAILED, WRONG_USE = 1, 2


def test_what_cannot_be_served(
    limelight: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refuses(limelight, files, tmp_path, taken)


def refuses(limelight: Run, files: Path, tmp_path: Path, taken: socket.socket) -> None:
    model = files / "model"
    port = taken.getsockname()[1]
    (tmp_path / "empty").write_text("")
    (tmp_path / "short").write_text("abc\n")
    for flags, code, words in (
        ((), WRONG_USE, "give one model folder, or several with --model"),
        ((tmp_path / "nothing",), FAILED, "nothing"),
        ((model, "--model", f"b={model}"), WRONG_USE, "give one model folder"),
        ((model, "--port", port), WRONG_USE, f"cannot listen on 127.0.0.1, port {port}"),
        ((model, "--port", 99999), WRONG_USE, "a port is a number from 0 to 65535: 99999"),
        ((model, "--workers", 2), WRONG_USE, "2 workers must share a ledger"),
        ((model, "--ledger", "http://x/", "--workers", 2), WRONG_USE, "by its scheme: 'http'"),
        ((model, "--window", "1d", "--half-life", "1d"), WRONG_USE, "exclude each other"),
        ((model, "--window", "soon"), WRONG_USE, "--window must be a positive duration: 'soon'"),
        ((model, "--group-cap", "3%"), WRONG_USE, "need groups"),
        ((model, "--gini", 1.5), WRONG_USE, "1.5"),
        ((model, "--token-file", tmp_path / "empty"), FAILED, "the file of tokens is empty"),
        ((model, "--token-file", tmp_path / "short"), WRONG_USE, "at least 16 characters"),
        ((model, "--split", "a=1"), WRONG_USE, "a split names every model"),
        ((model, "--ledger", model), WRONG_USE, "a ledger does not go into a model folder"),
        ((model, "--ledger", model / "below"), WRONG_USE, "a ledger does not go into a model"),
        ((model, "--ledger", files), FAILED, "holds something else than a ledger"),
        ((model, "--host", "no.such.host.invalid"), WRONG_USE, "cannot listen on no.such"),
        ((model, "-k", 0), WRONG_USE, "k must be at least 1"),
    ):
        given = flags if "--port" in flags else (*flags, "--port", 0)
        ended = limelight("serve", *given)
        assert "Traceback" not in ended.err, ended.err
        assert words in ended.err, (flags, ended.err)
        assert ended.code == code, (flags, ended.err)
        assert "hint: " in ended.err
        assert ended.out == ""
        assert not (model / "lock").exists()
        assert not (files / "lock").exists()
