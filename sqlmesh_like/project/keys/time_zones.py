"""Names of time zones: IANA's, as java.time and Python's `zoneinfo` know them."""

from __future__ import annotations

from functools import cache

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.reading.yaml_node import YamlNode

_NOT_EVERYWHERE = ("localtime", "Factory", "posixrules", "leapseconds")
"""Names in the files of a machine that other machines, or Java, do not have."""


def time_zone(node: YamlNode, key: str) -> str:
    """The name of a time zone. Raises ProjectError where there is none of this name, with the nearest one."""
    name = node.text(key)
    if name not in names():
        hint = nearest(name, sorted(names())) or _of_city(name) or "use IANA's name of it, e.g. Europe/Berlin, or UTC"
        raise node.error(f"{key} {name!r} is not a time zone", hint)
    return name


@cache
def names() -> frozenset[str]:
    """All names."""
    import zoneinfo

    return frozenset(zoneinfo.available_timezones()) - frozenset(_NOT_EVERYWHERE)


def _of_city(name: str) -> str | None:
    """A hint at the zone whose last part is meant.

    >>> _of_city("Berlin")
    "did you mean 'Europe/Berlin'?"
    """
    wanted = name.rpartition("/")[2].replace(" ", "_").lower()
    cities = sorted(each for each in names() if "/" in each and each.rpartition("/")[2].lower() == wanted)
    return f"did you mean {cities[0]!r}?" if cities else None
