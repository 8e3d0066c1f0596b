"""Semantic models, metrics and saved queries: nodes that are listed and selected, and that nothing computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_artifacts import read_manifest
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
SEMANTIC = """
semantic_models:
  - name: sales
    model: ref('sale')
    config: {meta: {who: ada}}
    entities: [{name: sale, type: primary, expr: id}]
    dimensions: [{name: sold_on, type: time, type_params: {time_granularity: day}}]
    measures:
      - {name: takings, agg: sum, expr: price, create_metric: true}
      - {name: sale_count, agg: count, expr: 1}
metrics:
  - {name: sales, label: Sales, type: simple, type_params: {measure: sale_count}, tags: [daily]}
  - name: mean
    label: Mean
    type: ratio
    filter: "{{ Dimension('sale__big') }}"
    type_params: {numerator: takings, denominator: sales}
saved_queries:
  - name: report
    query_params: {metrics: [mean, sales]}
    exports: [{name: report, config: {export_as: table}}]
exposures:
  - {name: page, type: dashboard, owner: {name: Bo}, depends_on: [metric('mean')]}
"""
FILES: Mapping[str, str] = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\nmetrics: {shop: {marts: {mean: {+group: money}}}}\n",
    "seeds/sale.csv": "id,price\n1,2\n2,3\n",
    "models/groups.yml": "groups: [{name: money, owner: {name: Fay}}]\n",
    "models/marts/s.yml": SEMANTIC,
}


class Project:
    """The project above in a temporary folder, and what a call on it prints."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
        self.root, self._capsys = root, capsys
        enter_project(root, monkeypatch, FILES)

    def call(self, *words: str, code: int = 0) -> str:
        ended = main([*words])
        shown = self._capsys.readouterr()
        assert ended == code, shown
        assert "Traceback" not in shown.err
        return shown.out + shown.err

    def edit(self, old: str, new: str, path: str = "models/marts/s.yml") -> None:
        text = (self.root / path).read_text()
        assert old in text
        (self.root / path).write_text(text.replace(old, new, 1))

    def artifact(self, name: str) -> dict[str, dict[str, dict[str, object]]]:
        loaded: dict[str, dict[str, dict[str, object]]] = json.loads((self.root / "target" / name).read_text())
        return loaded


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def test_they_are_listed_under_dbt_s_selectors(project: Project) -> None:
    assert project.call("ls").split() == [
        "shop.sale", "semantic_model:shop.sales", "metric:shop.sales", "metric:shop.takings", "metric:shop.mean",
        "exposure:shop.page", "saved_query:shop.report",
    ]  # fmt: skip
    types = ["--resource-type", "metric", "--resource-type", "saved_query", "--output", "name"]
    assert project.call("ls", *types).split() == ["sales", "takings", "mean", "report"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metric:mean", "mean"),
        ("metric:shop.*s", "sales takings"),
        ("metric:other.*", ""),
        ("semantic_model:sales+1", "sales sales takings"),
        ("+saved_query:report", "sale sales sales takings mean report"),
        ("sales", "sales sales"),  # a semantic model and a metric
        ("tag:daily", "sales"),
        ("group:money", "mean"),
        ("config.group:money", ""),  # as in dbt settings of these are not looked at
        ("resource_type:semantic_model", "sales"),
    ],
)
def test_selectors_choose_what_dbt_s_choose(project: Project, selector: str, names: str) -> None:
    shown = project.call("ls", "-s", selector, "--output", "name", code=0 if names else 2)
    assert shown.split() == names.split() if names else "matches nothing" in shown


def test_parse_says_that_nothing_computes_them_and_it_is_not_a_warning(project: Project) -> None:
    shown = project.call("parse", "--warn-error")
    assert "3 metrics, 1 saved query, 1 semantic model are listed; nothing here computes them" in shown
    assert "warning" not in shown
    page = project.call("import-check")
    assert page.startswith("shop: 1 exposure, 3 metrics, 1 saved query, 1 seed, 1 semantic model\n")
    assert "\nListed only\n  3 metrics, 1 saved query, 1 semantic model: " in page


