"""HIS002 says what changed of a model since its table was written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.fingerprint import fingerprint, meaning
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.plan.queries.query_changes import change_of_query, query_parts
from tests.properties.lake import compiled, schema

BEFORE = "with big as (select a, s from ods.t where a > 10) select a, s from big where s <> ''"
UNKNOWN = "the query, the types that it reads or its settings"


def of(sql: str) -> CompiledModel:
    return compiled(sql, schema(a="int", s="string", dt="date"))


def change(sql: str, *, stored: Schema | None = None, has_parts: bool = True) -> str:
    parts = query_parts(of(BEFORE)) if has_parts else {}
    record = TableRecord("model.p.m", "before", {}, "2024-01-01T00:00:00+00:00", "row_based", parts=parts)
    target = TableState("m", "cow", "1_1", record, stored or schema(a="int", s="string"))
    return change_of_query(of(sql), TableRecord.from_json(record.to_json()), target)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("where s <> ''", "where s > 'x'", "the filter"),
        ("a > 10", "a > 11", "the CTE big"),
        ("select a, s from big", "select a + 1 as a, s from big", "an expression of SELECT"),
        ("select a, s from big", "select a, s as t from big", "columns −s +t; an expression of SELECT"),
        (" from big where s <> ''", " from big", "the filter"),
        ("select a, s from big", "select distinct a, s from big", "DISTINCT"),
    ],
)
def test_what_changed_is_named(before: str, after: str, words: str) -> None:
    assert before in BEFORE
    assert change(BEFORE.replace(before, after)) == words


def test_a_columns_type_is_told_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    assert change(BEFORE, stored=schema(a="bigint", s="string")) == "type of a (bigint → int)"


def test_a_record_of_before_shows_columns_alone() -> None:
    assert change(BEFORE.replace("s <> ''", "s > 'x'"), has_parts=False) == UNKNOWN
    assert change("select a from ods.t", has_parts=False) == "columns −s"


def test_a_setting_of_the_session_is_named() -> None:
    before = of(BEFORE)
    record = TableRecord("model.p.m", "before", {}, "2024-01-01T00:00:00+00:00", "row_based", parts=query_parts(before))
    model = replace(before.model, session={"spark.sql.legacy.timeParserPolicy": "LEGACY"})
    now = CompiledModel.of(replace(before.facts, model=model))
    target = TableState("m", "cow", "1_1", record, schema(a="int", s="string"))
    assert change_of_query(now, record, target) == "spark.sql.legacy.timeParserPolicy"
    assert fingerprint(now) != fingerprint(before) and meaning(now) != meaning(before)


def test_a_text_that_is_only_spelt_otherwise_is_no_change() -> None:
    assert change(BEFORE.replace("select", "SELECT")) == UNKNOWN
