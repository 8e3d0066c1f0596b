"""Which events cannot be ingested, and why. Owns the reasons that depend on a table's rows, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmesh_like.cdc.formats.row_images import IMAGES
from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS

LINE = ("value", "file", "line", "position", "kind", "op", "origin", *LOG_COLUMNS)
"""Columns of a line that its event keeps."""
OF_FILE = ("modified",)
"""Columns that the event of a row in a typed file keeps besides: when its file was written (ms since 1970)."""
_REST_OF_LINE = LINE[1:]


def validate_events(frame: Frame, layout: OdsLayout, value: str = "value", also_kept: Sequence[str] = ()) -> Frame:
    """Add `row` (`Decoded`), `reason` (why an event cannot be ingested, or NULL) and `lacks_before_position`.

    `frame` must not have these columns yet: expressions would refer to the old ones. `value`: Spark SQL of the event's
    text, which may depend on its `reason`. `also_kept`: columns of the frame to keep beside `LINE`.
    """
    lonely = layout.is_key_only("before")
    reason = f"coalesce(unreadable, {', '.join(_reasons(layout, lonely))})"
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
        *(*_REST_OF_LINE, *also_kept, "item", *IMAGES, "missing", "unsure"),
        "if(kind = 'delete', before, after) as row",
        *(f"{reason} as reason", f"{moves} and coalesce({blind}, false) as lacks_before_position", f"{value} as value"),
    )


def _reasons(layout: OdsLayout, lonely: str) -> Sequence[str]:
    reasons = [layout.missing_key("row")]
    if layout.may_lack_partition:
        reasons.append(f"if({layout.partition('row')} is null, 'the partition column holds no moment', null)")
    if layout.ingest.order_by:
        why = "a delete whose `before` has only the key has no order: let the source log full rows"
        reasons.append(f"if(kind = 'delete' and {lonely}, {sql_literal(why)}, null)")
    if not layout.ingest.primary_key:
        why = "updates and deletes need a primary_key: a table without one only takes inserts"
        reasons.append(f"if(op in ('u', 'w', 'd'), {sql_literal(why)}, null)")
    return reasons
