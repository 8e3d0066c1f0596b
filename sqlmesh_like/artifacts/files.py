"""Writing into the target folder. Owns how: whole files or nothing, and compiled SQL by the path of its source."""

from __future__ import annotations

import datetime
import json
import os
import uuid
from pathlib import Path, PurePosixPath

from sqlmesh_like.errors import MachineError
from sqlmesh_like.render.rendered import RenderedProject


def write_json(path: Path, data: object, indent: int | None = 2) -> None:
    """The value as JSON, keys as given. Raises MachineError where the folder cannot be written.

    Large files have no `indent`: with one Python's own encoder writes them, at a tenth of the speed.
    """
    write_text(path, json_text(data, indent) + "\n")


def json_text(data: object, indent: int | None = None) -> str:
    return json.dumps(data, indent=indent, ensure_ascii=False, default=str)


def write_text(path: Path, text: str) -> None:
    """Replaces the file as a whole: a reader never sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Made by hand: a temporary file of `tempfile` is readable by its owner alone, and artifacts are for others too.
        beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        hint = "make the folder writable, or set target-path in the settings"
        raise MachineError(f"cannot write {path}: {error.strerror}", hint=hint) from error


def write_compiled(folder: Path, rendered: RenderedProject) -> tuple[Path, ...]:
    """`compiled/<project>/<path>` of every model and test, under the target folder; the paths written.

    Hand-written incremental SQL gets a second file, `<name>.incremental.sql`: its text where the table exists.
    """
    root = folder / "compiled" / rendered.name
    texts: dict[Path, str] = {}
    for model in (*rendered.models, *rendered.analyses):
        texts[root / compiled_model_path(model.path, model.name, model.unique_id)] = model.sql
        if model.incremental_sql is not None:
            texts[(root / model.path).with_suffix(".incremental.sql")] = model.incremental_sql
    for test in rendered.tests:
        texts[root / compiled_test_path(test.path, test.name)] = test.sql
    for path, text in texts.items():
        if not _holds(path, text):  # to replace a file costs ten times what reading it does
            write_text(path, text)
    return tuple(texts)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def compiled_model_path(path: str, name: str, unique_id: str) -> PurePosixPath:
    """A file may hold several snapshots: they lie in a folder of its name."""
    return PurePosixPath(path) / f"{name}.sql" if unique_id.startswith("snapshot.") else PurePosixPath(path)


def compiled_test_path(declared_in: str, name: str) -> PurePosixPath:
    """As in dbt, the tests of a YAML file lie in a folder of its name."""
    path = PurePosixPath(declared_in)
    return path if path.suffix == ".sql" else path / f"{name}.sql"


def timestamp(moment: datetime.datetime) -> str:
    """UTC in ISO 8601 with microseconds, as dbt writes it.

    >>> timestamp(datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC))
    '2024-01-02T00:00:00.000000Z'
    """
    # strftime writes the year 1, which says "never", without zeros.
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
