"""The record of a table's columns in the metadata of its commits.

Owns how it is written and read; `schema_evolution` decides what changes.
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
    """How events have spelt columns so far, by the table's name for them, where the two differ. Needs no JVM."""
    data = json.loads(Timeline(uri).extra(STATE_PREFIX + _SPELLINGS) or "{}")
    return {str(name): str(spelling) for name, spelling in data.items()}
