"""`freshness` and `loaded_at_field` of sources, as in dbt. Owns their keys and how a table's override its source's."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import cast

from sqlmesh_like.project.keys.freshness_keys import FRESHNESS, THRESHOLD, Period
from sqlmesh_like.project.reading.yaml_node import YamlNode

_LENGTH = {"minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Threshold:
    """The age of the newest row beyond which a table is stale, as a number of periods."""

    count: int
    period: Period

    @property
    def age(self) -> datetime.timedelta:
        """
        >>> Threshold(2, "hour").age
        datetime.timedelta(seconds=7200)
        """
        return datetime.timedelta(seconds=self.count * _LENGTH[self.period])


@dataclass(frozen=True)
class Freshness:
    """When a source table is stale. `filter`: SQL over its rows; `loaded_at`: SQL for when a row was loaded, None: by
    the table's commits.
    """

    warn_after: Threshold | None = None
    error_after: Threshold | None = None
    filter: str | None = None
    loaded_at: str | None = None
    is_off: bool = False  # `freshness: null`

    @property
    def is_asked(self) -> bool:
        """Whether there is a threshold to check."""
        return self.warn_after is not None or self.error_after is not None


def parse_freshness(node: YamlNode, default: Freshness | None = None) -> Freshness:
    """The freshness that a source or table declares, over that of its source; `freshness: null`: not checked.

    Raises ProjectError for wrong keys and values.
    """
    config = node.get("config")
    levels = [node, *([config] if config is not None and isinstance(config.value, dict) else [])]
    freshness = default or Freshness()
    for level in levels:
        if (query := level.get("loaded_at_query")) is not None:
            raise query.error("loaded_at_query is not supported", "give loaded_at_field: a column or an expression")
        loaded_at = level.get("loaded_at_field")
        column = freshness.loaded_at if loaded_at is None else loaded_at.text("loaded_at_field")
        freshness = replace(freshness, loaded_at=column)
        if "freshness" in level.children:
            freshness = _over(level.children["freshness"], freshness)
    return freshness


def _over(node: YamlNode, default: Freshness) -> Freshness:
    if node.value is None:
        return Freshness(loaded_at=default.loaded_at, is_off=True)
    FRESHNESS.check(node)
    chosen = node.get("filter")
    return Freshness(
        _threshold(node, "warn_after", default.warn_after),
        _threshold(node, "error_after", default.error_after),
        default.filter if chosen is None else chosen.text("filter"),
        default.loaded_at,
    )


def _threshold(node: YamlNode, key: str, default: Threshold | None) -> Threshold | None:
    child = node.children.get(key)
    if child is None:
        return default
    if child.value is None:
        return None
    replace(THRESHOLD, what=key).check_keys(child)
    count, period = child.get("count"), child.get("period")
    if count is None and period is None:
        return default
    if count is None or period is None:
        raise child.error(f"{key} needs count and period", "e.g. {count: 12, period: hour}")
    return Threshold(cast(int, THRESHOLD.value(child, "count")), cast(Period, THRESHOLD.value(child, "period")))