def test_the_manifest_has_their_graph_and_is_valid(project: Project) -> None:
    project.call("parse")
    manifest = project.artifact("manifest.json")
    read_manifest(manifest)
    assert manifest["parent_map"]["saved_query.shop.report"] == ["metric.shop.mean", "metric.shop.sales"]
    assert manifest["child_map"]["metric.shop.mean"] == ["exposure.shop.page", "saved_query.shop.report"]
    assert manifest["child_map"]["seed.shop.sale"] == ["semantic_model.shop.sales"]
    assert manifest["exposures"]["exposure.shop.page"]["metrics"] == [["mean"]]
    assert manifest["group_map"] == {"money": ["metric.shop.mean"]}
    takings = manifest["metrics"]["metric.shop.takings"]
    assert (takings["label"], takings["description"]) == ("takings", "Metric created from measure takings")
    assert takings["config"] == {"enabled": True, "group": None, "meta": {"who": "ada"}}


def test_build_counts_saved_queries_and_exposures_as_no_op(project: Project) -> None:
    shown = project.call("build")
    assert "NO-OP saved query report ." in shown and "NO-OP exposure page ." in shown and "START saved" not in shown
    assert "Done. PASS=1 WARN=0 ERROR=0 SKIP=0 NO-OP=2 TOTAL=3" in shown
    results = {row["unique_id"]: row for row in project.artifact("run_results.json")["results"]}  # type: ignore[index]
    report = results["saved_query.shop.report"]  # type: ignore[index]
    assert (report["status"], report["message"], report["failures"]) == ("no-op", "NO-OP", 0)  # type: ignore[index]
    assert "TOTAL=1" in project.call("build", "-s", "saved_query:report")
    assert "warning: the selection holds no model: nothing to do" in project.call("run", "-s", "metric:mean")


def test_a_saved_query_over_a_failed_table_is_skipped(project: Project) -> None:
    (project.root / "models/other.sql").write_text("select id from {{ ref('sale') }}")
    (project.root / "models/bad.sql").write_text("{{ config(materialized='table') }}select ids from {{ ref('sale') }}")
    project.edit("ref('sale')", "ref('bad')")
    shown = project.call("build", code=1)
    assert "SKIP saved query report ." in shown and "SKIP exposure page ." in shown
    assert "PASS=2 WARN=0 ERROR=1 SKIP=2 NO-OP=0 TOTAL=5" in shown


