"""The graph of a project and what selectors choose from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import CycleError, SelectionError
from sqlmesh_like.plan.graph import Graph, build_graph
from sqlmesh_like.plan.selector import exclusion_warnings, select
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.render.renderer import render_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "models/s.yml": """
sources:
  - name: shop
    tables: [{name: user, tags: [raw]}, {name: item}]
models:
  - name: agg
    columns: [{name: a, tests: [not_null]}]
""",
    "seeds/rates.csv": "a\n",
    "models/dwd/users.sql": "{{ config(tags='daily') }}select * from {{ source('shop', 'user') }}",
    "models/dwd/items.sql": "select * from {{ source('shop', 'item') }}",
    "models/dws/agg.sql": "{{ config(tags=['daily', 'big']) }}select * from {{ ref('users') }}, {{ ref('items') }}",
    "models/dws/top.sql": "{{ config(materialized='view') }}select * from {{ ref('agg') }}, {{ ref('rates') }}",
    "models/forecast.py": "def model(dbt, session):\n    return session.sql('select 1 as a')\n",
    "tests/agree.sql": "select * from {{ ref('agg') }} join {{ ref('items') }}",
}


def graph_of(root: Path, files: dict[str, str]) -> Graph:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    project = load_project(root, {})
    return build_graph(project, render_project(project, Target("p", "t", "spark")))


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return graph_of(tmp_path, FILES)


def names(graph: Graph, *words: str, exclude: tuple[str, ...] = (), tests: bool = False) -> str:
    nodes = [graph.nodes[unique_id] for unique_id in select(graph, words, exclude)]
    return " ".join(node.name for node in nodes if tests or node.resource_type != "test")


@pytest.mark.checklist(59)
def test_every_node_comes_after_its_inputs(graph: Graph) -> None:
    order = graph.order()
    assert len(order) == 10
    assert all(order.index(parent) < order.index(node) for node in order for parent in graph.parents(node))


def test_the_order_is_the_same_every_time(tmp_path: Path) -> None:
    assert graph_of(tmp_path, FILES).order() == graph_of(tmp_path, FILES).order()


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("agg", "agg"),
        ("agg.sql", "agg"),
        ("forecast.py", "forecast"),
        ("+agg", "item items user users agg"),
        ("1+agg", "items users agg"),
        ("agg+", "agg top"),
        ("users+1", "users agg"),
        ("+agg+", "item items user users agg top"),
        ("@users", "item items user users agg rates top"),
        ("tag:daily", "users agg"),
        ("tag:daily,tag:big", "agg"),
        ("tag:big items", "items agg"),
        ("path:models/dwd", "items users"),
        ("models/dwd/users.sql", "users"),
        ("dwd", "items users"),
        ("shop.dwd.*", "items users"),
        ("*ems", "items"),
        ("*s", "items users agg rates top"),
        ("source:shop.user", "user"),
        ("source:shop", "item user"),
        ("source:shop.user+", "user users agg top"),
        ("config.materialized:view", "top"),
        ("resource_type:seed", "rates"),
        ("2+top", "items users agg rates top"),
        ("tag:raw+,tag:big", "agg"),
    ],
)
def test_a_selector_chooses(graph: Graph, words: str, chosen: str) -> None:
    assert names(graph, words) == chosen


def test_words_may_come_one_by_one_or_in_one_text(graph: Graph) -> None:
    assert names(graph, "users", "items") == names(graph, "users items") == "items users"


def test_exclusion_takes_nodes_and_their_tests_away(graph: Graph) -> None:
    assert names(graph, "+agg", exclude=("users+", "source:shop.item"), tests=True) == "items user"


def test_tests_come_along_with_a_node_they_read(graph: Graph) -> None:
    assert names(graph, "items", tests=True) == "items agree"


def test_a_test_can_be_chosen_by_its_kind(graph: Graph) -> None:
    assert names(graph, "agg,test_type:generic", tests=True) == "not_null_agg_a"
    assert names(graph, "test_type:singular", tests=True) == "agree"


PACKAGE = {
    "dbt_project.yml": "name: shop\n",
    "packages.yml": "packages: [{local: kit}]\n",
    "models/own.sql": "select 1 as a",
    "dbt_packages/kit/dbt_project.yml": "name: kit\nsnapshots: {kit: {daily: {+tags: kept}}}\n",
    "dbt_packages/kit/models/k.sql": "select 1 as a",
    "dbt_packages/kit/models/u.yml": "unit_tests: [{name: one, model: k, given: [], expect: {rows: [{a: 1}]}}]\n",
    "dbt_packages/kit/snapshots/daily/s.sql": "{% snapshot s %}{{ config(target_schema='s', unique_key='a', "
    "strategy='check', check_cols='all') }}select 1 as a{% endsnapshot %}",
}


@pytest.fixture
def graph_with_package(tmp_path: Path) -> Graph:
    return graph_of(tmp_path, PACKAGE)


def test_this_package_is_the_root_project(graph_with_package: Graph) -> None:
    assert names(graph_with_package, "package:this") == "own"


def test_a_unit_test_is_under_its_package(graph_with_package: Graph) -> None:
    assert names(graph_with_package, "package:kit,test_type:unit") == "one"
    assert graph_with_package.nodes["unit_test.kit.k.one"].fqn == ("kit", "k", "one")


def test_a_packages_snapshot_is_under_its_folders(graph_with_package: Graph) -> None:
    snapshot = graph_with_package.nodes["snapshot.kit.s"]
    assert (snapshot.fqn, snapshot.tags) == (("kit", "daily", "s", "s"), ("kept",))


def test_no_selection_is_everything(graph: Graph) -> None:
    assert len(select(graph)) == 10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("aggg", "selector 'aggg' matches nothing\n  did you mean 'agg'?"),
        ("+aggg+", "did you mean 'agg'?"),
        ("tag:dayly", "did you mean 'tag:daily'?"),
        ("source:shop.usr", "did you mean 'source:shop.user'?"),
        ("users,items", "selector 'users,items' matches nothing"),
        ("tagg:x", "unknown method 'tagg'\n  did you mean 'tag'?"),
        ("++agg", "is malformed"),
        ("@agg+", "is malformed"),
        ("a,,b", "is malformed"),
        ("path:models/nowhere", "matches nothing"),
    ],
)
def test_a_selection_of_nothing_is_an_error(graph: Graph, words: str, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(graph, (words,))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_selection_that_excludes_all_is_an_error(graph: Graph) -> None:
    with pytest.raises(SelectionError, match="nothing is left of the selection --select agg --exclude agg"):
        select(graph, ("agg",), ("agg",))


def test_all_of_a_project_without_nodes_is_nothing_and_a_name_is_still_an_error(tmp_path: Path) -> None:
    empty = graph_of(tmp_path, {"pyproject.toml": FILES["pyproject.toml"]})
    assert select(empty) == ()
    with pytest.raises(SelectionError, match="selector 'orders' matches nothing"):
        select(empty, ("orders",))


def test_an_exclusion_that_matches_nothing_is_warned_of(graph: Graph) -> None:
    assert exclusion_warnings(graph, ("agg item", "state:modified", "tag:dayly+")) == [
        "--exclude 'item' matches nothing (did you mean 'items'?)",
        "--exclude 'tag:dayly+' matches nothing (did you mean 'tag:daily'?)",
    ]


@pytest.mark.checklist(59)
def test_a_circle_is_printed_whole_with_its_files(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": FILES["pyproject.toml"],
        "models/a.sql": "select * from {{ ref('b') }}",
        "models/b.sql": "select * from {{ ref('c') }}",
        "models/c.sql": "select * from {{ ref('a') }}",
        "models/free.sql": "select * from {{ ref('a') }}",
    }
    with pytest.raises(CycleError) as caught:
        graph_of(tmp_path, files)
    assert "circle: a -> b -> c -> a" in str(caught.value)
    assert all(f"models/{name}.sql" in str(caught.value) for name in "abc")
    assert "free" not in str(caught.value)


def test_a_model_that_reads_itself_is_a_circle(tmp_path: Path) -> None:
    files = {"pyproject.toml": FILES["pyproject.toml"], "models/a.sql": "select * from {{ ref('a') }}"}
    with pytest.raises(CycleError, match="a -> a"):
        graph_of(tmp_path, files)
