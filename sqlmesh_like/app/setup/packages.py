"""Fetches dbt packages into the install folder. Owns git, tarballs and links, and the lock file; `project` reads them.

A package is only text that is rendered in the sandbox: none of its code is run here. Repositories are fetched with the
git that is installed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
import yaml

from sqlmesh_like.app.setup.archive import MAX_BYTES, ArchiveError, extract
from sqlmesh_like.artifacts.files import write_text
from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.packages import PACKAGE_FILES, WantedPackage, wanted_packages
from sqlmesh_like.project.paths import folder_inside, links_out
from sqlmesh_like.project.reading.files import read_bytes, read_text
from sqlmesh_like.project.reading.values import holds_secret
from sqlmesh_like.project.reading.yaml_node import parse_yaml
from sqlmesh_like.project.settings import DBT_FILE, load_settings
from sqlmesh_like.regular_files import read_followed
from sqlmesh_like.secrets import learn, scrub_text

LOCK = "package-lock.yml"
_MOST_SECONDS = 300.0
"""Time that a download may take, as git may."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GIT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
"""Environment of git: it must not prompt, and no address may run a program (`ext::…`)."""


@dataclass(frozen=True)
class FetchedPackage:
    """An installed package. `pin`: the commit, or the SHA-256 of the tarball; None for a local one."""

    name: str
    wanted: WantedPackage
    pin: str | None = None

    def __str__(self) -> str:
        at = f" at {self.pin[:12]}" if self.pin else ""
        return f"{self.name} from {spec_text(self.wanted.where)}{at}"


