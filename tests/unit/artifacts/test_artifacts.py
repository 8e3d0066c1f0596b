"""manifest.json and run_results.json."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from sqlmesh_like.artifacts.files import json_text, write_json
from sqlmesh_like.artifacts.manifest import manifest, write_manifest
from sqlmesh_like.artifacts.run_results import NodeRow, Timing, write_run_results
from sqlmesh_like.errors import MachineError
from sqlmesh_like.plan.graph import build_graph
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.render.rendered import RenderedProject
from sqlmesh_like.render.renderer import render_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "macros/m.sql": "{% macro one() %}1{% endmacro %}",
    "models/s.yml": """
sources:
  - name: shop
    ingest:
      format: debezium
      kafka: {bootstrap_servers: h, topics: [t], options: {password: "{{ env_var('DBT_ENV_SECRET_P') }}"}}
    tables: [{name: user, ingest: {primary_key: id}, columns: [{name: id, data_type: bigint}]}]
models:
  - name: m
    description: all users
    columns: [{name: id, data_type: bigint, tests: [unique]}]
""",
    "models/m.sql": "select id, {{ one() }} as n from {{ source('shop', 'user') }}",
    "seeds/s.csv": "a\n1\n",
    "tests/t.sql": "select * from {{ ref('m') }} join {{ ref('s') }}",
}
NOW = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParsedProject:
    monkeypatch.setenv("DBT_ENV_SECRET_P", "hunter2")
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return load_project(tmp_path, {})


@pytest.fixture
def rendered(project: ParsedProject) -> RenderedProject:
    return render_project(project, Target("lake", "local", "spark", schema="dws"))


def test_the_manifest_holds_nodes_and_both_maps(project: ParsedProject, rendered: RenderedProject) -> None:
    path = project.root / "target" / "manifest.json"
    write_manifest(path, project, json_text(manifest(project, rendered, build_graph(project, rendered), "dws")), NOW)
    data = json.loads(path.read_text())
    assert data["metadata"]["dbt_schema_version"].endswith("/manifest/v12.json")
    assert set(data["nodes"]) == {"model.shop.m", "seed.shop.s", "test.shop.unique_m_id.4dffd0a90e", "test.shop.t"}
    model = data["nodes"]["model.shop.m"]
    assert model["compiled_code"] == "select id, 1 as n from `shop`.`user`"
    assert model["depends_on"] == {"macros": ["macro.shop.one"], "nodes": ["source.shop.shop.user"]}
    assert model["sources"] == [["shop", "user"]]
    assert data["nodes"]["test.shop.unique_m_id.4dffd0a90e"]["test_metadata"]["name"] == "unique"
    assert data["parent_map"]["test.shop.t"] == ["model.shop.m", "seed.shop.s"]
    assert data["child_map"]["model.shop.m"] == ["test.shop.t", "test.shop.unique_m_id.4dffd0a90e"]
    assert "macro.shop.one" in data["macros"]


def test_the_manifest_is_the_same_for_the_same_files(project: ParsedProject, rendered: RenderedProject) -> None:
    graph = build_graph(project, rendered)
    assert manifest(project, rendered, graph, "dws") == manifest(project, rendered, graph, "dws")


def test_no_secret_reaches_the_manifest(project: ParsedProject, rendered: RenderedProject) -> None:
    assert project.sources[0].ingest is not None
    assert "hunter2" in str(project.sources[0].ingest.kafka)
    assert "hunter2" not in json.dumps(manifest(project, rendered, build_graph(project, rendered), "dws"), default=str)
    assert "hunter2" not in repr(project.sources)


def test_run_results_hold_every_node_in_order(project: ParsedProject, rendered: RenderedProject) -> None:
    path = project.root / "target" / "run_results.json"
    timing = Timing("execute", NOW, NOW + datetime.timedelta(seconds=1))
    results = [
        NodeRow("model.shop.m", "success", "ok", 1.0, {"strategy": "row_based"}, timing=(timing,)),
        NodeRow("test.shop.t", "fail", failures=3),
    ]
    args = {"select": ("m",), "project_dir": Path("x"), "quiet": False, "vars": "{password: hunter2}"}
    write_run_results(path, results, 1.5, args, rendered, NOW)
    data = json.loads(path.read_text())
    first, second = data["results"]
    assert data["metadata"]["dbt_schema_version"].endswith("/run-results/v6.json")
    assert (first["unique_id"], first["adapter_response"]) == ("model.shop.m", {"strategy": "row_based"})
    assert first["timing"][0]["completed_at"] == "2024-05-01T00:00:01.000000Z"
    assert (first["relation_name"], first["compiled"]) == ("`dws`.`m`", True)
    assert (second["status"], second["failures"]) == ("fail", 3)
    assert (data["elapsed_time"], data["args"]) == (1.5, {"select": ["m"], "project_dir": "x", "quiet": False})


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("a file")
    with pytest.raises(MachineError, match="cannot write"):
        write_json(tmp_path / "target" / "manifest.json", {})
