"""Which events cannot be ingested, and why. Owns the reasons that depend on a table's rows, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sqlmesh_like.cdc.formats.row_images import IMAGES, names_where
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS
from sqlmesh_like.names import Column

LINE = ("value", "file", "line", "position", "kind", "op", "origin", *LOG_COLUMNS)
"""Columns of a line that its event keeps."""
OF_FILE = ("modified",)
"""Columns that the event of a row in a typed file keeps besides: when its file was written (ms since 1970)."""
_REST_OF_LINE = LINE[1:]


def validate_events(
    frame: Frame,
    layout: OdsLayout,
    value: str = "value",
    also_kept: Sequence[str] = (),
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> Frame:
    """Add `row` (`Decoded`), `reason` (why an event cannot be ingested, or NULL) and `lacks_before_position`.

    With `deletes: soft`, `missing` of a delete names the columns that the event does not have of its row.

    `frame` must not have these columns yet: expressions would refer to the old ones. `value`: Spark SQL of the event's
    text, which may depend on its `reason`. `also_kept`: columns of the frame to keep beside `LINE`. `defaults`: Spark
    SQL of the defaults that events state of their columns.
    """
    lonely = layout.is_key_only("before")
    reason = f"coalesce(unreadable, {', '.join(_reasons(layout, lonely, defaults))})"
    moves = "true" if layout.partition_field and layout.ingest.primary_key else "false"
    if layout.ingest.order_by:
        # Events come in any order: the row before may not be the one that is stored, or be stored later.
        blind = "kind in ('upsert', 'delete')"
    else:
        # This holds for inserts too: one can be older than the stored row, which may be in another partition by now.
        is_bare = f"(before is null or {lonely} or not is_told)"
        is_other = f"{layout.key('before')} != {layout.key('after')}" if layout.has_key else "false"
        blind = f"(kind = 'upsert' and ({is_bare} or {is_other})) or (kind = 'delete' and ({lonely} or not is_told))"
    return frame.selectExpr(
        *(*_REST_OF_LINE, *also_kept, "item", *IMAGES, f"{_missing(layout, lonely, defaults)} as missing", "unsure"),
        "if(kind = 'delete', before, after) as row",
        *(f"{reason} as reason", f"{moves} and coalesce({blind}, false) as lacks_before_position", f"{value} as value"),
    )


def _reasons(layout: OdsLayout, lonely: str, defaults: Mapping[str, str]) -> Sequence[str]:
    reasons = [layout.missing_key("row")]
    if layout.may_lack_partition:
        reasons.append(f"if({layout.partition('row')} is null, 'the partition column holds no moment', null)")
    if layout.ingest.order_by:
        why = "a delete whose `before` has only the key has no order: let the source log full rows"
        has_key_only = f"({lonely} or (not is_told and {_is_filled(layout, defaults)}))"
        reasons.append(f"if(kind = 'delete' and {has_key_only}, {sql_literal(why)}, null)")
    if not layout.ingest.primary_key:
        why = "updates and deletes need a primary_key: a table without one only takes inserts"
        reasons.append(f"if(op in ('u', 'w', 'd'), {sql_literal(why)}, null)")
    return reasons


def _missing(layout: OdsLayout, lonely: str, defaults: Mapping[str, str]) -> str:
    """Spark SQL of `missing`, with what a delete leaves out where the table keeps its row.

    In the log's order an earlier version has what was logged, too, so a value that may be none is taken from there.
    With `order_by` the earlier version may not be there yet: NULL counts as the row's, unless events are `partial`.
    """
    ingest = layout.ingest
    if ingest.deletes != "soft":
        return "missing"
    may_lack = f"({lonely} or not is_told)"
    if ingest.updates == "partial":
        may_lack = "true"
    elif ingest.order_by:
        return "missing"
    ordered = {name.lower() for name in ingest.order_by}
    names = names_where(
        {
            column.name: f"{_is_null(column)} or (not is_told and {_is_zero(column, defaults)})"
            for column in layout.beside_key
            if column.name.lower() not in ordered
        }
    )
    return f"if(kind = 'delete' and {may_lack}, array_union(missing, {names}), missing)"


def _is_filled(layout: OdsLayout, defaults: Mapping[str, str]) -> str:
    """Spark SQL: whether nothing that `before` has beside the key needs to be the row's."""
    checks = [f"({_is_null(column)} or {_is_zero(column, defaults)})" for column in layout.beside_key]
    return " and ".join(checks) if checks else "false"


def _is_null(column: Column) -> str:
    return f"before.{quoted_name(column.name)} is null"


def _is_zero(column: Column, defaults: Mapping[str, str]) -> str:
    """Spark SQL: whether `before` has in a column what a source that logs nothing of it may give.

    Debezium fills columns that are NOT NULL, of which its source logs nothing, with their default or a value like 0.
    """
    value = f"before.{quoted_name(column.name)}"
    zero = _ZEROS[_zero_of(column.type or "string")].format(value)
    return f"({zero} or {value} <=> {defaults[column.name]})" if column.name in defaults else f"({zero})"


def _zero_of(kind: str) -> str:
    return kind if kind in _ZEROS else "number"


_ZEROS = {
    "number": "{0} = 0",
    "float": "cast({0} as double) = 0.0D",
    "double": "{0} = 0.0D",
    "string": "{0} in ('', '0', '{{}}', '[]', '00:00:00', '00:00:00Z', 'P0Y0M0DT0H0M0S')",
    "boolean": "not {0}",
    "binary": "base64({0}) = ''",
    "date": "unix_date({0}) = 0",
    "timestamp": "unix_micros({0}) = 0",
}
"""Spark SQL: whether a value of a type is what Debezium's converters give for a column that is NOT NULL."""
