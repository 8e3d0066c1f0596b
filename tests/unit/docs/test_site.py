"""What the site tells, and that nothing of it can do harm: read from the file that `sml docs generate` wrote."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.docs.libraries import site_libraries
from sqlmesh_like.docs.server import site_server
from tests.unit.docs.conftest import HOSTILE, make_project

Told = dict[str, object]


def told_by(site: Path) -> Told:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', site.read_text(), re.DOTALL)
    assert match is not None
    data: Told = json.loads(match[1])
    return data


@pytest.fixture(scope="module")
def message(site: Path) -> Told:
    return told_by(site)


def node(message: Told, unique_id: str) -> dict[str, object]:
    nodes = message["nodes"]
    assert isinstance(nodes, list)
    return next(each for each in nodes if each["id"] == unique_id)


def test_a_model_tells_its_plan_sql_program_and_commits(message: Told) -> None:
    daily = node(message, "model.shop.daily")
    plan, lake = daily["plan"], daily["lake"]
    assert isinstance(plan, dict) and isinstance(lake, dict)
    assert plan["strategy"] == "group_recompute"
    assert {aggregate["rule"] for aggregate in plan["aggregates"]} >= {"AGG001", "AGG002"}
    assert "-- full build" in str(daily["program"]) and "count(distinct id)" in str(daily["raw"])
    assert "`dws`.`paid`" in str(daily["compiled"])
    assert [commit["time"] for commit in lake["commits"]] == ["2024-01-01T00:00:02.000Z", "2024-01-01T00:00:04.000Z"]
    assert lake["commits"][0]["seconds"] == 1.0
    assert daily["result"] == {
        "status": "success", "message": "ok", "seconds": 1.5, "failures": None, "rows": 7,
        "strategy": "group_recompute", "failing_rows": None,
    }  # fmt: skip


def test_a_failing_test_shows_its_query_and_rows_and_no_call_of_a_macro(message: Told) -> None:
    nodes = message["nodes"]
    assert isinstance(nodes, list)
    test = next(each for each in nodes if each["name"] == "not_null_daily_day")
    assert test["raw"] is None and "day is null" in test["compiled"].lower()
    assert test["result"]["failing_rows"] == {"columns": ["day", "total"], "rows": [[None, "7.50"]]}


def test_columns_have_types_of_the_lake_and_words_of_the_project(message: Told) -> None:
    columns = node(message, "model.shop.daily")["columns"]
    assert isinstance(columns, list)
    assert [(column["name"], column["type"]) for column in columns] == [
        ("day", "date"), ("total", "double"), ("buyers", "bigint"),
    ]  # fmt: skip
    assert (columns[0]["description"], columns[1]["tags"]) == ("<p>The day of sale</p>\n", ["money"])


def test_column_lineage_goes_from_column_to_column(message: Told) -> None:
    nodes, edges = message["nodes"], message["edges"]
    assert isinstance(nodes, list) and isinstance(edges, list)
    named = {(nodes[e[0]]["name"], e[1], nodes[e[2]]["name"], e[3], e[4]) for e in edges}
    assert ("shop.orders", "amount", "paid", "doubled", "computed") in named
    assert ("paid", "doubled", "daily", "total", "aggregated") in named
    assert ("paid", "day", "daily", "total", "groups") in named or ("paid", "day", "daily", "*", "groups") in named
    assert ("shop.orders", "day", "paid", "*", "filters") in named


def test_a_colour_is_only_a_colour(message: Told, tmp_path: Path) -> None:
    assert node(message, "model.shop.daily")["color"] == "#123456"
    root = make_project(tmp_path)
    properties = root / "models/s.yml"
    properties.write_text(properties.read_text().replace('"#123456"', "url(http://example.com)"))
    assert generate(root, "-q") == 0
    assert node(told_by(root / "target/index.html"), "model.shop.daily")["color"] is None
    properties.write_text(properties.read_text().replace("node_color: url(http://example.com)", "show: false"))
    assert generate(root, "-q") == 0
    with pytest.raises(StopIteration):
        node(told_by(root / "target/index.html"), "model.shop.daily")


def test_a_snapshot_has_the_columns_that_it_adds(message: Told) -> None:
    columns = node(message, "snapshot.shop.hist")["columns"]
    assert isinstance(columns, list)
    assert {"id", "amount", "dbt_valid_from", "dbt_valid_to"} < {column["name"] for column in columns}


def test_a_model_whose_text_the_lake_decides_has_no_plan_and_stops_nothing(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    asking = "{% if execute %}{% do run_query('select 1') %}{% endif %}select 1 as a"
    (root / "models/asks.sql").write_text(asking)
    (root / "models/after.sql").write_text("select a from {{ ref('asks') }}")
    assert generate(root, "-q") == 0
    message = told_by(root / "target/index.html")
    assert node(message, "model.shop.asks")["plan"] is None
    assert node(message, "model.shop.after")["plan"]


def test_a_program_that_nobody_can_read_is_left_to_explain(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    paid = "{{ ref('paid') }}"
    for joins in (3, 4):
        others = " ".join(f"join {paid} p{n} on p{n}.id = p.id" for n in range(joins))
        (root / f"models/met_{joins}.sql").write_text(f"select p.id from {paid} p {others}")
    assert generate(root, "-q") == 0
    message = told_by(root / "target/index.html")
    assert "-- full build" in str(node(message, "model.shop.met_3")["program"])
    assert node(message, "model.shop.met_4")["program"] == (
        "-- 4 joins make a long program: `sml explain met_4 --sql` prints it"
    )


def test_every_rule_that_a_plan_names_is_told(message: Told) -> None:
    rules, nodes = message["rules"], message["nodes"]
    assert isinstance(rules, list) and isinstance(nodes, list)
    plans = [node["plan"] for node in nodes if node.get("plan")]
    used = {reason["rule"] for plan in plans for reason in (*plan["reasons"], *plan["aggregates"])}
    assert used and used <= {rule["id"] for rule in rules}


def test_a_macro_tells_its_arguments(message: Told) -> None:
    macro = node(message, "macro.shop.cents")
    assert (macro["description"], macro["raw"]) == ("<p>Euros</p>\n", "{% macro cents(x) %}{{ x }} / 100{% endmacro %}")
    assert macro["arguments"] == [
        {"name": "x", "type": "column", "description": "<p>an <em>amount</em> of cents</p>\n"}
    ]  # fmt: skip


def test_hostile_words_stay_words(site: Path, message: Told) -> None:
    text = site.read_text()
    assert HOSTILE not in text and text.count("</script>") == 2 + len(site_libraries())
    columns = node(message, "source.shop.shop.orders")["columns"]
    assert isinstance(columns, list)
    description = columns[1]["description"]
    assert "<script" not in description and "<img" not in description
    assert re.findall(r'href="([^"]*)"', description) == ["http://example.com/x.png"]  # a link, which a reader follows
    assert "<img" not in str(node(message, "model.shop.daily")["description"])


def test_the_page_forbids_requests_and_knows_its_script_by_hash(site: Path) -> None:
    text = site.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert policy and style and len(scripts) == 1 + len(site_libraries())
    for part in (*scripts, style[1]):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'") and "unsafe" not in policy[1] and "connect-src" not in policy[1]
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)


def generate(root: Path, *words: str) -> int:
    return main(["docs", "generate", *words, "--project-dir", str(root), "--profiles-dir", str(root)])


def test_without_a_lake_and_without_compiling_there_is_less(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    assert generate(root, "-t", "t", "--static", "-q") == 0
    daily = node(told_by(root / "target/static_index.html"), "model.shop.daily")
    assert isinstance(daily["plan"], dict)
    assert daily["plan"]["strategy"] == "group_recompute" and "next_run" not in daily["plan"]
    assert daily["lake"] is None
    assert json.loads((root / "target/catalog.json").read_text())["nodes"] == {}
    assert generate(root, "--no-compile", "--empty-catalog") == 0
    daily = node(told_by(root / "target/index.html"), "model.shop.daily")
    assert (daily["plan"], daily["lake"]) == (None, None)


def test_a_selection_limits_the_catalog_alone(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    assert generate(root, "-s", "top", "-q") == 0
    assert json.loads((root / "target/catalog.json").read_text())["nodes"] == {}
    assert node(told_by(root / "target/index.html"), "model.shop.daily")["lake"]
    assert generate(root, "-s", "daly") == 2


def test_a_table_that_cannot_be_read_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_project(tmp_path)
    properties = root / "w/dws/daily/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.timeline.layout.version=1\n")
    assert generate(root) == 0
    assert "was written" in (shown := capsys.readouterr().out) or "older Hudi" in shown
    lake = node(told_by(root / "target/index.html"), "model.shop.daily")["lake"]
    assert isinstance(lake, dict)
    assert not lake["exists"] and "older Hudi" in lake["problem"]


def test_serve_shows_the_site_and_artifacts_and_nothing_else(site: Path) -> None:
    (site.parent / "logs").mkdir(exist_ok=True)
    (site.parent / "logs/spark.log").write_text("secret")
    with site_server(site, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            base = f"http://127.0.0.1:{server.server_port}"
            with urllib.request.urlopen(base) as answer:
                assert answer.read() == site.read_bytes()
            with urllib.request.urlopen(f"{base}/catalog.json") as answer:
                assert "dws" in answer.read().decode()
            for path in ("logs/spark.log", "logs/", "..%2fpyproject.toml", "compiled/"):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(f"{base}/{path}")
                assert caught.value.code == 404
                caught.value.close()
        finally:
            server.shutdown()
            thread.join()


def test_serve_says_what_is_missing_or_taken(tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_project(tmp_path)
    flags = ["--no-browser", "--project-dir", str(root), "--profiles-dir", str(root)]
    assert main(["docs", "serve", *flags]) == 2
    assert "run `sml docs generate` first" in capsys.readouterr().err
    (root / "target/index.html").write_text("x")
    with site_server(site, "127.0.0.1", 0) as server:
        assert main(["docs", "serve", "--port", str(server.server_port), *flags]) == 2
    assert "cannot listen at 127.0.0.1" in capsys.readouterr().err
    assert main(["docs", "serve", "--host", "no such host", *flags]) == 2
    assert "cannot listen at no such host" in capsys.readouterr().err
