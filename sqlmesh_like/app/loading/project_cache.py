"""A project as an earlier call read it. Owns storing it in the user's cache, and when it may be read from there.

It may where everything that was read is unchanged, and the program, its flags and the target are the same.
Nodes that depend on the call (`run_started_at`) are rendered again; messages of the others are repeated.
The cache is in the user's own cache folder and never in a
project: a pickle in a project from somebody else could run their code. So owner and mode of folder and file are
checked first.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.check_cache import program_version
from sqlmesh_like.app.reporter import Level
from sqlmesh_like.own_files import read_own, require_own
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.project.nodes import IngestSource, ParsedProject, Target
from sqlmesh_like.project.reading.file_dependencies import FileDependencies, recording
from sqlmesh_like.project.reading.project_warnings import RepeatedWarning
from sqlmesh_like.render.rendered import RenderedProject
from sqlmesh_like.secrets import scrub_bytes, scrub_text

LoggedMessage = tuple[str | RepeatedWarning, Level, str | None]
"""A line for people, its level, and the node whose template logged it, if one did."""
MAX_PROJECTS = 40
"""Number of entries that are kept for all projects of a user."""


@dataclass(frozen=True)
class CachedProject:
    """A project read and rendered for one target. Values derived from it are cached beside `cache_path`.

    `entry_path`: where the project is cached, also if some nodes are rendered again by each call.
    """

    project: ParsedProject
    target: Target
    rendered: RenderedProject
    graph: Graph
    cache_path: Path | None = None
    messages: tuple[LoggedMessage, ...] = ()
    """The messages of its templates, where it was read by an earlier call."""
    entry_path: Path | None = None


@dataclass(frozen=True)
class _Entry:
    reads: FileDependencies
    target: tuple[object, ...]
    project: ParsedProject
    rendered: RenderedProject
    graph: Graph
    messages: tuple[LoggedMessage, ...]


def cached_project(
    root: Path,
    invocation: Invocation,
    load: Callable[[], ParsedProject],
    resolve_target: Callable[[ParsedProject], Target],
    render: Callable[[ParsedProject, Target], tuple[RenderedProject, Graph]],
    messages: Callable[[], tuple[LoggedMessage, ...]],
    refresh: Callable[[ParsedProject, Target, RenderedProject, Collection[str]], RenderedProject | None],
    limited: Callable[[Callable[[], bytes | None]], bytes | None] | None = None,
) -> CachedProject:
    """Return the project, from the cache where that is valid. `messages`: returns what templates have logged so far.

    `refresh` returns the project with the nodes of these ids rendered again, None where that fails. `limited` calls a
    function in a process with limits; the project is read there, and its pickle loaded here.
    """
    path = _cache_path(root, invocation)
    entry = _load_entry(path) if invocation.partial_parse else None
    if entry is not None and entry.reads.are_unchanged():
        target = resolve_target(entry.project)
        if _visible_settings(target) == entry.target and (now := _as_it_is_now(entry, target, path, refresh)):
            return now

    def read_project() -> tuple[_Entry, Target]:
        with without_collector(), recording() as reads:
            project = load()
            target = resolve_target(project)
            rendered, graph = render(project, target)
        return _Entry(reads, _visible_settings(target), project, rendered, graph, messages()), target

    data = None if limited is None else limited(lambda: _pickle_entry(read_project()[0]))
    if data is None:  # also where a template created a value that cannot be sent: its reading ended within the limits
        entry, target = read_project()
    else:
        with without_collector():
            entry = pickle.loads(data)
        target = resolve_target(entry.project)
    is_kept = invocation.partial_parse and _may_keep(entry) and _save_entry(path, entry, data)
    cache_path = path if is_kept and not entry.reads.clocked else None
    entry_path = path if is_kept else None
    return CachedProject(entry.project, target, entry.rendered, entry.graph, cache_path, entry_path=entry_path)


def _may_keep(entry: _Entry) -> bool:
    is_same_again = not entry.rendered.errors and not entry.reads.is_clocked
    return is_same_again and not any(map(_may_hold_password, entry.project.sources))


def _as_it_is_now(
    entry: _Entry,
    target: Target,
    path: Path,
    refresh: Callable[[ParsedProject, Target, RenderedProject, Collection[str]], RenderedProject | None],
) -> CachedProject | None:
    clocked = entry.reads.clocked
    if not clocked:
        return CachedProject(entry.project, target, entry.rendered, entry.graph, path, entry.messages, path)
    with without_collector():
        rendered = refresh(entry.project, target, entry.rendered, clocked)
    if rendered is None:
        return None
    messages = tuple(message for message in entry.messages if message[2] not in clocked)
    return CachedProject(entry.project, target, rendered, entry.graph, None, messages, path)


@contextmanager
def without_collector() -> Iterator[None]:
    """Turn the garbage collector off: it would traverse thousands of long-lived values again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def cached_text(cache_path: Path | None, name: str, make: Callable[[], str]) -> str:
    """Return a text that depends only on a cached project, from the cache or from `make`."""
    if cache_path is None:
        return make()
    path = cache_path.with_suffix(f".{name}")
    try:
        if path.stat().st_mtime_ns >= cache_path.stat().st_mtime_ns and (kept := read_own(path)) is not None:
            return kept.decode()
    except (OSError, UnicodeDecodeError):
        pass  # not cached yet
    text = make()
    write_beside(path, text)
    return text


