"""The query that a table's commits hold: it is found again as it was, or nothing follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.edits.edited_query import edit_between
from sqlmesh_like.plan.edits.recorded_query import query_before, recorded_query
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import TableRecord
from sqlmesh_like.secrets import forget, learn
from tests.properties.lake import compiled, schema

COLUMNS = schema(a="int", s="string")
WIDER = schema(a="int", s="string", more="int")
QUERY = "with w as (select * from ods.t) select w.a, upper(w.s) as s from w where w.a > 1 -- why"


def record_of(model: CompiledModel, **changes: str) -> TableRecord:
    record = TableRecord(
        "model.shop.m", fingerprint(model), {}, "2024-01-01T00:00:00+00:00", "row_based", query=recorded_query(model)
    )
    return TableRecord.from_json(replace(record, **changes).to_json())  # type: ignore[arg-type]


def before(columns: Schema, sql: str = QUERY, **changes: str) -> CompiledModel | None:
    return query_before(record_of(compiled(sql, COLUMNS), **changes), compiled("select a from ods.t", columns))


def test_the_query_of_a_commit_has_its_fingerprint() -> None:
    known = before(COLUMNS)
    assert known is not None and fingerprint(known) == fingerprint(compiled(QUERY, COLUMNS))


def test_a_column_that_has_become_wider_has_the_type_of_then() -> None:
    known = before(schema(a="bigint", s="string"))
    assert known is not None and [column.type for column in known.facts.schema or ()] == ["int", "string"]


def test_a_star_has_the_columns_of_then() -> None:
    known = before(WIDER, "select * from ods.t")
    assert known is not None and [column.name for column in known.facts.schema or ()] == ["a", "s"]
    edit = edit_between(known, compiled("select * from ods.t", WIDER))
    assert edit is not None and edit.words == "more computed alone" and edit.reads_table


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        (schema(a="string", s="string"), {}), (schema(a="int"), {}), (COLUMNS, {"query": ""}),
        (COLUMNS, {"query": "no base 85: \\"}), (COLUMNS, {"query": "VPRomZgXG8"}), (COLUMNS, {"fingerprint": "other"}),
    ],
    ids=["other type", "column gone", "none", "no text", "other text", "other fingerprint"],
)  # fmt: skip
def test_what_cannot_be_read_back_is_not_known(columns: Schema, changes: dict[str, str]) -> None:
    assert before(columns, **changes) is None


def test_a_query_with_a_secret_is_not_recorded() -> None:
    learn("hunter2hunter2")
    try:
        assert recorded_query(compiled("select a from ods.t where s = 'hunter2hunter2'", COLUMNS)) == ""
    finally:
        forget()
