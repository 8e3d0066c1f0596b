"""The keys of `freshness:`."""

from __future__ import annotations

from typing import Literal, get_args

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import choice, count, entry, text

Period = Literal["minute", "hour", "day"]
THRESHOLD = Shape("a threshold", {
    "count": Key(count(0), help="So many periods.", example=12),
    "period": Key(choice(*get_args(Period)), help="The unit.", example="hour"),
})  # fmt: skip
FRESHNESS = Shape("freshness", {
    "warn_after": Key(entry(THRESHOLD), help="An age of the newest row that is a warning.",
                      example={"count": 12, "period": "hour"}),
    "error_after": Key(entry(THRESHOLD), help="An age of the newest row that is an error.",
                       example={"count": 1, "period": "day"}),
    "filter": Key(text, help="SQL: the rows that are looked at.", example="region = 'eu'"),
})  # fmt: skip
