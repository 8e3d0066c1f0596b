"""What the site knows to be wrong, since when: failures of any call, late sources, tables behind their inputs."""

from __future__ import annotations

import json
from pathlib import Path

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.docs_content import lake_tables, site_content
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.docs.health import Problem, find_problems
from sqlmesh_like.names import Column
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.history import TableRecord
from tests.unit.docs.conftest import failing_test, make_project
from tests.unit.hudi.test_timeline import Lake


def problems(root: Path) -> dict[str, Problem]:
    loaded = load(Invocation(project_dir=root, profiles_dir=root))
    places, tables = lake_tables(loaded)
    return {each.unique_id: each for each in find_problems(site_content(loaded, tables, places, compiles=True))}


def test_failures_come_first_and_say_since_when(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    issues = problems(root)
    test, top = issues[failing_test(root)], issues["model.shop.top"]
    assert list(issues)[:2] == sorted([test.unique_id, top.unique_id])
    assert (test.kind, test.message, test.since) == ("failed", "2 rows without a day", "2024-01-02T00:00:00.000000Z")
    assert (top.status, top.checked) == ("error", "2024-01-03T00:00:00.000000Z")


def test_a_source_is_stale_since_its_first_threshold_passed(tmp_path: Path) -> None:
    orders = problems(make_project(tmp_path))["source.shop.shop.orders"]
    assert (orders.kind, orders.status, orders.since) == ("stale", "warn", "2024-01-02T00:00:00.000000Z")
    assert orders.message == "its newest row is of 2024-01-01 00:00:00"


def test_a_source_that_could_not_be_asked_has_failed(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    broken = {"unique_id": "source.shop.shop.orders", "status": "runtime error", "error": "no column at"}
    (root / "target/sources.json").write_text(json.dumps({"metadata": {}, "results": [broken]}))
    orders = problems(root)["source.shop.shop.orders"]
    assert (orders.kind, orders.message) == ("failed", "no column at")


def test_a_model_that_cannot_be_compiled_has_failed(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    (root / "models/marts/top.sql").write_text("select totl from {{ ref('daily') }}")
    top = problems(root)["model.shop.top"]
    assert top.kind == "failed" and "models/marts/top.sql:1:8" in top.message


def test_a_table_is_stale_since_the_first_commit_that_it_has_not_read(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    (root / "models/copy.sql").write_text("select id, day from {{ source('shop', 'orders') }}")
    (root / "models/further.sql").write_text("select id from {{ ref('copy') }}")
    orders = Lake(root / "w/ods/orders")
    read = orders.commit(1, ["a"], extra={"schema": SCHEMA})
    copied = committed(root, "copy", {"source.shop.shop.orders": read})
    committed(root, "further", {"model.shop.copy": copied})
    orders.commit(11, ["a"], extra={"schema": SCHEMA})
    orders.commit(21, ["a"], extra={"schema": SCHEMA})
    issues = problems(root)
    copy, further = issues["model.shop.copy"], issues["model.shop.further"]
    assert (copy.kind, copy.since) == ("stale", "2024-01-01T00:00:12.000Z")
    assert "changed rows of ods.orders are not in it yet" in copy.message
    assert (further.kind, further.since) == ("stale", copy.since)
    assert further.message == "it reads dws.copy, which is behind"


def test_a_table_that_was_never_built_is_not_stale(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    (root / "models/copy.sql").write_text("select id, day from {{ source('shop', 'orders') }}")
    Lake(root / "w/ods/orders").commit(1, ["a"], extra={"schema": SCHEMA})
    assert "model.shop.copy" not in problems(root)


SCHEMA = json.dumps({
    "type": "record", "name": "t",
    "fields": [{"name": "id", "type": "int"}, {"name": "amount", "type": "double"}, {"name": "day", "type": "string"}],
})  # fmt: skip


def committed(root: Path, name: str, frontier: dict[str, str]) -> str:
    """A table that has read this much; its frontier."""
    unique_id, now = f"model.shop.{name}", "2024-01-01T00:00:00+00:00"
    project = load(Invocation(project_dir=root, profiles_dir=root))
    (model,) = (each for each in project.rendered.models if each.unique_id == unique_id)
    compiled = Compiler({"source.shop.shop.orders": SOURCE, "model.shop.copy": SOURCE}).compile(model, {})
    record = TableRecord(unique_id, fingerprint(compiled), frontier, now, "row_based")
    extra = {"sml.record": record.to_json(), "schema": SCHEMA}
    return Lake(root / "w/dws" / name).commit(3, ["a"], extra=extra)


SOURCE = (Column("id", "int"), Column("amount", "double"), Column("day", "string"))
