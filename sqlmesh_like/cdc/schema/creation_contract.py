"""The permanent parts of a table's declaration. Owns refusing changes of them: rows would no longer be found.

Rows are found by record key and partition: a table that is written with another primary key, another spelling of it
(`OdsLayout.record_key`) or another partition would get a second copy of every row that changes.
"""

from __future__ import annotations

import json

from sqlmesh_like.cdc.schema.ods_layout import HASHED_KEYS, TEXT_KEYS, OdsLayout
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline

CONTRACT_KEY = "made"
_NAMES, _OF_LETTERS = "names", "letters"


def creation_contract(layout: OdsLayout) -> str:
    """The JSON that records a layout's permanent parts in the metadata of every commit."""
    ingest, by = layout.ingest, layout.ingest.partition_by
    partition = None if by is None else [by.column, by.format, by.field]
    entries = {"primary_key": list(ingest.primary_key), "partition_by": partition, "order_by": list(ingest.order_by)}
    names = {} if layout.ascii_names else {_NAMES: _OF_LETTERS}
    zones = {"time_zone": ingest.time_zone, "time_zones": dict(sorted(layout.table.time_zones.items())) or None}
    return json.dumps({**entries, **zones, "spelling": layout.key_spelling, **names}, sort_keys=True)


def has_ascii_names(uri: str) -> bool:
    """Whether the table at `uri` was created when letters beyond ASCII became `_` in names. Needs no JVM."""
    record = Timeline(uri).extra(STATE_PREFIX + CONTRACT_KEY)
    return record is not None and _NAMES not in json.loads(record)


def key_spelling_of(uri: str) -> int:
    """How the table at `uri` spells record keys (`HASHED_KEYS`, `TEXT_KEYS`), or will once created. Needs no JVM."""
    record = Timeline(uri).extra(STATE_PREFIX + CONTRACT_KEY)
    known = json.loads(record).get("spelling") if record else TEXT_KEYS
    return known if known in (HASHED_KEYS, TEXT_KEYS) else TEXT_KEYS


def check_creation_contract(layout: OdsLayout, record: str | None) -> None:
    """Raise IngestError where a table was created with other permanent parts. `record`: that of its last commit."""
    before, now = json.loads(record or "{}"), json.loads(creation_contract(layout))
    changed = [name for name in now if before.get(name) != now[name]]
    if not changed:
        return
    name = layout.table.table
    what = f"{changed[0]} of {name} was {before.get(changed[0])} when the table was made, and is {now[changed[0]]} now"
    if "spelling" in changed:
        what = f"{name} was written by an earlier version, which spelt its keys in another way"
    raise IngestError(
        what,
        location=layout.table.declared_at,
        hint="declare it as it was, or move the table's folder away and run: sml ingest --from earliest",
    )
