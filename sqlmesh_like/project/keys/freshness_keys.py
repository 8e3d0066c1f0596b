"""The keys of `freshness:`."""

from __future__ import annotations

from typing import Literal, get_args

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import choice, count, entry, text

Period = Literal["minute", "hour", "day"]
THRESHOLD = Shape("a threshold", {
    "count": Key(count(0), help="Number of periods.", example=12),
    "period": Key(choice(*get_args(Period)), help="The unit.", example="hour"),
})  # fmt: skip
FRESHNESS = Shape("freshness", {
    "warn_after": Key(entry(THRESHOLD), help="Age of the newest row from which there is a warning.",
                      example={"count": 12, "period": "hour"}),
    "error_after": Key(entry(THRESHOLD), help="Age of the newest row from which there is an error.",
                       example={"count": 1, "period": "day"}),
    "filter": Key(text, help="SQL condition on the rows that are checked.", example="region = 'eu'"),
})  # fmt: skip
