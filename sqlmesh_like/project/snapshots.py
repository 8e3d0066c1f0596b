"""Snapshots as files declare them: `{% snapshot %}` blocks and YAML entries with a `relation`. Owns reading both.

https://docs.getdbt.com/docs/build/snapshots. A snapshot is a query and a strategy to tell versions of its rows apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.reading.files import files_under, read_text, relative
from sqlmesh_like.project.reading.values import texts_of

_TAG = re.compile(r"\{%[-+]?\s*(?P<end>end)?snapshot\b\s*(?P<name>[^%\s]*)\s*[-+]?%\}")


@dataclass(frozen=True)
class SnapshotText:
    """A snapshot's template; blanks before it keep lines and columns those of the file."""

    name: str
    path: str
    raw: str
    declared_at: Location


def snapshot_blocks(root: Path, folders: tuple[str, ...]) -> tuple[SnapshotText, ...]:
    """The blocks of all files, in order. Raises ProjectError for a block that is not closed or has no name."""
    paths = files_under(root, folders, (".sql",))
    return tuple(block for path in paths for block in _blocks(read_text(path, root), relative(path, root)))


def relation_text(name: str, relation: str, place: Location) -> SnapshotText:
    """The query of a YAML entry: all rows of its relation."""
    expression = relation.strip()
    if expression.startswith("{{"):
        expression = expression.strip("{} \n")
    return SnapshotText(name, place.path, f"select * from {{{{ {expression} }}}}", place)


def _blocks(text: str, path: str) -> list[SnapshotText]:
    blocks: list[SnapshotText] = []
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        place = Location.at(path, text, tag.start())
        if (opened is None) == bool(tag["end"]):
            message = "endsnapshot without snapshot before it" if tag["end"] else "snapshot inside a snapshot"
            raise ProjectError(message, location=place, hint="write {% snapshot name %} … {% endsnapshot %}")
        if opened is None:
            if not re.fullmatch(r"\w+", tag["name"]):
                raise ProjectError("a snapshot needs a name", location=place, hint="write {% snapshot name %}")
            opened = tag
            continue
        blank = re.sub(r"[^\n]", " ", text[: opened.end()])
        raw = blank + text[opened.end() : tag.start()].rstrip()
        blocks.append(SnapshotText(opened["name"], path, raw, Location.at(path, text, opened.start())))
        opened = None
    if opened is not None:
        place = Location.at(path, text, opened.start())
        raise ProjectError(f"snapshot {opened['name']!r} is not closed", location=place, hint="add {% endsnapshot %}")
    return blocks


@dataclass(frozen=True)
class SnapshotConfig:
    """How versions of a row are kept. `check` None: all columns; `names` are those of the added columns."""

    strategy: str
    unique_key: tuple[str, ...]
    updated_at: str | None
    check: tuple[str, ...] | None
    hard_deletes: str
    current: str | None  # SQL: `dbt_valid_to` of versions that are valid now; None: NULL
    names: Mapping[str, str]


ADDED = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to", "dbt_is_deleted")


def snapshot_config(values: Mapping[str, object], place: Location, name: str) -> SnapshotConfig:
    """The checked settings of a snapshot. Raises ProjectError for missing and wrong ones."""

    def fail(message: str, hint: str) -> ProjectError:
        return ProjectError(f"snapshot {name!r}: {message}", location=place, hint=hint)

    strategy = values.get("strategy")
    if strategy not in ("timestamp", "check"):
        raise fail("it has no strategy" if strategy is None else f"unknown strategy {strategy!r}", "timestamp or check")
    key = texts_of(values.get("unique_key"))
    if not key:
        raise fail("it has no unique_key", "name the column, or a list of them, that identifies a row")
    updated_at = values.get("updated_at")
    if strategy == "timestamp" and not updated_at:
        raise fail("strategy timestamp needs updated_at", "name the column that says when a row was last written")
    columns = values.get("check_cols")
    if strategy == "check" and not columns:
        raise fail("strategy check needs check_cols", "check_cols: all, or a list of columns")
    deletes = values.get("hard_deletes") or ("invalidate" if values.get("invalidate_hard_deletes") else "ignore")
    if deletes not in ("ignore", "invalidate", "new_record"):
        raise fail(f"unknown hard_deletes {deletes!r}", "one of ignore, invalidate, new_record")
    given = values.get("snapshot_meta_column_names") or {}
    names = {key: str(given.get(key, key)) if isinstance(given, Mapping) else key for key in ADDED}
    current = values.get("dbt_valid_to_current")
    return SnapshotConfig(
        str(strategy), key, str(updated_at) if updated_at else None,
        None if columns == "all" or columns == ("all",) or not columns else texts_of(columns),
        str(deletes), str(current) if current else None, names,
    )  # fmt: skip