def write_beside(path: Path, text: str) -> None:
    """Store a text beside a cached project, without secrets; where it cannot be written, it only costs time."""
    _write(path, scrub_text(text).encode())


def _cache_path(root: Path, invocation: Invocation) -> Path:
    from sqlmesh_like.spark.jvm.jars import cache_dir

    asked = invocation
    chosen = (asked.vars, asked.target, asked.profile, asked.profiles_dir, asked.full_refresh, asked.threads)
    text = repr((str(root), chosen, asked.target_path, sys.version, program_version()))
    return cache_dir() / "projects" / f"{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:32]}.pickle"


def _visible_settings(target: Target) -> tuple[object, ...]:
    """Return the settings of a target that templates and names can depend on."""
    return (target.profile, target.name, target.type, target.schema, target.warehouse, target.threads, target.catalog)


def _may_hold_password(source: object) -> bool:
    ingest = getattr(source, "ingest", None)
    if not isinstance(ingest, IngestSource):
        return False
    return (
        ingest.registry is not None or ingest.database is not None or bool(ingest.kafka and ingest.kafka.get("options"))
    )


def _load_entry(path: Path) -> _Entry | None:
    require_own(path.parent)
    data = read_own(path)
    if data is None:
        return None
    try:
        with without_collector():
            entry = pickle.loads(data)
    except Exception:  # noqa: BLE001 (whatever a damaged file raises, the project is read anew)
        return None
    return entry if isinstance(entry, _Entry) else None


def _pickle_entry(entry: _Entry) -> bytes | None:
    try:
        return pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):  # a value that some template created
        return None


def _save_entry(path: Path, entry: _Entry, data: bytes | None) -> bool:
    """Return whether the entry could be stored: a cache that cannot be written costs only time. `data`: its pickle."""
    data = data or _pickle_entry(entry)
    if data is None:
        return False
    if scrub_bytes(data) != data:  # a file of the project contains a secret: it must not be copied
        return False
    return _write(path, data)


def _write(path: Path, data: bytes) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = path.with_name(f".{uuid.uuid4().hex}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(beside, path)
        _evict_old(path.parent)
    except OSError:
        return False
    return True


def _evict_old(folder: Path) -> None:
    known = sorted(folder.glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in known[MAX_PROJECTS:]:
        for path in folder.glob(f"{old.stem}.*"):
            path.unlink(missing_ok=True)
