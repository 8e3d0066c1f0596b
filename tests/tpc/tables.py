"""The tables of the benchmarks. Owns the form of `h/tables.txt` and `ds/tables.txt`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Table:
    """A table: the type of each column by name, in their order, and the names of its primary key."""

    columns: Mapping[str, str]
    primary_key: tuple[str, ...]


def parse_tables(text: str) -> dict[str, Table]:
    """Tables by name.

    >>> parse_tables("pair: a* b* bigint,\\n  price decimal(12,2)")
    {'pair': Table(columns={'a': 'bigint', 'b': 'bigint', 'price': 'decimal(12,2)'}, primary_key=('a', 'b'))}
    """
    lines = re.sub(r"\n +", " ", text).splitlines()
    declared = (line.split(":") for line in lines if line and not line.startswith("#"))
    return {name: _table(columns) for name, columns in declared}


def _table(text: str) -> Table:
    groups = (group.split() for group in text.split(", "))
    types = {name: type_ for *names, type_ in groups for name in names}
    key = tuple(name.removesuffix("*") for name in types if name.endswith("*"))
    return Table({name.removesuffix("*"): type_ for name, type_ in types.items()}, key)


def _read(suite: str) -> dict[str, Table]:
    return parse_tables((FOLDER / suite / "tables.txt").read_text(encoding="utf-8"))


_DS = _read("ds")
TABLES: Mapping[str, Mapping[str, Table]] = {"h": _read("h"), "ds": _DS, "ds27": _DS}
"""The tables of each suite by name."""
