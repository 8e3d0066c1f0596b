"""A real MariaDB server for tests, from the machine's own packages: row-based binlog, a free port, no password."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from sqlmesh_like.errors import MachineError
from tests.services.process import START_SECONDS, free_port, is_open, running

_INSTALL = "apt-get update && apt-get install -y --no-install-recommends mariadb-server"


@dataclass(frozen=True)
class Server:
    """Where a server listens; its user `root` has no password."""

    port: int
    user: str = "root"

    def connect(self, database: str | None = None) -> pymysql.Connection[Any]:
        """A connection that commits every statement, in UTC."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            database=database,
            autocommit=True,
            charset="utf8mb4",
            init_command="set time_zone = '+00:00'",
        )


def find_server() -> None:
    """Whether the machine has MariaDB. Raises MachineError that says how to install it."""
    if not (_program("mariadbd") and _program("mariadb-install-db")):
        raise MachineError("no MariaDB server on this machine", hint=f"as root: {_INSTALL}")


@contextmanager
def mariadb(folder: Path) -> Iterator[Server]:
    """A server with its data in `folder`, while the context is open."""
    find_server()
    port, data, log = free_port(), folder / "mysql", folder / "mariadb.log"
    # The socket's path may have 107 characters, which a test's folder soon has.
    own = ["--no-defaults", f"--datadir={data}", "--user=root"]
    with log.open("wb") as out:
        command = [_program("mariadb-install-db"), *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(command, check=True, stdout=out, stderr=out, timeout=START_SECONDS)
    server = [
        *(_program("mariadbd"), *own, f"--port={port}", "--bind-address=127.0.0.1", "--socket=mariadb.sock"),
        *(f"--log-bin={folder / 'binlog'}", "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=1"),
        *("--character-set-server=utf8mb4", "--default-time-zone=+00:00", "--innodb-flush-log-at-trx-commit=0"),
        *("--innodb-buffer-pool-size=64M", "--lower-case-table-names=0", f"--pid-file={folder / 'mariadb.pid'}"),
    ]
    with running(server, log, lambda: is_open(port)):
        yield Server(port)


def _program(name: str) -> str:
    """Where a program is: Debian keeps servers in a folder that is not on everybody's path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin") or ""
