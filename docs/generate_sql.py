"""Writes docs/sql.md from docs/sql.yml: each construct with an example, and what the compiler makes of it.

The columns "strategy" and "rules" come from the compiler, so they are what `sml explain` prints; a test holds the
page to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES, AggregateFunction
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.names import Column, NodeId, Schema, TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap

TABLES = {
    "orders": "id int, buyer int, amount decimal(10,2), price double, day date, paid boolean, tags array<string>",
    "users": "id int, city string, boss int",
}
WORK = {
    "row_based": "the changed rows",
    "aggregate_merge": "the changed rows and the stored rows of their groups",
    "group_recompute": "all rows of the groups, windows and join keys that a change touches, before and after it",
    "partition_rescan": "the partitions that a change touches",
    "full_refresh": "everything, when an input changed",
}
"""What a strategy costs where a row has no text of its own."""

KINDS = {
    "int": "int",
    "bigint": "bigint",
    "decimals": "decimal(10,2)",
    "doubles": "double",
    "texts": "string",
    "dates": "date",
    "timestamps": "timestamp",
    "booleans": "boolean",
}
"""Kinds of arguments, each with a type that stands for it."""
FOLLOWS = {
    "free": "its groups are recomputed",
    "key": "its groups are recomputed; the row key decides between tied rows",
    None: "the model is rebuilt: it depends on the order of rows",
}


def page() -> str:
    """The page's text."""
    tables = "; ".join(f"`{name}({columns})`" for name, columns in TABLES.items())
    head = (
        "# SQL, construct by construct\n\n"
        "What a model may contain, how it is maintained, and what that costs. Strategy and rules are what the\n"
        "compiler reports for the example, as `sml explain` does for your models; [rules.md](rules.md)\n"
        "explains the rules. Constructs nest, and the costliest of a query decides; without a proof it is a full\n"
        "refresh. This page is generated from `docs/sql.yml` by `python docs/generate_sql.py`.\n\n"
        f"The tables: {tables}.\n\n"
        "| construct | example | strategy | rules | work | limits |\n|---|---|---|---|---|---|\n"
    )
    rows = yaml.safe_load((Path(__file__).parent / "sql.yml").read_text(encoding="utf-8"))
    return head + "".join(_line(row) for row in rows) + aggregates()


def aggregates() -> str:
    """What the catalogue of functions says of each aggregate."""
    head = (
        "\n## Aggregate functions\n\n"
        "How each follows a change of its group. A merged one does so over arguments of the named kinds, and over\n"
        "others as one that is not; what is not merged needs all rows of the groups that a change touches.\n\n"
        "| function | follows a change | merged over | over no rows |\n|---|---|---|---|\n"
    )
    return head + "".join(sorted(map(_aggregate_line, AGGREGATES.values())))


def _aggregate_line(record: AggregateFunction) -> str:
    names = ", ".join(function.name.upper() for function in record.functions)
    over = "–"
    if record.merge is not None:
        takes = record.merge.takes
        over = "anything" if takes is None else ", ".join(kind for kind, type_ in KINDS.items() if takes(type_))
        over += ", doubles with `floating`" if record.within is not None else ""
        follows = f"merged: {record.merge.keeps}"
    else:
        follows = FOLLOWS[record.order]
    nothing = {"null": "NULL", "zero": "0", None: "not used by plans"}[record.of_nothing]
    return f"| {names} | {follows} | {over} | {nothing} |\n"


def _line(row: Mapping[str, str]) -> str:
    classification = Compiler().compile(_model(row)).classification
    strategy = classification.strategy
    rules = ", ".join(dict.fromkeys(reason.rule for reason in classification.reasons))
    work = WORK[strategy] if strategy == "full_refresh" else row.get("work", WORK[strategy])
    cells = (row["construct"], f"`{row['example']}`", f"`{strategy}`", rules, work, row.get("limits") or "–")
    return f"| {' | '.join(cells)} |\n"


def _model(row: Mapping[str, str]) -> RenderedModel:
    inputs = tuple(
        InputRef(NodeId("source", "shop", "ods", name), TableName("", name), "source", _schema(columns))
        for name, columns in TABLES.items()
    )
    floating = float(row["floating"]) if "floating" in row else None
    sql, config = row["example"], ModelConfig(partition_by=tuple(row.get("partition_by", ())), floating=floating)
    unique_id, table = NodeId("model", "shop", "m"), TableName("dws", "m")
    return RenderedModel(unique_id, "m", "models/m.sql", sql, sql, config, table, inputs, SourceMap(sql, sql))


def _schema(columns: str) -> Schema:
    pairs = (column.split(" ", 1) for column in columns.split(", "))
    return tuple(Column(name, type_) for name, type_ in pairs)


if __name__ == "__main__":
    (Path(__file__).parent / "sql.md").write_text(page(), encoding="utf-8")