@dataclass
class _Fetching:
    """Fetches packages into the folder `place`, and installs them once all are there and may be installed."""

    root: Path
    folder: Path
    place: Path
    variables: Mapping[str, object]
    pins: Mapping[str, str]
    installed: frozenset[str]
    done: dict[str, FetchedPackage] = field(default_factory=dict)
    of_hub: list[WantedPackage] = field(default_factory=list)
    _sources: dict[str, Path] = field(default_factory=dict)

    def fetch(self, base: Path, wanted: tuple[WantedPackage, ...]) -> None:
        """Fetch these packages and those that they need; `base`: the folder of relative paths."""
        for entry in wanted:
            if entry.kind == "hub":
                self.of_hub.append(entry)
                continue
            source, pin = self._fetch(entry, base, Path(tempfile.mkdtemp(dir=self.place)))
            name = _name_of(source, entry)
            if (known := self.done.get(name)) is not None:
                if (known.wanted.where, known.pin) != (entry.where, pin):
                    hint = f"the other one is asked for at {known.wanted.declared_at}"
                    raise ProjectError(f"package {name!r} comes twice", location=entry.declared_at, hint=hint)
                continue
            self._require_installable(source, name, entry)
            self.done[name], self._sources[name] = FetchedPackage(name, entry, pin), source
            inner = wanted_packages(source, self.root, self.variables, secrets=False)
            self.fetch(source if entry.kind == "local" else base, inner)

    def install(self) -> None:
        """Install what was fetched, in place of earlier versions."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, source in self._sources.items():
            target = self.folder / name
            if target.is_symlink() or target.is_file():
                target.unlink()
            elif target.exists():
                shutil.rmtree(target)
            if self.done[name].wanted.kind == "local":
                target.symlink_to(os.path.relpath(source, self.folder), target_is_directory=True)
            else:
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))

    def require_those_of_the_hub(self) -> None:
        """Raise ProjectError for a package of the hub that neither another entry nor `dbt deps` has installed."""
        for entry in self.of_hub:
            if entry.hub_name not in self.done and not (self.folder / entry.hub_name / DBT_FILE).is_file():
                hint = f"name the repository of {entry.where} in packages.yml: `- git: https://…` with a `revision`"
                raise ProjectError("dbt's hub is not asked", location=entry.declared_at, hint=hint)

    def _require_installable(self, source: Path, name: str, entry: WantedPackage) -> None:
        target = self.folder / name
        if source.is_relative_to(self.folder.resolve()) or self.root.resolve() == source:
            hint = "keep it elsewhere: what is in the install folder is replaced"
            message = f"{spec_text(entry.where)} cannot be installed into {self.folder.name}/, where it lies itself"
            raise ProjectError(message, location=entry.declared_at, hint=hint)
        if link := links_out(source, self.folder.name):
            raise ProjectError(f"{link} of package {name!r} is a link that leaves it", location=entry.declared_at)
        if (target.exists() or target.is_symlink()) and name not in self.installed:
            hint = f"it is not in {LOCK}; remove it yourself if it may go"
            raise ProjectError(f"{self.folder.name}/{name} is there already", location=entry.declared_at, hint=hint)

    def _fetch(self, entry: WantedPackage, base: Path, place: Path) -> tuple[Path, str | None]:
        match entry.kind:
            case "local":
                folder = (self.root / entry.where).resolve()  # as in dbt, also for entries of packages
                folder = folder if folder.is_dir() else (base / entry.where).resolve()
                if not folder.is_dir():
                    raise ProjectError(f"there is no folder {entry.where!r}", location=entry.declared_at)
                return folder, None
            case "git":
                return _clone(entry, self.pins.get(_lock_key(entry)), place)
            case "tarball":
                return _unpack(entry, self.pins.get(_lock_key(entry)), place)
            case "hub":
                raise AssertionError("packages of the hub are not fetched")


def fetch_packages(root: Path, cli_vars: Mapping[str, object]) -> tuple[FetchedPackage, ...]:
    """Install the packages of `packages.yml` and those that they need; the lock file pins them while it is unchanged.

    Raises ProjectError with the entry that cannot be fetched; then nothing is installed.
    """
    settings = load_settings(root, cli_vars)
    wanted = wanted_packages(root, root, settings.vars)
    if not wanted:
        return ()
    texts = [read_bytes(root / name, root) for name in PACKAGE_FILES if (root / name).is_file()]
    text = hashlib.sha1(b"".join(texts), usedforsecurity=False).hexdigest()
    folder = folder_inside(root, settings.packages_path, "packages-install-path", Location(settings.file))
    before, pins = _locked_packages(root, text)
    with tempfile.TemporaryDirectory() as place:
        fetching = _Fetching(root, folder, Path(place), settings.vars, pins, before)
        fetching.fetch(root, wanted)
        packages = tuple(fetching.done.values())
        _forget_others(folder, before.difference(fetching.done))
        _write_lock(root, packages, text)  # first: the next call replaces only packages that the lock file lists
        fetching.install()
    fetching.require_those_of_the_hub()
    return packages


def spec_text(address: str) -> str:
    """Return an address without a login or secret.

    >>> spec_text("https://me:word@example.com/a.git"), spec_text("../shared")
    ('https://example.com/a.git', '../shared')
    """
    plain = re.sub(r"(?<=://)[^/@]*@", "", address)
    return "…" if holds_secret(plain) else plain


def _name_of(source: Path, entry: WantedPackage) -> str:
    if not (source / DBT_FILE).is_file():
        hint = "name the folder of its dbt_project.yml by `subdirectory`" if entry.kind == "git" else None
        raise ProjectError(f"{spec_text(entry.where)} has no {DBT_FILE}", location=entry.declared_at, hint=hint)
    name = load_settings(source, {}).name
    if not _NAME.fullmatch(name):
        raise ProjectError(f"{name!r} cannot be the name of a package", location=entry.declared_at)
    return name


def _clone(entry: WantedPackage, pin: str | None, place: Path) -> tuple[Path, str]:
    address = entry.where
    if _login(address):  # which git is given in its environment
        parts = urlsplit(address)
        address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    _git(entry, place, "clone", "--quiet", "--", address, str(place / "whole"))
    whole = place / "whole"
    if wanted := pin or entry.revision:
        commit = _git(
            entry, whole, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}", ok=True
        )
        commit = commit or _git(
            entry, whole, "rev-parse", "--verify", "--end-of-options", f"origin/{wanted}^{{commit}}"
        )
        _git(entry, whole, "checkout", "--quiet", "--detach", commit)
    inside = (whole / (entry.subdirectory or ".")).resolve()
    if not inside.is_relative_to(whole.resolve()) or not inside.is_dir():
        raise ProjectError(
            f"there is no {entry.subdirectory!r} in {spec_text(entry.where)}", location=entry.declared_at
        )
    return inside, _git(entry, whole, "rev-parse", "HEAD")


def _git(entry: WantedPackage, folder: Path, *words: str, ok: bool = False) -> str:
    try:
        called = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**os.environ, **_GIT, **_login(entry.where)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except FileNotFoundError:
        raise ProjectError("git is not installed", location=entry.declared_at, hint="it fetches packages") from None
    except subprocess.TimeoutExpired:
        raise ProjectError(f"{spec_text(entry.where)} takes too long", location=entry.declared_at) from None
    if called.returncode and not ok:
        lines = [line for line in called.stderr.strip().splitlines() if line.startswith(("fatal", "error"))]
        why = spec_text(lines[0]) if lines else f"git {words[0]} failed"
        what = f"{entry.revision!r} of {spec_text(entry.where)}" if words[0] == "rev-parse" else spec_text(entry.where)
        raise ProjectError(f"cannot fetch {what}: {why}", location=entry.declared_at)
    return called.stdout.strip() if not called.returncode else ""


def _login(address: str) -> dict[str, str]:
    """Return git settings with the login of an address, as environment: all users can read a process's arguments."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return {}
    login, _, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    word = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    learn(word)
    number = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"http.{parts.scheme}://{host}/.extraHeader",
        f"GIT_CONFIG_VALUE_{number}": f"Authorization: Basic {word}",
    }


