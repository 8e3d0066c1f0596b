"""The checks of `sml debug`, one per line. Owns the checks and their messages; starts no Spark.

A check that fails says why and what to do; later checks still run where they can.
"""

from __future__ import annotations

import platform
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.sources.brokers import check_brokers
from sqlmesh_like.cdc.sources.database.database_check import check_database
from sqlmesh_like.errors import MachineError, SmlError
from sqlmesh_like.hudi.catalogs.catalog_settings import metastore_address, metastore_uri
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.conditional_file import lock_folder, require_conditional_writes, require_lockable
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import ParsedProject, RegistrySettings, Source, Target
from sqlmesh_like.project.profile import ProfileRequest, load_target
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.project.settings import find_project
from sqlmesh_like.spark.jvm.jars import ensure_jars, jar_parts, jar_path, jar_state, locked_jars
from sqlmesh_like.spark.jvm.java import find_jdk

_REGISTRY_SECONDS = 5


@dataclass(frozen=True)
class CheckRequest:
    """The flags that choose project and target."""

    start: Path
    profiles_dir: Path | None = None
    profile: str | None = None
    target: str | None = None
    cli_vars: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Check:
    """One line of the output: the name of a check, whether it passed, and what was found."""

    name: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        """
        >>> str(Check("python", True, "3.11.9"))
        'python     OK     3.11.9'
        """
        return f"{self.name:<10} {'OK' if self.ok else 'ERROR':<6} {self.detail}"


def run_checks(asked: CheckRequest) -> Iterator[Check]:
    """Yield all checks in order, each as soon as it is done."""
    project, check = _project(asked)
    yield check
    target = None
    if project is not None:
        target, check = _target(asked, project)
        yield check
    yield _run_check("python", lambda: f"{platform.python_version()}, pyspark {version('pyspark')}")
    if target is not None and target.type == "duckdb":
        return
    yield _run_check("JDK", _jdk)
    yield _run_check("jars", lambda: _jars(target))
    if target is not None:
        yield _run_check("warehouse", lambda: check_warehouse(target.warehouse, target.store))
        yield _run_check("catalog", lambda: _catalog(target))
    for source in () if project is None else project.sources:
        if source.ingest is not None and source.ingest.kafka is not None:
            yield _run_check("kafka", partial(_brokers, source))
        if source.ingest is not None and source.ingest.database is not None:
            yield _run_check("database", partial(check_database, source))
        if source.ingest is not None and source.ingest.registry is not None:
            yield _run_check("registry", partial(_registry, source, source.ingest.registry))


def check_warehouse(warehouse: str, store: StoreSettings) -> str:
    """Describe this base path; a local one is tested with a temporary file, a store with one of its locks.

    Raises MachineError if that fails, or nothing here can read it.
    """
    path = warehouse.removeprefix("file://")
    if "://" in path:
        return _store(warehouse, store)
    base = Path(path)
    existing = next(parent for parent in (base, *base.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        hint = "make it writable, or set `warehouse:` of the target to a folder that is"
        raise MachineError(f"cannot write to {existing}: {error.strerror}", hint=hint) from error
    return f"{base} is writable" if existing == base else f"{base} can be created"


def _store(warehouse: str, store: StoreSettings) -> str:
    use_store(warehouse, store)
    place = folder(warehouse)  # raises where the library is missing, or there is none
    place.names()
    if store.single_writer:
        return f"{warehouse} answers; single_writer: no locks are taken, and one call at a time may write there"
    require_lockable(warehouse)
    require_conditional_writes(lock_folder(warehouse))
    connector = "" if store.needs_pinned_jars(warehouse) else "; Spark reaches it by a connector of its installation"
    return f"{warehouse} answers, and its conditional writes keep locks of all machines{connector}"


def _brokers(source: Source) -> str:
    broker = check_brokers(source)
    return f"{broker} answers, of source {source.name}" if broker else f"source {source.name}: not asked"


def _registry(source: Source, settings: RegistrySettings) -> str:
    SchemaRegistry(replace(settings, timeout=_REGISTRY_SECONDS)).check()
    return f"answers, of source {source.name}"


def _run_check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except SmlError as error:
        return Check(name, False, str(error))


def _project(asked: CheckRequest) -> tuple[ParsedProject | None, Check]:
    try:
        project = load_project(
            find_project(asked.start), asked.cli_vars or {}, lambda request: _resolve_target(asked, request)
        )
    except SmlError as error:
        return None, Check("project", False, str(error))
    return project, Check("project", True, f"{project.name} ({project.root / project.settings_file})")


def _resolve_target(asked: CheckRequest, project: ParsedProject | ProfileRequest) -> Target:
    return load_target(project, asked.profiles_dir, asked.profile, asked.target, asked.cli_vars or {})


def _target(asked: CheckRequest, project: ParsedProject) -> tuple[Target | None, Check]:
    try:
        target = _resolve_target(asked, project)
    except SmlError as error:
        return None, Check("profile", False, str(error))
    runs_on = f"Spark, master {target.master}" if target.type == "spark" else "DuckDB, no JVM"
    return target, Check("profile", True, f"{target.profile}, target {target.name} ({runs_on})")


def _jdk() -> str:
    jdk = find_jdk()
    lacks = "".join(f", no {feature}" for feature in jdk.lacks)
    old = "; warning: it has no fixes since October 2023: install JDK 17 of your system" if jdk.is_old else ""
    return f"{jdk.version} from {jdk.origin} at {jdk.home}{lacks}{old}"


def _jars(target: Target | None) -> str:
    jars = locked_jars(*(jar_parts(target) if target else ()))
    missing = [jar for jar in jars if jar_state(jar) == "missing"]
    if missing:
        raise MachineError(f"{', '.join(map(str, missing))} not cached", hint="run `sml deps`")
    ensure_jars(jars)
    return ", ".join(f"{jar.file_name} verified" for jar in jars) + f" in {jar_path(jars[0]).parent}"


def _catalog(target: Target) -> str:
    if target.catalog == "none":
        return "none: tables are found by their path"
    if target.catalog == "glue":
        return "glue: not asked before the first commit"
    if not metastore_uri(target):
        return "hive: what hive-site.xml on Spark's class path names"
    host, port = metastore_address(target)
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        hint = "start it, or change `catalog: {hive: {uri: thrift://host:port}}` in the target"
        raise MachineError(
            f"no Hive metastore answers at {host}:{port}: {error.strerror or error}", hint=hint
        ) from error
    return f"hive: thrift://{host}:{port} answers"
