"""The supported formats of change events, by name. Each is described in its own module."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.cdc.formats import canal, debezium, debezium_flat, dms, maxwell, ogg, rows
from sqlmesh_like.cdc.formats.canal import CANAL
from sqlmesh_like.cdc.formats.debezium import DEBEZIUM
from sqlmesh_like.cdc.formats.debezium_flat import DEBEZIUM_FLAT
from sqlmesh_like.cdc.formats.dms import DMS
from sqlmesh_like.cdc.formats.flink_cdc import FLINK_MESSAGES, IS_CANAL, LIKE_CANAL, LIKE_DEBEZIUM
from sqlmesh_like.cdc.formats.maxwell import MAXWELL
from sqlmesh_like.cdc.formats.message import Message, MessageDialect
from sqlmesh_like.cdc.formats.ogg import OGG
from sqlmesh_like.cdc.formats.rows import ROWS
from sqlmesh_like.project.nodes import CdcFormat

FORMATS: Mapping[CdcFormat, tuple[tuple[str, MessageDialect], ...]] = {
    "debezium": (("true", DEBEZIUM),),
    "debezium_flat": (("true", DEBEZIUM_FLAT),),
    "flink_cdc": ((f"not {IS_CANAL}", LIKE_DEBEZIUM), (IS_CANAL, LIKE_CANAL)),
    "canal": (("true", CANAL),),
    "maxwell": (("true", MAXWELL),),
    "dms": (("true", DMS),),
    "ogg": (("true", OGG),),
    "rows": (("true", ROWS),),
}
"""The dialects of a format, each with the condition (Spark SQL over a line's `value`) for the lines it reads."""

MESSAGE_STYLES: Mapping[str, Message] = {
    **debezium.DEBEZIUM_MESSAGES,
    **debezium_flat.FLAT_MESSAGES,
    **canal.CANAL_MESSAGES,
    **maxwell.MAXWELL_MESSAGES,
    **dms.DMS_MESSAGES,
    **FLINK_MESSAGES,
    **ogg.OGG_MESSAGES,
    **rows.ROW_MESSAGES,
}
"""Layouts of messages, by the `message` that the envelope gives."""

FILE_ROWS: Mapping[CdcFormat, str] = {"dms": dms.ROW, "rows": rows.FILE_ROW}
"""The layout of rows in Parquet and CSV files, of the formats that have such files."""
FILE_OPERATIONS: Mapping[str, str] = {dms.ROW: dms.OP, rows.FILE_ROW: rows.OPERATION}
"""The column of such rows that says what happened to them, if they have one, by their layout."""
