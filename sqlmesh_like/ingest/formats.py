"""The formats of change events that are taken in. Owns the table of them; each is described in its own file."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.ingest import canal, debezium, dms, maxwell
from sqlmesh_like.ingest.canal import CANAL
from sqlmesh_like.ingest.debezium import DEBEZIUM
from sqlmesh_like.ingest.dms import DMS
from sqlmesh_like.ingest.flink_cdc import IS_CANAL, LIKE_CANAL, LIKE_DEBEZIUM
from sqlmesh_like.ingest.maxwell import MAXWELL
from sqlmesh_like.ingest.message import Dialect, Message
from sqlmesh_like.project.nodes import CdcFormat

FORMATS: Mapping[CdcFormat, tuple[tuple[str, Dialect], ...]] = {
    "debezium": (("true", DEBEZIUM),),
    "flink_cdc": ((f"not {IS_CANAL}", LIKE_DEBEZIUM), (IS_CANAL, LIKE_CANAL)),
    "canal": (("true", CANAL),),
    "maxwell": (("true", MAXWELL),),
    "dms": (("true", DMS),),
}
"""The dialects of a format, each with the condition (Spark SQL over a line's `value`) of the lines that it reads."""

MESSAGES: Mapping[str, Message] = {
    **debezium.MESSAGES,
    **canal.MESSAGES,
    **maxwell.MESSAGES,
    **dms.MESSAGES,
}
"""How a message is laid out, by the `message` that its envelope names."""
