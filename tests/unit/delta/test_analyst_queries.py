"""Queries of the shapes that analysts write: how many are followed, and that they are right after random changes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

from sqlglot import exp

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from sqlmesh_like.names import KEY, WEIGHT, Column, NodeId, Schema, TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap
from tests.levels import count, sample

TABLES = {
    "orders": "id int, customer_id int, ordered_at timestamp, day date, status string, amount decimal(10,2),"
    " discount decimal(10,2), country string, channel string, currency string",
    "order_items": "id int, order_id int, product_id int, quantity int, price decimal(10,2)",
    "products": "id int, name string, category string, cost decimal(10,2), tags array<string>",
    "customers": "id int, name string, country string, signed_up date, referrer_id int, email string,"
    " address struct<city:string,zip:string>",
    "events": "id int, user_id int, at timestamp, page string, kind string, props string, value double",
    "prices": "id int, product_id int, valid_from date, price decimal(10,2)",
    "rates": "currency string, day date, rate decimal(10,4)",
    "employees": "id int, name string, manager_id int, dept string, salary decimal(10,2)",
    "bookings": "id int, account_id int, day date, amount decimal(10,2)",
    "calendar": "day date",
    "subscriptions": "id int, customer_id int, starts date, ends date, plan string, fee decimal(10,2)",
    "touches": "id int, customer_id int, at timestamp, channel string",
    "tickets": "id int, customer_id int, opened timestamp, closed timestamp, priority string",
}
TEXTS = {
    "status": "paid open vip", "country": "de fr us", "channel": "web shop", "currency": "eur usd",
    "page": "home cart help", "kind": "view cart buy", "dept": "it hr", "priority": "high low",
    "category": "toys food", "plan": "basic pro", "props": '{"price":1.5,"item":{"id":"7"}} {}', "email": "a@x b@x",
}  # fmt: skip
REBUILT = {
    "a filter above sums of doubles": "AGG007",
    "JSON: json_tuple": "QRY007",
    "distinct users of 28 days by a window over a set": "FUN001",
    "maps made from entries": "FUN001",
    "maps: exploded": "FUN001",
    "maps: from columns": "FUN001",
    "percentile_approx": "AGG006",
    "recursive hierarchy": "QRY009",
    "the mode of a group": "AGG006",
    "window frames: collect_list over the last three": "FUN001",
}
"""Full refreshes, with the rule that says why."""
LACKING = {
    "JSON parsed by a schema", "JSON arrays exploded", "histogram by width_bucket", "PIVOT of a join",
    "arrays: aggregate with a lambda", "arrays: products with a tag of a list", "attribution: linear shares",
    "arrays: array_distinct, array_union, array_except", "arrays: element_at, slice, reverse, array_max",
    "arrays: exists and forall", "arrays: sequence exploded with a join", "bits and hashes",
    "date spine: from min to max of the data", "logistics: utilization by width_bucket",
    "numbers: pmod, bround, greatest, sign", "texts: substring_index and translate",
}  # fmt: skip
"""What DuckDB does not run as it is written, or gives other values of: quotients of decimals, counts of PIVOT."""
PATHS, MOST_PATHS = count(1, 2, 20), 20


def _queries() -> dict[str, str]:
    text = (Path(__file__).parent / "analyst_queries.sql").read_text(encoding="utf-8")
    return dict(part.strip().removeprefix("-- ").split("\n", 1) for part in text.split(";\n") if part.strip())


QUERIES = _queries()


def _schema(text: str) -> Schema:
    return tuple(Column(*part.split(" ", 1)) for part in re.split(r", ?(?![^<(]*[>)])", text))


SCHEMAS = {NodeId("source", "shop", name): _schema(text) for name, text in TABLES.items()}


@cache
def plan_of(sql: str) -> CompiledModel:
    read = [name for name in TABLES if re.search(rf"\b{name}\b", sql)]
    refs = tuple(InputRef(NodeId("source", "shop", name), TableName("", name), "source") for name in read)
    model = RenderedModel(
        NodeId("model", "shop", "m"), "m", "models/m.sql", sql, sql, ModelConfig(), TableName("dws", "m"), refs,
        SourceMap(sql, sql),
    )  # fmt: skip
    return Compiler(SCHEMAS).compile(model)


def value(random: Random, column: Column) -> object:
    """A value of few, so that keys meet, rows tie and groups repeat; now and then NULL."""
    if random.random() < 0.08:
        return None
    first = datetime.datetime(2023, 12, 30)
    match column.type:
        case "int":
            return random.randrange(5)
        case "date":
            return first.date() + datetime.timedelta(days=random.choice((0, 1, 2, 3, 32, 34, 365)))
        case "timestamp":
            return first + datetime.timedelta(minutes=random.choice((0, 10, 35, 90, 1440, 1450, 2900)))
        case "double":
            return random.choice((0.5, 1.5, 30.0))
        case "array<string>":
            return random.choice(([], ["new"], ["x1", "sale"]))
        case "string":
            return random.choice(TEXTS.get(column.name, "a b").split())
    if column.type is not None and column.type.startswith("struct"):
        return None
    return Decimal(random.choice(("1.00", "2.50", "120.00")))


def path(number: int, inputs: Sequence[str]) -> list[LakeSnapshot]:
    """States of the tables: rows come, change and go, some of them late; now and then a table is empty."""
    random = Random(number)
    states: list[LakeSnapshot] = [{name: {} for name in SCHEMAS}]
    for _ in range(4):
        state = dict(states[-1])
        for name in inputs:
            rows = {key: row for key, row in state[name].items() if random.random() > 0.15}
            rows |= {
                str(key): tuple(
                    value(random, column) for column in SCHEMAS[NodeId("source", "shop", name.split(".")[-1])]
                )
                for key in range(8)
                if random.random() < 0.4
            }
            state[name] = random.choices((rows, states[-1][name], {}), (7, 2, 1))[0]
        states.append(state)
    return states[1:]


def test_spark_is_asked_about_no_text_but_those_of_other_forms() -> None:
    unread = {name for name, sql in QUERIES.items() if not plan_of(sql).facts.is_text_again}
    assert unread == {"dates: to_date with a format and from_unixtime"}  # TO_TIMESTAMP, which is read as a cast


def test_nearly_all_shapes_are_followed_and_the_others_say_why() -> None:
    reasons = {
        name: plan.classification.reasons[0].rule
        for name, sql in QUERIES.items()
        if (plan := plan_of(sql)).classification.strategy == "full_refresh"
    }
    assert reasons == REBUILT
    assert len(QUERIES) - len(reasons) >= 358


def unproven(plan: CompiledModel) -> str | None:
    """Why Spark has to compute a build or a change; None where DuckDB is proven to."""
    inputs = {ref.unique_id: (*SCHEMAS[ref.unique_id], Column(KEY, "string")) for ref in plan.model.inputs}
    known: dict[str, Schema] = {}

    def columns_of(table: exp.Table) -> Schema:
        weight = (Column(WEIGHT, "bigint"),) if table.db == "changes" else ()
        return (*inputs[table.name], *weight) if table.name in inputs else known[table.db or table.name]

    build, program = plan.table.build, plan.table.program
    assert build is not None and program is not None
    try:
        known["target"] = exact(build.copy(), columns_of).columns
        for step in program.steps:
            known[step.name] = exact(step.query.copy(), columns_of).columns
    except Unproven as reason:
        return str(reason)
    return None


def test_most_shapes_need_no_jvm_and_the_others_say_why() -> None:
    reasons = {name: unproven(plan_of(sql)) for name, sql in QUERIES.items() if name not in REBUILT}
    assert sum(reason is None for reason in reasons.values()) >= 330, reasons


@sample("name", [name for name in QUERIES if name not in REBUILT.keys() | LACKING], every=30)
def test_a_shape_follows_random_changes(name: str) -> None:
    plan = plan_of(QUERIES[name])
    moved, number = 0, 0
    while number < PATHS or (not moved and number < MOST_PATHS):
        number += 1
        states = path(number, [ref.unique_id for ref in plan.model.inputs])
        with closing(MemoryLake(SCHEMAS)) as lake:
            lake.build(plan, states[0])
            for before, after in pairwise(states):
                moved += any(vars(lake.apply(plan, before, after)).values())
                for kind, mismatch in (("rows", lake.verify(plan)), ("state", lake.verify_state(plan))):
                    assert not mismatch, f"{kind} of {name}\n{mismatch}\n{before}\n{after}"
    assert moved, name