def test_templates_find_them_in_the_graph_and_the_site_is_made(project: Project) -> None:
    text = "{{ graph.metrics.values() | map(attribute='name') | sort | join(',') }} {{ graph.saved_queries | length }}"
    loop = f"{{% if execute %}}select '{text} {{{{ graph['semantic_models'] | length }}}}' as names{{% endif %}}"
    (project.root / "models/names.sql").write_text(f"{{{{ config(materialized='table') }}}}{loop}")
    project.call("build")
    assert "mean,sales,takings 1 1" in project.call("show", "names")
    project.call("docs", "generate")
    assert (project.root / "target/index.html").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("measure: sale_count", "measure: sale_cuont", "12:70: no semantic model has a measure named 'sale_cuont'"
         "\n  did you mean 'sale_count'?"),
        ("numerator: takings", "numerator: taking", "17:30: no metric is named 'taking'\n  did you mean 'takings'?"),
        ("[mean, sales]", "[mean, sale]", "20:36: no metric is named 'sale'\n  did you mean 'sales'?"),
        ("ref('sale')", "ref('sael')", "4:12: no model or seed is named 'sael'\n  did you mean 'sale'?"),
        ("ref('sale')", "source('a', 'b')", "4:12: the model of semantic model 'sales' is \"source('a', 'b')\""
         "\n  write model: ref('name')"),
        ("metric('mean')", "metric('maen')", "23:67: no metric is named 'maen'\n  did you mean 'mean'?"),
        ("agg: count", "agg: cuont", "10:28: agg is 'cuont'; it must be one of sum, min, max,"),
        ("expr: price", "exrp: price", "9:35: unknown key 'exrp' in a measure\n  did you mean 'expr'?"),
        ("type: ratio", "type: ration", "15:5: type is 'ration'; it must be one of simple, ratio,"),
        ("numerator: takings, ", "", "17:5: a ratio metric needs 'numerator'\n  add it to type_params of 'mean'"),
        ("label: Sales, ", "", "12:5: a metric needs 'label'\n  add label: …"),
        ("name: mean", "name: the mean", "13:5: 'the mean' cannot be a metric's name"),
        ("name: mean", "name: takings", "9:9: metric 'takings' is there twice"
         "\n  the first time at models/marts/s.yml:13:5; a measure with create_metric: true is one too"),
        ("name: sale_count", "name: takings", "10:9: two measures are named 'takings'"
         "\n  the first one is at models/marts/s.yml:9:9"),
        ("{measure: sale_count}", "{measure: {name: sale_count, fill_nulls_with: x}}",
         "12:89: fill_nulls_with must be a whole number, not 'x'"),
        ("denominator: sales", "denominator: mean", "17:52: metrics are made of each other in a circle: mean -> mean"),
        ("{export_as: table}", "{}", "21:15: export 'report': it needs 'export_as'"),
        ("{meta: {who: ada}}", "{enabled: 2}", "5:14: config 'enabled' must be true or false, not 2"),
        ("{meta: {who: ada}}", "{group: mony}", "3:5: semantic model 'sales' is of group 'mony', which there is not"
         "\n  did you mean 'money'?"),
        ("{meta: {who: ada}}", "{enabled: false}", "12:70: measure 'sale_count' is of semantic model 'sales', "
         "which is disabled"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_error_at_its_place(project: Project, old: str, new: str, said: str) -> None:
    project.edit(old, new)
    assert f"error: models/marts/s.yml:{said}" in project.call("parse", code=2)


def test_one_that_is_disabled_is_not_there(project: Project) -> None:
    project.edit(
        "metrics: {shop", "semantic-models: {+enabled: \"{{ var('on', false) }}\"}\nmetrics: {shop", "dbt_project.yml"
    )
    project.edit("metrics:\n", "unused:\n")
    project.edit("saved_queries:\n", "unused_too:\n")
    project.edit("metric('mean')", "ref('sale')")
    assert project.call("ls", "--quiet").split() == ["shop.sale", "exposure:shop.page"]
    on = project.call("ls", "--quiet", "--vars", "{on: true}")
    assert "metric:shop.takings" in on and "semantic_model:shop.sales" in on
    project.edit("ref('sale')]", "metric('takings')]")
    assert "23:67: metric 'takings' is disabled\n  enable it in models/marts/s.yml" in project.call("parse", code=2)


def test_a_private_model_is_of_its_group_alone(project: Project) -> None:
    (project.root / "models/own.sql").write_text("select id, price from {{ ref('sale') }}")
    (project.root / "models/own.yml").write_text("models: [{name: own, group: money, access: private}]\n")
    project.edit("ref('sale')", "ref('own')")
    assert "'sales' reads 'own', which is private to the group 'money'" in project.call("parse", code=2)
    project.edit("{who: ada}", "{who: ada}, group: money")
    project.call("parse")


def test_a_time_spine_needs_a_column_with_a_granularity(project: Project) -> None:
    (project.root / "models/days.sql").write_text("select date '2024-01-01' as day")
    days = "models: [{name: days, time_spine: {standard_granularity_column: day}, columns: [{name: day%s}]}]\n"
    (project.root / "models/days.yml").write_text(days % ", granularity: day")
    project.call("parse")
    entry = project.artifact("manifest.json")["nodes"]["model.shop.days"]
    assert entry["time_spine"] == {"standard_granularity_column": "day", "custom_granularities": []}
    (project.root / "models/days.yml").write_text(days % "")
    assert "models/days.yml:1:23: time_spine: column 'day' has no granularity" in project.call("parse", code=2)
    (project.root / "models/days.yml").write_text(days % "s")
    assert "models/days.yml:1:23: time_spine: the model's YAML has no column 'day'" in project.call("parse", code=2)
