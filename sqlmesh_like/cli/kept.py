"""A project as an earlier call read it. Owns keeping it in the user's cache, and when it may be taken from there.

It may where everything that reading looked at is as it was, and the program, its flags and the target are the same.
What has another meaning in each call (`run_started_at`), or says something while it is rendered, is read anew.
`DBT_PARTIAL_PARSE=false` reads everything anew, as in dbt. What is kept lies in the user's own cache and in no project:
a pickle in a folder that somebody sent would be their program.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.cli.checked import program
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.project.reads import Reads, noting
from sqlmesh_like.project.spec import IngestSource, ParsedProject, Target
from sqlmesh_like.render.rendered import RenderedProject

KEPT = 40
"""So many calls, of all projects of a user, are kept."""


@dataclass(frozen=True)
class ReadProject:
    """What the files of a project come to for one target. `kept`: where other things that follow from it may lie."""

    project: ParsedProject
    target: Target
    rendered: RenderedProject
    graph: Graph
    kept: Path | None = None


@dataclass(frozen=True)
class _Entry:
    reads: Reads
    target: tuple[object, ...]
    project: ParsedProject
    rendered: RenderedProject
    graph: Graph


def kept_project(
    root: Path,
    flags: Flags,
    load: Callable[[], ParsedProject],
    aim: Callable[[ParsedProject], Target],
    render: Callable[[ParsedProject, Target], tuple[RenderedProject, Graph]],
    is_silent: Callable[[], bool],
) -> ReadProject:
    """The project, from the cache where that holds. `aim` finds the target; `is_silent`: nothing was told meanwhile."""
    path = _path(root, flags)
    is_wanted = os.environ.get("DBT_PARTIAL_PARSE", "true").lower() not in ("0", "false", "f", "no")
    entry = _stored(path) if is_wanted else None
    if entry is not None and entry.reads.hold():
        target = aim(entry.project)
        if _shown(target) == entry.target:
            return ReadProject(entry.project, target, entry.rendered, entry.graph, path)
    with without_collector(), noting() as reads:
        project = load()
        target = aim(project)
        rendered, graph = render(project, target)
    may_keep = is_wanted and not reads.is_clocked and is_silent() and not any(map(_may_hold_password, project.sources))
    is_kept = may_keep and _store(path, _Entry(reads, _shown(target), project, rendered, graph))
    return ReadProject(project, target, rendered, graph, path if is_kept else None)


@contextmanager
def without_collector() -> Iterator[None]:
    """Within, cycles are not looked for: thousands of values that stay would be walked through again and again.

    Afterwards they are set aside, but not where Spark has been used: what is set aside is never freed, and keeps alive
    the Java objects that it stands for.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if "py4j" not in sys.modules:
            gc.freeze()
        if was_on:
            gc.enable()


def text_beside(kept: Path | None, name: str, make: Callable[[], str]) -> str:
    """A text that follows from a kept project alone, from the cache or made now."""
    if kept is None:
        return make()
    path = kept.with_suffix(f".{name}")
    try:
        if path.stat().st_mtime_ns >= kept.stat().st_mtime_ns:
            return path.read_text(encoding="utf-8")
    except OSError:
        pass  # not made yet
    text = make()
    _write(path, text.encode())
    return text


def _path(root: Path, flags: Flags) -> Path:
    from sqlmesh_like.engine.jars import cache_dir

    chosen = (flags.vars, flags.target, flags.profile, flags.profiles_dir, flags.full_refresh, flags.threads)
    text = repr((str(root), chosen, sys.version, program()))
    return cache_dir() / "projects" / f"{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:32]}.pickle"


def _shown(target: Target) -> tuple[object, ...]:
    """What templates and names can know of a target."""
    return (target.profile, target.name, target.type, target.schema, target.warehouse, target.threads, target.catalog)


def _may_hold_password(source: object) -> bool:
    ingest = getattr(source, "ingest", None)
    return isinstance(ingest, IngestSource) and bool(ingest.kafka and ingest.kafka.get("options"))


def _stored(path: Path) -> _Entry | None:
    try:
        data = path.read_bytes()
        with without_collector():
            entry = pickle.loads(data)
    except OSError:
        return None
    except Exception:  # noqa: BLE001 (whatever a damaged file raises, the project is read anew)
        return None
    return entry if isinstance(entry, _Entry) else None


def _store(path: Path, entry: _Entry) -> bool:
    """Whether it could be kept: a cache that cannot be written costs time only."""
    try:
        data = pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError):  # a value of some template's making
        return False
    return _write(path, data)


def _write(path: Path, data: bytes) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = path.with_name(f".{uuid.uuid4().hex}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(beside, path)
        _forget_old(path.parent)
    except OSError:
        return False
    return True


def _forget_old(folder: Path) -> None:
    known = sorted(folder.glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in known[KEPT:]:
        for path in folder.glob(f"{old.stem}.*"):
            path.unlink(missing_ok=True)
