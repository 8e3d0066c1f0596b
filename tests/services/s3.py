"""A real S3 server for tests, on a free port of loopback. It honours conditional puts.

The suite's is moto, which comes as wheels in seconds. A release's is versitygw, which keeps objects in a folder; Go
compiles it for minutes, once, into the cache of `sml`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.stores.store_client import require_library
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.spark.jvm.jars import cache_dir
from tests.environments import python_of
from tests.levels import IS_RELEASE
from tests.services.process import free_port, is_open, running
from tests.services.wanted import need

_HERE = Path(__file__).parent
_VERSION = "v1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@{_VERSION}"
_BUILD_SECONDS = 900


@dataclass(frozen=True)
class S3Server:
    """Where a server listens, and its keys. `buckets` has a folder for each bucket, where the server keeps them so."""

    port: int
    buckets: Path | None = None
    access_key: str = "testing-access"
    secret_key: str = "testing-secret"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def uri(self, bucket: str) -> str:
        return f"s3a://{bucket}"

    def settings(self, endpoint: str = "") -> StoreSettings:
        """How `sml` reaches it, or a proxy before it."""
        keys = {"access_key": self.access_key, "secret_key": self.secret_key}
        return StoreSettings(endpoint or self.endpoint, path_style=True, **keys)

    def output(self, endpoint: str = "") -> Mapping[str, object]:
        """What an output of `profiles.yml` says of the store."""
        keys = {"access.key": self.access_key, "secret.key": self.secret_key}
        return {
            "store": {"endpoint": endpoint or self.endpoint, "path_style": True},
            "spark": {f"spark.hadoop.fs.s3a.{name}": value for name, value in keys.items()},
        }

    def make_bucket(self, name: str) -> None:
        if self.buckets:
            (self.buckets / name).mkdir()
        else:  # moto asks for no signature
            urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")).close()


@contextmanager
def _moto(folder: Path) -> Iterator[S3Server]:
    """Moto, which keeps objects in memory, while the context is open."""
    server = S3Server(free_port())
    command = [str(python_of("s3", _HERE / "s3.txt")), str(_HERE / "moto_server.py"), str(server.port)]
    with running(command, folder / "s3.log", lambda: is_open(server.port)):
        yield server


@contextmanager
def _versitygw(folder: Path) -> Iterator[S3Server]:
    """Versitygw, with its buckets in `folder`, while the context is open."""
    need(_versitygw_program)
    server = S3Server(free_port(), folder / "buckets")
    (folder / "buckets").mkdir()
    (folder / "attributes").mkdir()
    command = [
        *(str(_versitygw_program()), "--port", f"127.0.0.1:{server.port}", "--access", server.access_key),
        *("--secret", server.secret_key, "posix", "--sidecar", str(folder / "attributes"), str(server.buckets)),
    ]
    with running(command, folder / "s3.log", lambda: is_open(server.port)):
        yield server


def _versitygw_program() -> Path:
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
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise MachineError("no S3 server on this machine", hint=f"install Go 1.24 or newer, then: go install {_MODULE}")
    environment = {**os.environ, "GOBIN": str(program.parent / "new"), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        [go, "install", _MODULE], env=environment, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        raise MachineError(f"the S3 server versitygw cannot be built: {last[0]}", hint=f"go install {_MODULE}")
    os.replace(program.parent / "new" / "versitygw", program)


@contextmanager
def s3(folder: Path) -> Iterator[S3Server]:
    """The server of this level, while the context is open."""
    need(lambda: require_library("s3://tests"))
    start = _versitygw if IS_RELEASE else _moto
    with start(folder) as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server of a module of tests, which imports this fixture."""
    with s3(tmp_path_factory.mktemp("s3")) as started:
        yield started
