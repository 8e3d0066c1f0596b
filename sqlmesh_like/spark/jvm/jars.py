"""The pinned jars in the user's cache. Owns lock file, download and SHA-256; `session` passes them to Spark.

A jar is hashed in full when it is downloaded. Later runs trust a stamp beside it (hash, size, modification time), so
that a session does not read 80 MB to start. Files are put in place complete, by a rename.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from filelock import FileLock
from platformdirs import user_cache_path

from sqlmesh_like.errors import MachineError
from sqlmesh_like.own_files import require_own
from sqlmesh_like.project.nodes import Target

CACHE_VARIABLE = "SML_CACHE_DIR"
MIRROR_VARIABLE = "SML_MAVEN_URL"
_TIMEOUT_SECONDS = 60
_WAITS_SECONDS = (1.0, 3.0)
"""Before the second and the third attempt of a download."""
_AUTHORITIES_VARIABLE = "REQUESTS_CA_BUNDLE"
_SYSTEM_AUTHORITIES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)

Progress = Callable[[str, int, int], None]
"""Called during a download: file name, bytes so far, total bytes."""
JarState = Literal["verified", "unverified", "missing"]


@dataclass(frozen=True)
class Jar:
    """One pinned artifact. `sha256`: lower-case hex digest of the file. `part`: the feature that needs it.

    `classifier` and `packaging` are Maven's, for artifacts that are not plain jars.
    """

    group: str
    artifact: str
    version: str
    sha256: str
    part: str = "spark"
    classifier: str = ""
    packaging: str = "jar"

    @property
    def file_name(self) -> str:
        """
        >>> Jar("org.x", "lib_2.12", "1.0", "").file_name
        'lib_2.12-1.0.jar'
        """
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.{self.packaging}"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def locked_jars(*parts: str) -> tuple[Jar, ...]:
    """The jars in `jars.lock.toml` that every session needs, and those of these parts (kafka, s3), in file order."""
    text = resources.files("sqlmesh_like.spark.jvm").joinpath("jars.lock.toml").read_text(encoding="utf-8")
    jars = (Jar(**entry) for entry in tomllib.loads(text)["jar"])
    return tuple(jar for jar in jars if jar.part in ("spark", *parts))


def jar_parts(target: Target, *, with_kafka: bool = False) -> tuple[str, ...]:
    """The features of a target's sessions that need jars of their own."""
    parts = {"kafka": with_kafka, "s3": target.store.needs_pinned_jars(target.warehouse)}
    return tuple(part for part, is_needed in parts.items() if is_needed)


def cache_dir() -> Path:
    """The folder of files shared by all projects of a user: `SML_CACHE_DIR`, else the platform's user cache."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("sqlmesh_like", appauthor=False)


def jar_path(jar: Jar) -> Path:
    """The jar's path in the cache, whether it exists or not."""
    return cache_dir() / "jars" / jar.file_name


def jar_state(jar: Jar) -> JarState:
    """The state of the cached jar by its stamp, without reading the jar."""
    path = jar_path(jar)
    if not path.is_file():
        return "missing"
    stamp = _stamp_path(path)
    trusted = stamp.is_file() and stamp.read_text(encoding="utf-8") == _stamp_text(jar, path)
    return "verified" if trusted else "unverified"


def ensure_jars(jars: tuple[Jar, ...] | None = None, progress: Progress | None = None) -> tuple[Path, ...]:
    """Paths of the pinned jars, after fetching and verifying where needed. Safe to call from several processes.

    Raises MachineError where a jar cannot be fetched or has another hash than the pinned one.
    """
    require_own(cache_dir() / "jars")
    return tuple(_ensure(jar, progress) for jar in (locked_jars() if jars is None else jars))


def _ensure(jar: Jar, progress: Progress | None) -> Path:
    path = jar_path(jar)
    if jar_state(jar) == "verified":
        return path
    with _lock_cache(path.parent):
        if not path.is_file():
            _fetch(jar, path, progress)
        _verify(jar, path)
    return path


