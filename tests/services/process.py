"""What all services have in common: pinned jars, a JVM of their own, a free port, the wait until one answers."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlmesh_like.spark.jvm.jars import Jar, cache_dir, ensure_jars
from sqlmesh_like.spark.jvm.java import find_jdk

START_SECONDS = 300
DEMAND_VARIABLE = "SML_DEMAND_SERVICES"
"""Set where the tests of real services must run: what is missing then fails them instead of skipping them."""
_FOLDER = Path(__file__).parent
_RANDOM = random.SystemRandom()  # a seed that tests share would give processes side by side the same ports


def pinned(name: str, part: str | None = None) -> tuple[Path, ...]:
    """The jars of `<name>.lock.toml` (of one `part`) in the user's cache. Raises MachineError where one is missing."""
    entries = tomllib.loads((_FOLDER / f"{name}.lock.toml").read_text(encoding="utf-8"))["jar"]
    jars = (Jar(**entry) for entry in entries)
    return ensure_jars(tuple(jar for jar in jars if part is None or jar.part == part))


def unpacked(name: str, part: str) -> Path:
    """The folder of the one archive of a part, unpacked in the user's cache. Raises MachineError if it is missing."""
    (archive,) = pinned(name, part)
    folder = cache_dir() / "plugins" / archive.name.removesuffix(".tar.gz")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent) as half, tarfile.open(archive) as tar:
        tar.extractall(half, filter="data")
        Path(half).rename(folder)
        Path(half).mkdir()  # what the context takes away
    return folder


def java(jars: Sequence[Path], *options: str) -> list[str]:
    """The start of a command line that runs a class of these jars."""
    return [str(find_jdk().home / "bin" / "java"), *options, "-cp", os.pathsep.join(map(str, jars))]


def free_port() -> int:
    """A port of loopback that nobody listens on.

    None of those that systems hand out by themselves (from 32768 on): before its server starts, some connection of
    another process could be given it.
    """
    for _ in range(100):
        port = _RANDOM.randrange(20_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no port of loopback is free")


def is_open(port: int) -> bool:
    """Whether somebody listens on this port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def running(command: Sequence[str], log: Path, is_up: Callable[[], bool], user: str | None = None) -> Iterator[None]:
    """A process of this user that answers, while the context is open.

    Raises RuntimeError where it ends or does not answer.
    """
    with log.open("ab") as out:
        process = subprocess.Popen(list(command), stdout=out, stderr=out, stdin=subprocess.DEVNULL, user=user)
    try:
        wait_until(is_up, lambda: process.poll() is None, log)
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=START_SECONDS)


def wait_until(is_true: Callable[[], bool], may_go_on: Callable[[], bool], log: Path) -> None:
    """Wait for a condition. Raises RuntimeError with the end of the log where it cannot or does not come true."""
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and may_go_on():
        if is_true():
            return
        time.sleep(0.2)
    raise RuntimeError(f"{log.name}:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
