"""A real S3 server for tests: versitygw over a folder, on a free port of loopback. It honours conditional puts.

`go install` builds it once, into the cache of `sml`; MinIO and SeaweedFS take longer to build, and moto is not a server
that one would keep rows in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.stores.store_client import require_library
from sqlmesh_like.spark.jvm.jars import cache_dir
from tests.services.process import free_port, is_open, running
from tests.services.wanted import need

_VERSION = "v1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@{_VERSION}"
_BUILD_SECONDS = 900


@dataclass(frozen=True)
class S3Server:
    """Where a server listens, and its keys. `folder` has a folder for each bucket."""

    port: int
    folder: Path
    access_key: str = "testing-access"
    secret_key: str = "testing-secret"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What the clouds' default chains read."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key, "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def make_bucket(self, name: str) -> None:
        (self.folder / name).mkdir()


def server_program() -> Path:
    """The server's program, built where it is missing. Raises MachineError where that fails."""
    if program := shutil.which("versitygw"):
        return Path(program)
    built = cache_dir() / "tests" / f"versitygw-{_VERSION}" / "versitygw"
    built.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(built.with_suffix(".lock")):
        if not built.is_file():
            _build(built)
    return built


def _build(program: Path) -> None:
    environment = {**os.environ, "GOBIN": str(program.parent / "new"), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        [_go(), "install", _MODULE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        raise MachineError(f"the S3 server versitygw cannot be built: {last[0]}", hint=f"go install {_MODULE}")
    os.replace(program.parent / "new" / "versitygw", program)


def _go() -> str:
    """Go's compiler; empty where the machine has none."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""


def _need_server() -> None:
    """Skip a test where there is no server and no compiler to build one, or where obstore is not installed."""
    if not _go() and not shutil.which("versitygw"):
        pytest.skip(f"no S3 server on this machine: install Go 1.24 or newer, then: go install {_MODULE}")
    need(server_program, lambda: require_library("s3://tests"))


@contextmanager
def _running(folder: Path) -> Iterator[S3Server]:
    """A server with its buckets in `folder`, while the context is open."""
    program, server = server_program(), S3Server(free_port(), folder / "buckets")
    server.folder.mkdir(parents=True)
    (folder / "attributes").mkdir()
    command = [
        *(str(program), "--port", f"127.0.0.1:{server.port}", "--access", server.access_key),
        *("--secret", server.secret_key, "posix", "--sidecar", str(folder / "attributes"), str(server.folder)),
    ]
    with running(command, folder / "s3.log", lambda: is_open(server.port)):
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server of a module of tests, which imports this fixture."""
    _need_server()
    with _running(tmp_path_factory.mktemp("s3")) as started:
        yield started
