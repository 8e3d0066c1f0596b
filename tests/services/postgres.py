"""A real PostgreSQL server for tests, from the machine's own packages: logical decoding, a free port, no password."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.errors import MachineError
from tests.services.process import START_SECONDS, free_port, running

_INSTALL = "apt-get update && apt-get install -y --no-install-recommends postgresql"
_OWNER = "postgres"


@dataclass(frozen=True)
class Server:
    """Where a server listens; its user `postgres` has no password."""

    port: int
    user: str = _OWNER

    def run(self, *statements: str) -> str:
        """Run statements, each a transaction of its own; what they print, without decoration."""
        command = [_program("psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", self.user, "-AtqX"]
        command += ["-v", "ON_ERROR_STOP=1", "-d", "postgres", "-f", "-"]
        script = "".join(f"{statement};\n" for statement in statements)
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout


def find_server() -> None:
    """Whether the machine has PostgreSQL. Raises MachineError that says how to install it."""
    if not (_program("initdb") and _program("psql")):
        raise MachineError("no PostgreSQL server on this machine", hint=f"as root: {_INSTALL}")


@contextmanager
def postgres(folder: Path, wal_level: str = "logical") -> Iterator[Server]:
    """A server with its log in `folder`, while the context is open.

    Its data is not below the folders of pytest, which each call of it closes to other users.
    """
    find_server()
    port, log = free_port(), folder / "postgres.log"
    owner = _OWNER if os.getuid() == 0 else None  # it refuses to be root
    with tempfile.TemporaryDirectory(prefix="sml-postgres-") as data:
        if owner:
            shutil.chown(data, owner)
        with _server(port, Path(data), log, owner, wal_level):
            yield Server(port)


@contextmanager
def _server(port: int, data: Path, log: Path, owner: str | None, wal_level: str) -> Iterator[None]:
    command = [_program("initdb"), "-D", str(data), "-U", _OWNER, "--auth=trust", "-E", "UTF8", "--no-sync"]
    with log.open("wb") as out:
        subprocess.run(command, check=True, stdout=out, stderr=out, timeout=START_SECONDS, user=owner, cwd="/")
    settings = {
        "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "wal_level": wal_level,
        "fsync": "off", "timezone": "UTC",
    }  # fmt: skip
    server = [_program("postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]
    with running(server, log, lambda: _is_answering(port), user=owner):
        yield


def _is_answering(port: int) -> bool:
    """Whether the server takes statements: it listens before that, and refuses them while it starts."""
    command = [_program("psql"), "-h", "127.0.0.1", "-p", str(port), "-U", _OWNER, "-d", "postgres", "-c", "select 1"]
    return subprocess.run(command, capture_output=True, check=False, timeout=START_SECONDS).returncode == 0


def _program(name: str) -> str:
    """Where a program is: Debian keeps servers below their version."""
    paths = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(paths[-1]) if paths else "")
