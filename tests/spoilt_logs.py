"""Change logs spoilt as a disk or a faulty writer would, each with what readers say of it then; for both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

Spoil = Callable[[Path, dict[str, Any]], None]


def without_a_delete(path: Path, log: dict[str, Any]) -> None:
    """As a faulty writer would leave it: well-formed, and of the size that the commit says."""
    rows = pq.read_table(path)
    pq.write_table(rows.filter(pc.greater(rows["_sml_weight"], 0)).replace_schema_metadata(rows.schema.metadata), path)
    log["files"][0]["bytes"] = path.stat().st_size


def record(change: Mapping[str, object]) -> Spoil:
    return lambda _, log: log.update(change)


SPOILT: dict[str, tuple[Spoil, str]] = {
    "deleted": (lambda path, _: path.unlink(), "is gone"),
    "cut short": (lambda path, _: path.write_bytes(path.read_bytes()[:-20]), "another size"),
    "without a delete": (without_a_delete, "rows, its commit says"),
    "another version": (record({"version": 2}), "has version 2"),
    "another predecessor": (record({"previous": "20200101000000000_20200101000000001"}), "follows 2020"),
    "other columns": (record({"columns": "0" * 16}), "other columns"),
    "broken record": (record({"files": [{"name": "x"}]}), "broken record"),
}
