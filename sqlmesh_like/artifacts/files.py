"""Writes files into the target folder: atomically, without secrets, and compiled SQL by the path of its source."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sqlmesh_like.control_characters import escape_json
from sqlmesh_like.errors import MachineError, ProjectError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.paths import output_path
from sqlmesh_like.regular_files import read_regular, write_new
from sqlmesh_like.remedies import remedy
from sqlmesh_like.render.rendered import RenderedProject
from sqlmesh_like.secrets import scrub_text

REPORT = "report.html"
"""The page of `sml report` in the target folder."""


def write_json(path: Path, data: object, indent: int | None = 2) -> None:
    """Write a value as JSON, keys in the order given. Raises MachineError where the folder cannot be written.

    Large files should have no `indent`: with one, Python uses its pure-Python encoder, at a tenth of the speed.
    """
    write_text(path, json_text(data, indent) + "\n")


def json_text(data: object, indent: int | None = None) -> str:
    """Return a value as JSON that a terminal only displays."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, default=str)
    return text if text.isascii() else escape_json(text)


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically; a link of its name is replaced too. Raises MachineError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by `tempfile`: its files are readable only by their owner, and others may read artifacts.
        beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            write_new(beside, _encode_text(text))
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)  # after a full disk or a signal
    except OSError as error:
        raise _cannot_write(path, error) from error


def require_writable(folder: Path) -> None:
    """Raise MachineError where no file can be created in a folder or, as long as it is missing, beside it."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(path: Path, error: OSError) -> MachineError:
    hint = remedy(error, "the same command again") or "make the folder writable, or set target-path in the settings"
    return MachineError(f"cannot write {path}: {error.strerror}", hint=hint)


def _encode_text(text: str) -> bytes:
    """Encode without secrets as UTF-8; a lone surrogate, which UTF-8 cannot encode, becomes an escape."""
    return scrub_text(text).encode("utf-8", "backslashreplace")


def write_compiled(folder: Path, rendered: RenderedProject) -> tuple[Path, ...]:
    """Write `compiled/<project>/<path>` of every model, analysis and test below the target folder; return the paths.

    Hand-written incremental SQL gets a second file, `<name>.incremental.sql`: the SQL for when the table exists.
    """
    root = output_path(folder, f"compiled/{rendered.name}")
    texts: dict[PurePosixPath, str] = {}
    for model in (*rendered.models, *rendered.analyses):
        texts[compiled_model_path(model.path, model.name, model.unique_id)] = model.sql
        if model.incremental_sql is not None:
            texts[PurePosixPath(model.path).with_suffix(".incremental.sql")] = model.incremental_sql
    for test in rendered.tests:
        texts[compiled_test_path(test.path, test.short_name or test.name)] = test.sql
    for path in texts:
        if ".." in path.parts or path.is_absolute():
            raise ProjectError(f"{path} is not below the project: it has no place among the compiled files")
    if root.exists() or not _write_at_once(root, texts):
        for parent in {path.parent for path in texts}:
            output_path(root, str(parent))
        for path, text in texts.items():
            if not _holds(root / path, text):  # replacing a file takes ten times as long as reading it
                write_text(root / path, text)
    return tuple(root / path for path in texts)


def _write_at_once(root: Path, texts: Mapping[PurePosixPath, str]) -> bool:
    """Write a new folder in a tenth of the time, by renaming it when all files are in it.

    Returns False where that fails: another call has created it meanwhile, or it cannot be written.
    """
    beside = root.with_name(f".{root.name}.{uuid.uuid4().hex}")
    try:
        for folder in {beside / path.parent for path in texts}:
            folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_new(f"{beside}/{path}", _encode_text(text))
        os.replace(beside, root)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        return False
    return True


def _holds(path: Path, text: str) -> bool:
    try:
        return read_regular(path) == _encode_text(text)
    except OSError:
        return False


def compiled_model_path(path: str, name: str, unique_id: NodeId) -> PurePosixPath:
    """Return the path of a model's compiled SQL; a snapshot's is in a folder of its file, which may have several."""
    return PurePosixPath(path) / f"{name}.sql" if unique_id.kind == "snapshot" else PurePosixPath(path)


def compiled_test_path(declared_in: str, name: str) -> PurePosixPath:
    """Return the path of a test's compiled SQL; as in dbt, tests of a YAML file are in a folder of its name."""
    path = PurePosixPath(declared_in)
    return path if path.suffix == ".sql" else path / f"{name}.sql"


def timestamp(moment: datetime.datetime) -> str:
    """Return a time in UTC, in ISO 8601 with microseconds, as dbt writes it.

    >>> timestamp(datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC))
    '2024-01-02T00:00:00.000000Z'
    """
    # Not strftime: it writes the year 1, which means "never", without leading zeros.
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
