"""What templates may do to a lake: read it. Statements are for hooks and operations, and drop no table of a project."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.run.lake_query import LakeQuery

OWN, VIEW, OTHER = TableName("dws", "own"), TableName("dws", "seen"), TableName("tmp", "It's")


class Statements:
    """Keeps what it is asked to run."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, list[TableName]]] = []

    def execute(self, statement: str, tables: Mapping[TableName, Any]) -> None:
        self.ran.append((statement, list(tables)))


def query(statements: Statements | None = None) -> LakeQuery:
    place = SimpleNamespace(table=OWN, unique_id=NodeId("model", "p", "own"))
    catalog = SimpleNamespace(places={place.unique_id: place}, state=lambda unique_id: unique_id)
    planner = SimpleNamespace(catalog=catalog, rendered=SimpleNamespace(models=[SimpleNamespace(table=VIEW)]))
    return LakeQuery(planner, None, statements)  # type: ignore[arg-type]


def test_while_a_model_is_rendered_nothing_is_written() -> None:
    with pytest.raises(NodeError, match="a statement may not run here") as caught:
        query().execute("delete from dws.own")
    assert "run-operation" in (caught.value.hint or "")
    with pytest.raises(NodeError, match=r"adapter\.drop_relation drops nothing here"):
        query().drop(OTHER)


def test_statements_are_run_one_by_one_with_the_tables_that_they_name() -> None:
    statements = Statements()
    query(statements).execute("insert into tmp.x select ';' from DWS.own; ;\n -- a; b\n vacuum tmp.x;")
    assert statements.ran == [
        ("insert into tmp.x select ';' from DWS.own", [OWN]),
        ("-- a; b\n vacuum tmp.x", []),
    ]
    with pytest.raises(NodeError, match="invalid SQL"):
        query(statements).execute("select 'open")


def test_only_tables_of_others_are_dropped() -> None:
    statements = Statements()
    lake = query(statements)
    lake.drop(OTHER)
    lake.drop(VIEW)
    with pytest.raises(NodeError, match=r"DWS\.Own is a table of this project, it is not dropped"):
        lake.drop(TableName("DWS", "Own"))
    assert [text for text, _ in statements.ran] == [f"drop table if exists {OTHER.sql()}"]
