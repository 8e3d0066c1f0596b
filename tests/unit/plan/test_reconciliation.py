"""A table of another query is compared with the new one where it can keep its rows, and replaced where it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.plan.edits.outline import edit_of, stored_outline
from sqlmesh_like.plan.fingerprint import fingerprint, meaning
from sqlmesh_like.plan.history import AS_WRITTEN, NO_CHANGE, TableRecord, TableState
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from tests.properties.lake import T, U, compiled, schema
from tests.unit.plan.test_cost import NOW, _History

COLUMNS = schema(a="int", s="string")
BEFORE = "select a, s from ods.t where a > 1"
AFTER = "select a, s from ods.t where a > 2"
STORED = (*schema(_hoodie_record_key="string", _sml_key="string"), *COLUMNS, Column("_hoodie_is_deleted", "boolean"))


@dataclass
class _Missing(_History):
    lacking: str | None = None

    def missing(self, uri: str) -> str | None:
        return self.lacking


def planned(
    after: str = AFTER, stored: Schema = STORED, *, before: str = BEFORE, partition_by: tuple[str, ...] = (),
    suffix: str = "", kind: str = "cow", full_refresh: bool = False, is_foreign: bool = False,
    missing: str | None = None, refresh: str = "auto", keys: tuple[str, ...] = (),
) -> PlannedModel:  # fmt: skip
    old, new = compiled(before, COLUMNS), compiled(after, COLUMNS)
    config = replace(new.facts.model.config, refresh=refresh, partition_by=partition_by, unique_key=keys)  # type: ignore[arg-type]
    new = CompiledModel.of(replace(new.facts, model=replace(new.facts.model, config=config)))
    record = TableRecord(
        "model.shop.m", fingerprint(old) + suffix, {T: "1_1"}, NOW.isoformat(), "row_based", meaning=meaning(old)
    )
    shown = tuple(column for column in stored if not column.name.startswith("_"))
    target = TableState("m", kind, "5_5", record, shown, stored, is_foreign_on_top=is_foreign)  # type: ignore[arg-type]
    history = _Missing(NO_CHANGE, lacking=missing)
    return plan_model(
        new,
        target,
        {T: TableState(T, "cow", "1_1"), U: TableState(U, "cow", "1_1")},
        history,
        NOW,
        full_refresh=full_refresh,
    )


def test_an_edit_that_keeps_columns_is_compared_and_said() -> None:
    plan = planned()
    assert (plan.strategy, plan.reconciles) == ("recompute_merge", True)
    assert [reason.rule for reason in plan.reasons] == ["HIS002", "EDT001"]


def test_another_text_of_one_meaning_has_nothing_to_do() -> None:
    assert planned("with w as (select * from ods.t where 1 < a) select w.a, w.s from w").strategy == "no_op"


OTHER_TYPE = (*STORED[:2], Column("a", "bigint"), *STORED[3:])


@pytest.mark.parametrize(
    ("after", "settings"),
    [
        pytest.param("select a, s, a + 1 as b from ods.t", {}, id="column added"),
        pytest.param("select s, a from ods.t", {}, id="columns reordered"),
        pytest.param("select a, max(s) as s from ods.t group by a", {}, id="needs state"),
        pytest.param("select a, s from ods.t limit 3", {}, id="rebuilt by design"),
        pytest.param(AFTER, {"stored": OTHER_TYPE}, id="other type"),
        pytest.param(AFTER, {"suffix": AS_WRITTEN}, id="rows as written"),
        pytest.param(AFTER, {"partition_by": ("s",)}, id="other partitions"),
        pytest.param(AFTER, {"kind": "mor"}, id="other table type"),
        pytest.param(AFTER, {"is_foreign": True}, id="foreign commit"),
        pytest.param(AFTER, {"missing": "a file is gone"}, id="missing file"),
        pytest.param(AFTER, {"full_refresh": True}, id="full refresh asked for"),
        pytest.param(AFTER, {"refresh": "full"}, id="refresh full"),
        pytest.param(AFTER, {"refresh": "strict"}, id="refresh strict"),
        pytest.param(AFTER, {"keys": ("a",)}, id="other unique_key"),
    ],
)
def test_where_rows_cannot_stay_all_are_replaced(after: str, settings: dict[str, Any]) -> None:
    plan = planned(after, **settings)
    assert (plan.strategy, plan.reconciles) == ("full_refresh", False)


def edited(after: str, *, small: str = "int") -> tuple[str, str] | None:
    columns = schema(a=small, b="int", s="string")
    before = compiled("select t.a, t.s, t.a + u.b as c from ods.t join ods.u on t.a = u.a where t.b > 0", columns)
    plan = compiled(after, columns)
    edit = edit_of(stored_outline(before), plan, before.facts.schema or ())
    return None if edit is None else (edit.words, edit.rows.sql("spark"))


FROM = "from ods.t join ods.u on t.a = u.a where t.b > 0"


@pytest.mark.parametrize(
    ("after", "words", "rows"),
    [
        (f"select t.a, t.s, t.a + u.b as c {FROM} and t.a - (t.a + u.b - 1) > 3", "a narrower filter",
         "SELECT `a` AS `a`, `s` AS `s`, `c` AS `c`, `_sml_key` FROM `target`.`this` WHERE 3 < (`a` - (`c` - 1))"),
        (f"select t.a + u.b as d, t.s {FROM}", "renamed c → d; without a; columns in another order",
         "SELECT `c` AS `d`, `s` AS `s`, `_sml_key` FROM `target`.`this`"),
        (f"select t.a, t.s, t.a + u.b as c, 2 * (t.a - 1) as more {FROM}", "more computed of stored columns",
         "SELECT `a` AS `a`, `s` AS `s`, `c` AS `c`, 2 * (`a` - 1) AS `more`, `_sml_key` FROM `target`.`this`"),
    ],
)  # fmt: skip
def test_rows_of_an_edit_that_follow_from_the_stored_ones(after: str, words: str, rows: str) -> None:
    assert edited(after) == (words, rows)


@pytest.mark.parametrize(
    "after",
    [
        f"select t.a, t.s, t.a + u.b as c, u.b as more {FROM}",
        f"select t.a, t.s, t.a + u.b as c {FROM} and u.s = 'x'",
        f"select t.s {FROM} and t.a > 1",
        "select t.a, t.s, t.a + u.b as c from ods.t join ods.u on t.a = u.a",
        "select t.a, t.s, t.a + u.b as c from ods.t left join ods.u on t.a = u.a where t.b > 0",
        "select u.a, t.s, t.a + u.b as c from ods.u join ods.t on t.a = u.a where t.b > 0",
        f"select distinct t.a, t.s, t.a + u.b as c {FROM}",
    ],
    ids=["column added", "unread column", "column gone", "wider", "join", "keys", "distinct"],
)
def test_an_edit_that_needs_what_is_not_stored_reads_the_inputs(after: str) -> None:
    assert edited(after) is None


def test_state_is_kept_by_an_edit_that_keeps_groups_and_calls() -> None:
    columns = schema(a="int", s="string")
    before = compiled("select s, count(a) as n from ods.t group by s", columns)
    after = compiled("select s as city, count(a) as n from ods.t group by s", columns)
    edit = edit_of(stored_outline(before), after, before.facts.schema or ())
    assert edit is not None and {c.name for c in before.table.state} <= set(edit.rows.named_selects)


def test_small_integers_are_stored_as_others_and_so_not_computed_on() -> None:
    assert edited(f"select t.a, t.s, t.a + u.b as c {FROM} and t.a > 1", small="smallint") is None
