"""Which changes of a node count as modified, and as what: the rules of dbt's state comparison, a manifest each side."""

from __future__ import annotations

import pytest

from sqlmesh_like.artifacts.compare import node_differences
from sqlmesh_like.artifacts.json_objects import Artifact

MODEL = {"resource_type": "model", "raw_code": "select 1 as a", "config": {}, "fqn": ["p", "m"]}
METRIC = {"resource_type": "metric", "type": "simple", "label": "L", "config": {"group": "a", "enabled": True}}
QUERY = {
    "resource_type": "saved_query",
    "query_params": {"metrics": ["m"], "group_by": [], "where": None, "limit": 3},
    "exports": [{"name": "e", "config": {"schema": "x"}, "unrendered_config": {"export_as": "table"}}],
}
UNIT = {
    "resource_type": "unit_test",
    "model": "m",
    "given": [{"input": "ref('t')", "rows": [{"a": "1", "b": "x"}]}],
    "expect": {"rows": [{"a": 1}]},
}
TEST = {"resource_type": "test", "raw_code": "{{ test_unique(**_dbt_generic_test_kwargs) }}"}
SEED = {"resource_type": "seed", "checksum": {"name": "sha256", "checksum": "1"}}
EXPOSURE = {"resource_type": "exposure", "type": "dashboard", "depends_on": {"nodes": ["b", "a"]}}
KEPT_TEXTS = {"config": {"persist_docs": {"relation": True, "columns": True}}}
CONTRACT = {"config": {"contract": {"enforced": True}, "materialized": "table"}}

DIFFERENT = [
    (MODEL, {"raw_code": "select 2 as a"}, {"body"}),
    (MODEL, {"fqn": ["p", "x", "m"]}, {"fqn"}),
    (MODEL | {"config": {"alias": "x"}}, {"config": {"alias": "y"}}, {"relation"}),
    (MODEL | {"config": {"materialized": "view"}}, {"config": {"materialized": "table"}}, {"configs"}),
    (MODEL | {"access": "private"}, {"access": "public"}, {"definition"}),
    (MODEL | KEPT_TEXTS | {"description": "one"}, {"description": "two"}, {"persisted_descriptions"}),
    (MODEL | KEPT_TEXTS, {"columns": {"a": {"description": "two"}}}, {"persisted_descriptions"}),
    (MODEL | CONTRACT, {"columns": {"a": {"name": "a", "data_type": "int"}}}, {"contract"}),
    (METRIC, {"config": {"group": "a", "enabled": False}}, {"configs"}),
    (METRIC, {"type": "ratio"}, {"definition"}),
    (QUERY, {"query_params": {"metrics": ["n"], "limit": 3}}, {"definition"}),
    (QUERY, {"exports": [{"name": "e", "unrendered_config": {"export_as": "view"}}]}, {"definition"}),
    (QUERY, {"tags": ["x"]}, {"definition"}),
    (UNIT, {"expect": {"rows": [{"a": 2}]}}, {"definition"}),
    (UNIT, {"given": []}, {"definition"}),
    (TEST | {"test_metadata": {"kwargs": {"a": 1}}}, {"test_metadata": {"kwargs": {"a": 2}}}, {"definition"}),
    (SEED, {"checksum": {"name": "sha256", "checksum": "2"}}, {"body"}),
    (EXPOSURE, {"depends_on": {"nodes": ["a"]}}, {"definition"}),
    (EXPOSURE, {"owner": {"name": "x"}}, {"definition"}),
]
EQUAL = [
    (MODEL, {"raw_code": "select 1 as a\r\n", "tags": ["x"], "description": "new"}),
    (MODEL | {"config": {"meta": 1}}, {"config": {"meta": 2, "tags": ["a"]}}),
    (MODEL | {"config": {"severity": "WARN"}}, {"config": {"severity": "warn"}}),
    (
        MODEL | {"config": {"alias": "dev_x"}, "unrendered_config": {"alias": "{{ target.name }}_x"}},
        {"config": {"alias": "prod_x"}},
    ),
    (
        MODEL | CONTRACT | {"columns": {"a": {"name": "a", "data_type": "INT"}}},
        {"columns": {"b": {"name": "a", "data_type": "int"}}},
    ),
    (METRIC, {"config": {"group": "b", "enabled": True}}),
    (QUERY, {"query_params": {"metrics": ["m"], "limit": 9, "order_by": ["a"]}}),
    (QUERY, {"exports": [{"name": "e", "config": {"schema": "y"}, "unrendered_config": {"export_as": "table"}}]}),
    (UNIT, {"given": [{"input": 'ref("t")', "rows": [{"a": "1", "b": "x"}], "fixture": None}]}),
    (TEST | {"raw_code": "test_unique()"}, {"raw_code": TEST["raw_code"]}),
    (SEED | {"checksum": {"name": "path", "checksum": "p"}}, {"checksum": {"name": "sha256", "checksum": "2"}}),
    (EXPOSURE, {"depends_on": {"nodes": ["a", "b"]}, "url": ""}),
]


def manifest(node: Artifact, **macros: str) -> Artifact:
    section = {"metric": "metrics", "saved_query": "saved_queries", "unit_test": "unit_tests", "exposure": "exposures"}
    texts = {name: {"macro_sql": text} for name, text in macros.items()}
    return {section.get(str(node["resource_type"]), "nodes"): {"id": node}, "macros": texts}


@pytest.mark.parametrize(("node", "change", "expected"), DIFFERENT)
def test_what_changes_a_node_is_named(node: Artifact, change: Artifact, expected: set[str]) -> None:
    assert node_differences(manifest(node), manifest({**node, **change})) == {"id": expected}


@pytest.mark.parametrize(("node", "change"), EQUAL)
def test_what_readers_do_not_see_is_no_change(node: Artifact, change: Artifact) -> None:
    assert node_differences(manifest(node), manifest({**node, **change})) == {"id": set()}


def test_rows_of_a_csv_are_those_of_a_mapping() -> None:
    as_text = {**UNIT, "expect": {"format": "csv", "rows": "a, b\n1, x\n"}}
    as_rows = {**UNIT, "expect": {"format": "csv", "rows": [{"a": "1", "b": "x"}]}}
    assert node_differences(manifest(as_text), manifest(as_rows)) == {"id": set()}


def test_a_called_macro_is_a_change_of_its_callers_and_new_nodes_are_not_compared() -> None:
    node = {**MODEL, "depends_on": {"macros": ["m1", 3]}}
    assert node_differences(manifest(node, m1="a"), manifest(node, m1="b")) == {"id": {"macros"}}
    assert node_differences(manifest(node, m1="a", m2="a"), manifest(node, m1="a", m2="b")) == {"id": set()}
    assert node_differences({}, manifest(node)) == {}
