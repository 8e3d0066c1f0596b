"""What a commit says of its table's columns.

Owns how that is written and read; `schema_evolution` decides what changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlmesh_like.cdc.schema.schema_evolution import EvolvedSchema
from sqlmesh_like.hudi.commits import COLUMN_CHANGES, STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline

_SPELLINGS = "spellings"


def column_record(settled: EvolvedSchema) -> Mapping[str, str]:
    """Metadata of the commit that brings a table to its next layout."""
    entries = {COLUMN_CHANGES: list(settled.changes), _SPELLINGS: dict(settled.spellings)}
    return {key: json.dumps(value, ensure_ascii=False) for key, value in entries.items() if value}


def spellings_of(uri: str) -> Mapping[str, str]:
    """How events spelt columns of a table so far, where not as the table does. Needs no JVM."""
    data = json.loads(Timeline(uri).extra(STATE_PREFIX + _SPELLINGS) or "{}")
    return {str(name): str(spelling) for name, spelling in data.items()}