def _unpack(entry: WantedPackage, pin: str | None, place: Path) -> tuple[Path, str]:
    content = _content(entry)
    digest = hashlib.sha256(content).hexdigest()
    if pin is not None and pin != digest:
        hint = f"remove {LOCK} to take it as it is now"
        raise ProjectError(f"{spec_text(entry.where)} is not what it was", location=entry.declared_at, hint=hint)
    try:
        extract(content, place / "whole")
    except ArchiveError as error:
        raise ProjectError(f"{spec_text(entry.where)}: {error}", location=entry.declared_at) from None
    whole = place / "whole"
    folders = [whole, *sorted(path for path in whole.iterdir() if path.is_dir())]
    return next((path for path in folders if (path / DBT_FILE).is_file()), whole), digest


def _content(entry: WantedPackage) -> bytes:
    path = Path(entry.where.removeprefix("file://"))
    if "://" not in entry.where or entry.where.startswith("file://"):
        if not path.is_file():
            raise ProjectError(f"there is no file {entry.where!r}", location=entry.declared_at)
        return read_followed(path, MAX_BYTES)
    try:
        with requests.get(entry.where, timeout=60, stream=True, headers={"Accept-Encoding": "identity"}) as answer:
            answer.raise_for_status()
            return _read_answer(answer, entry)
    except requests.RequestException as error:
        why = getattr(error.response, "status_code", None) or type(error).__name__
        raise ProjectError(f"cannot fetch {spec_text(entry.where)}: {why}", location=entry.declared_at) from None


def _read_answer(answer: requests.Response, entry: WantedPackage) -> bytes:
    """Return the content of an answer, which need not say its size, nor end."""
    content, began = bytearray(), time.monotonic()
    for part in answer.iter_content(65_536):
        content += part
        if len(content) > MAX_BYTES or time.monotonic() - began > _MOST_SECONDS:
            limits = f"more than {MAX_BYTES // 1_000_000} MB, or {_MOST_SECONDS:.0f} s"
            raise ProjectError(f"{spec_text(entry.where)} takes {limits}", location=entry.declared_at)
    return bytes(content)


def _lock_key(entry: WantedPackage) -> str:
    return f"{spec_text(entry.where)}@{entry.revision or ''}"


def _locked_packages(root: Path, text: str) -> tuple[frozenset[str], dict[str, str]]:
    """Return the packages of the lock file: nothing else in the install folder is ever removed; and what they are.

    The latter by `_lock_key`, and only if the declarations are the same. Raises ProjectError where it cannot be read.
    """
    path = root / LOCK
    locked = parse_yaml(read_text(path, root), LOCK).value if path.exists() or path.is_symlink() else None
    if not isinstance(locked, dict):
        return frozenset(), {}
    entries = [entry for entry in locked.get("packages") or () if isinstance(entry, dict)]
    names = frozenset(name for entry in entries if _NAME.fullmatch(name := str(entry.get("name"))))
    pinned = [entry for entry in entries if entry.get("pin")] if locked.get("sha1_hash") == text else []
    pins = {f"{e.get('git') or e.get('tarball')}@{e.get('revision') or ''}": str(e["pin"]) for e in pinned}
    return names, pins


def _write_lock(root: Path, packages: tuple[FetchedPackage, ...], text: str) -> None:
    entries = [
        {
            "name": package.name,
            package.wanted.kind: spec_text(package.wanted.where),
            **({"revision": package.wanted.revision} if package.wanted.revision else {}),
            **({"pin": package.pin} if package.pin else {}),
        }
        for package in packages
    ]
    content = yaml.safe_dump({"packages": entries, "sha1_hash": text}, sort_keys=False)
    write_text(root / LOCK, scrub_text(content))


def _forget_others(folder: Path, names: frozenset[str]) -> None:
    """Remove packages that `packages.yml` no longer needs: they would still be part of the project."""
    for path in (folder / name for name in sorted(names)):
        if path.is_symlink():
            path.unlink()
        elif (path / DBT_FILE).is_file():
            shutil.rmtree(path)