@contextmanager
def _lock_cache(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire()
    except OSError as error:
        hint = f"make it writable, or set {CACHE_VARIABLE} to a folder that is"
        raise MachineError(f"cannot write to the jar cache {folder}: {error.strerror}", hint=hint) from error
    try:
        yield
    finally:
        lock.release()


def _fetch(jar: Jar, path: Path, progress: Progress | None) -> None:
    with tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as folder:
        arrived = _download(jar, Path(folder), progress)
        digest = _sha256(arrived)
        if digest != jar.sha256:
            rejected = path.with_name(f"{path.name}.rejected")
            os.replace(arrived, rejected)
            raise MachineError(
                f"{jar} as downloaded has the wrong SHA-256\n"
                f"  file      {rejected}\n  expected  {jar.sha256}\n  found     {digest}",
                hint=f"it was not installed: check {_repository()} and the network in between, then run `sml deps`",
            )
        os.replace(arrived, path)


def _download(jar: Jar, folder: Path, progress: Progress | None) -> Path:
    import requests  # here: the HTTP client costs a third of a second that only a download needs

    hint = f"connect to the network, or set {MIRROR_VARIABLE} to a Maven mirror, then run `sml deps`"
    try:
        with _system_authorities():
            return _resolve(jar, folder, progress)
    except requests.exceptions.SSLError:
        reason = f"the certificate of {_repository()} is not trusted"
        hint = f"set {_AUTHORITIES_VARIABLE} to the file of your network's certificate authorities, then run `sml deps`"
    except requests.RequestException as error:
        # The resolver's messages may contain the mirror's address with its password, so only the type is shown.
        reason = f"cannot reach {_repository()} ({type(error).__name__})"
    except OSError as error:
        reason, hint = f"cannot write to {folder}: {error.strerror}", f"free space there, or set {CACHE_VARIABLE}"
    except RuntimeError:
        reason = f"{_repository()} does not have it"
    raise MachineError(f"cannot fetch {jar}: {reason}", hint=hint)


def _resolve(jar: Jar, folder: Path, progress: Progress | None) -> Path:
    """The artifact in `folder`. What fails is tried again: a first run fetches 80 MB at once."""
    import requests
    from jgo.maven import MavenContext, PythonResolver

    mirror = os.environ.get(MIRROR_VARIABLE)
    for attempt, wait in enumerate((*_WAITS_SECONDS, None)):
        context = MavenContext(
            resolver=PythonResolver(progress_callback=_resolver_progress(progress) if progress else None),
            repo_cache=folder / str(attempt),  # another one each time: the resolver takes half a file for a whole one
            remote_repos={"mirror": mirror.rstrip("/")} if mirror else None,
            timeout=_TIMEOUT_SECONDS,
        )
        component = context.project(jar.group, jar.artifact).at_version(jar.version)
        try:
            return Path(component.artifact(jar.classifier, jar.packaging).resolve())
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, RuntimeError) as error:
            # An untrusted certificate stays one, and a minute without an answer was patience enough. The resolver
            # raises RuntimeError for every answer but the file: of a busy repository, too.
            if wait is None or isinstance(error, requests.exceptions.SSLError | requests.Timeout):
                raise
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def _system_authorities() -> Iterator[None]:
    """Trust the machine's certificate authorities: the HTTP client's own list lacks those of companies.

    The resolver has no such setting, so the client's environment variable is set, unless the user has set it.
    """
    system = next((file for file in _SYSTEM_AUTHORITIES if file.is_file()), None)
    if system is None or any(os.environ.get(name) for name in (_AUTHORITIES_VARIABLE, "CURL_CA_BUNDLE")):
        yield
        return
    os.environ[_AUTHORITIES_VARIABLE] = str(system)
    try:
        yield
    finally:
        del os.environ[_AUTHORITIES_VARIABLE]


def _repository() -> str:
    return f"the mirror in {MIRROR_VARIABLE}" if os.environ.get(MIRROR_VARIABLE) else "the public Maven repository"


def _resolver_progress(progress: Progress) -> Callable[[str, int], AbstractContextManager[Callable[[int], None]]]:
    @contextmanager
    def track(file_name: str, total: int) -> Iterator[Callable[[int], None]]:
        arrived = 0

        def advance(count: int) -> None:
            nonlocal arrived
            arrived += count
            progress(file_name, arrived, total)

        yield advance

    return track


def _verify(jar: Jar, path: Path) -> None:
    digest = _sha256(path)
    if digest != jar.sha256:
        raise MachineError(
            f"{jar} in the cache has the wrong SHA-256\n"
            f"  file      {path}\n  expected  {jar.sha256}\n  found     {digest}",
            hint="it was left as it is: delete the file and run `sml deps`",
        )
    stamp = _stamp_path(path)
    half_written = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    half_written.write_text(_stamp_text(jar, path), encoding="utf-8")
    os.replace(half_written, stamp)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp_path(jar: Path) -> Path:
    return jar.with_name(f"{jar.name}.verified")


def _stamp_text(jar: Jar, path: Path) -> str:
    stat = path.stat()
    return f"{jar.sha256} {stat.st_size} {stat.st_mtime_ns}\n"
