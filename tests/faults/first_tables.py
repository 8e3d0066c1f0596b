"""The tables of the shop before its first event, made without Spark. Owns their properties and first commits.

They have no rows, and the columns that Spark gives them; a model's record says that it has read its inputs so far.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.hudi.writer.commit_encoding import CommitContent, encode_commit
from sqlmesh_like.names import PARTITION

_PROPERTIES = """
hoodie.table.name=dws_{name}
hoodie.table.checksum={checksum}
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=9
hoodie.table.initial.version=9
hoodie.timeline.layout.version=2
hoodie.timeline.path=timeline
hoodie.timeline.history.path=history
hoodie.table.format=native
hoodie.table.recordkey.fields=_sml_key
hoodie.table.partition.fields={partition}
hoodie.table.keygenerator.type={keys}
hoodie.record.merge.mode=COMMIT_TIME_ORDERING
hoodie.datasource.write.drop.partition.columns=false
hoodie.datasource.write.hive_style_partitioning=true
hoodie.datasource.write.partitionpath.urlencode=false
hoodie.table.cdc.enabled=false
hoodie.table.multiple.base.file.formats.enable=false
hoodie.table.timeline.timezone=UTC
hoodie.populate.meta.fields=true
hoodie.table.base.file.format=PARQUET
"""
_DATE = {"type": "int", "logicalType": "date"}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
_INPUTS: dict[str, dict[str, object]] = {
    "orders": {"id": "int", "customer": "int", "amount": "int", "day": _DATE},
    "customers": {"id": "int", "region": "string"},
}
_MODELS: dict[str, dict[str, object]] = {
    "detail": {"id": "int", "customer": "int", "amount": "int", "region": "string"},
    "region": {
        "region": "string", "n": "long", "total": "long", "top": "int", "_sml_k0": "string", "_sml_rows": "long",
        "_sml_count_0": "long", "_sml_sum_0": _DECIMAL, "_sml_max_0": "int",
    },
    "customer": {"customer": "int", "days": "long"},
    "daily": {"day": _DATE, "id": "int", "amount": "int", PARTITION: "string"},
}  # fmt: skip


def make_inputs(root: Path, clock_ahead: timedelta = timedelta()) -> None:
    """The tables that change, below the warehouse of the project at `root`."""
    began = datetime.now(UTC) + clock_ahead - timedelta(hours=2)
    for name, columns in _INPUTS.items():
        _make(root / "warehouse" / "dws", name, columns, {"sml.by": "test"}, began)


def make_tables(root: Path, clock_ahead: timedelta = timedelta()) -> None:
    """The inputs, then the models, below the warehouse of the project at `root`, by a clock that is so far ahead."""
    warehouse, began = root / "warehouse" / "dws", datetime.now(UTC) + clock_ahead - timedelta(hours=1)
    make_inputs(root, clock_ahead)
    for number, (name, columns) in enumerate(_MODELS.items(), 1):
        record = _record(root, name)
        _make(warehouse, name, columns, {"sml.record": record}, began + timedelta(minutes=number))


def _record(root: Path, name: str) -> str:
    """What a first build of the model would say of itself."""
    lake = open_lake(load(Invocation(project_dir=root)))
    planner = lake.planner(clock(None))
    planned = planner.plan(planner.rendered.model(f"model.shop.{name}"), {})
    return planned.record("full_refresh", 1, {}).to_json()


def _make(warehouse: Path, name: str, columns: dict[str, object], extra: dict[str, str], at: datetime) -> None:
    hoodie = warehouse / name / ".hoodie"
    (hoodie / "timeline" / "history").mkdir(parents=True)
    is_partitioned = PARTITION in columns
    checksum = crc32(f".dws_{name}".encode())  # of database and table, as Hudi computes it
    layout = {"partition": PARTITION if is_partitioned else "", "keys": "SIMPLE" if is_partitioned else "NON_PARTITION"}
    (hoodie / "hoodie.properties").write_text(_PROPERTIES.format(name=name, checksum=checksum, **layout))
    fields: Sequence[object] = [
        *({"name": column, "type": ["null", type_], "default": None} for column, type_ in columns.items()),
        {"name": "_sml_key", "type": "string"},
        {"name": "_hoodie_is_deleted", "type": "boolean"},
    ]
    schema = json.dumps({"type": "record", "name": f"dws_{name}_record", "namespace": f"h.{name}", "fields": fields})
    commit = encode_commit(CommitContent("BULK_INSERT", (), {"schema": schema, **extra}))
    begun, done = (each.strftime("%Y%m%d%H%M%S%f")[:17] for each in (at, at + timedelta(seconds=1)))
    (hoodie / "timeline" / f"{begun}.commit.requested").touch()
    (hoodie / "timeline" / f"{begun}.inflight").touch()
    (hoodie / "timeline" / f"{begun}_{done}.commit").write_bytes(commit)
