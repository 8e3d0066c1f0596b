"""`manifest.json` key by key beside the one that dbt-core 1.11.16 writes of the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_core.cafe import FILES as CAFE
from tests.dbt_core.program import asked, python_of_dbt
from tests.dbt_core.semantic import FILES as SEMANTIC
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
Entry = Mapping[str, object]
PROFILE = "lake: {target: d, outputs: {d: {type: duckdb, path: x.duckdb, schema: main}}}\n"
SECTIONS = (
    *("nodes", "sources", "exposures", "unit_tests", "groups", "docs", "macros"),
    *("semantic_models", "metrics", "saved_queries", "functions"),
)
DIFFERS: Mapping[str, frozenset[str]] = {
    "every node": frozenset({
        "database", "relation_name", "quoting", "created_at", "unrendered_config", "build_path",
        "doc_blocks", "depends_on.macros", "compiled", "compiled_code", "compiled_path",
    }),
    "model": frozenset({
        "extra_ctes", "extra_ctes_injected", "primary_key", "contract.checksum", "config.unique_key",
        "config.partition_by",
    }),
    "snapshot": frozenset({"checksum"}),
    "seed": frozenset({"root_path"}),
    "source": frozenset({"unrendered_database", "unrendered_schema"}),
    "generic test": frozenset({"config.tags"}),
    "unit test": frozenset({"checksum", "given", "expect"}),
    "group": frozenset({"config.materialized", "config.persist_docs"}),
}  # fmt: skip
"""Keys that differ by intention, by what they are of: the table of `docs/dbt.md` has each, with the reason."""
NESTED = ("config", "contract", "depends_on")
SHOP: Mapping[str, str] = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: lake\n"
    "models: {shop: {marts: {+materialized: table, +meta: {owner: ada}}}}\n"
    "seeds: {shop: {+schema: raw, +docs: {node_color: red}, +meta: {a: b}}}\n",
    "profiles.yml": PROFILE,
    "packages.yml": "packages: [{local: kit}]\n",
    "kit/dbt_project.yml": "name: kit\nversion: '1.0'\n",
    "kit/macros/cents.sql": "{% macro cents(name) %}{{ name }} / 100{% endmacro %}\n\n"
    "{% test positive(model, column_name) %}select * from {{ model }} where {{ column_name }} <= 0{% endtest %}\n",
    "kit/models/days.sql": "select 1 as day\n",
    "seeds/products.csv": "sku,price\na,100\nb,250\n",
    "models/src.yml": """
sources:
  - name: till
    description: what the tills send
    loader: a van
    schema: raw
    tags: [raw]
    tables:
      - name: bills
        identifier: products
        description: one row a bill
        loaded_at_field: price
        freshness: {warn_after: {count: 1, period: day}}
        columns: [{name: sku, description: the product, data_type: string, data_tests: [not_null]}]
      - {name: items, meta: {seen: true}, tags: [b, a], config: {event_time: price, freshness: null}}
""",
    "models/stg_bills.sql": "select sku, {{ kit.cents('price') }} as price from {{ source('till', 'bills') }}\n\n",
    "models/marts/sums.sql": "{{ config(alias='totals', tags=['night'], docs={'node_color': 'red'}) }}\n"
    "select sku, sum(price) as total from {{ ref('stg_bills') }} group by sku\n",
    "models/marts/p.yml": """
models:
  - name: sums
    description: "{{ doc('sums') }}"
    config: {contract: {enforced: true}}
    columns:
      - {name: sku, data_type: string, description: "key", meta: {pii: false}, tags: [k], data_tests: [unique]}
      - name: total
        data_type: double
        data_tests:
          - kit.positive: {config: {severity: warn, warn_if: '> 1'}}
          - relationships: {arguments: {to: ref('stg_bills'), field: price}, config: {enabled: false}}
""",
    "models/docs.md": "{% docs sums %}\nWhat was taken.\n{% enddocs %}\n",
    "models/e.yml": "exposures:\n  - {name: page, type: dashboard, url: 'https://x.org', maturity: low,\n"
    "     owner: {email: a@x.org}, depends_on: [\"ref('sums')\", \"source('till', 'items')\"]}\n",
    "analyses/look.sql": "select * from {{ ref('sums') }}\n",
    "tests/none_is_free.sql": "select * from {{ ref('sums') }} where total = 0\n",
}
HOOKED: Mapping[str, str] = {
    "dbt_project.yml": "name: hooked\nversion: '1.0'\nprofile: lake\n"
    "models: {+post-hook: [\"{{ 'select 1' }}\"], hooked: {+persist_docs: {relation: true}}}\n",
    "profiles.yml": PROFILE,
    "models/base.sql": "{{ config(materialized='ephemeral') }}select 1 as id, 2 as n",
    "models/added.sql": "{{ config(materialized='incremental', unique_key=['id', 'n'], "
    "on_schema_change='append_new_columns', pre_hook='select 2') }} select * from {{ ref('hooked', 'base') }}",
    "models/read.sql": "{{ config(full_refresh=false, group='g', access='private', labels={'domain': 'mart'}, "
    "grants={'select': ['a']}) }}\n"
    "select id from {{ ref('added') }} union all select n from {{ ref('added') }} union all select id "
    "from {{ ref('base') }}",
    "functions/half.sql": "a / parts\n",
    "functions/fourth.sql": "{{ function('half') }}({{ function('half') }}(a, 2), 2)",
    "models/halved.sql": "select {{ function('fourth') }}({{ function('half') }}(id, 2)) as h from {{ ref('added') }}",
    "models/p.yml": """
functions:
  - name: half
    description: Of a number.
    arguments: [{name: a, data_type: double, description: the number}, {name: parts, data_type: int, default_value: 2}]
    returns: {data_type: double}
    config: {volatility: deterministic, tags: [maths], meta: {who: ada}}
  - {name: fourth, arguments: [{name: a, data_type: double}], returns: {data_type: double, description: a part}}
groups: [{name: g, owner: {name: Ada, email: a@x.org}}]
models:
  - {name: read, data_tests: [{unique: {column_name: id, config: {where: "id > 1", limit: 3, tags: [t]}}}]}
snapshots:
  - {name: kept, relation: ref('added'), config: {unique_key: id, strategy: check, check_cols: [n], schema: past}}
unit_tests:
  - name: adds
    model: read
    config: {meta: {who: ada}}
    given: [{input: ref('added'), rows: [{id: 1, n: 2}]}, {input: ref('base'), rows: []}]
    expect: {rows: [{id: 1}, {id: 2}]}
""",
}


_MORE = {"cafe": CAFE, "shop": SHOP, "semantic": SEMANTIC}


@pytest.fixture(
    params=[
        pytest.param(HOOKED, id="hooked"),
        *(pytest.param(files, id=name, marks=pytest.mark.release) for name, files in _MORE.items()),
    ]
)
def manifests(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Ours and dbt's."""
    python_of_dbt()
    enter_project(tmp_path, monkeypatch, request.param)
    calls = [*([["deps"]] if "packages.yml" in request.param else []), ["parse"]]
    assert all(answer["success"] for answer in asked(tmp_path, calls))
    if "packages.yml" in request.param:
        assert main(["deps", "--target", "d"]) == 0, capsys.readouterr()
    assert main(["parse", "--target-path", "ours"]) == 0, capsys.readouterr()
    return tuple(json.loads(Path(of, "manifest.json").read_text()) for of in ("ours", "target"))  # type: ignore[misc]


def section(manifest: Mapping[str, Entry], name: str) -> dict[str, Entry]:
    """Entries of a section by unique id, without what comes with dbt itself."""
    its_own = re.compile(r"(macro|doc)\.dbt(_duckdb)?\.")
    return {key: entry for key, entry in manifest[name].items() if not its_own.match(key)}  # type: ignore[misc]


def test_every_node_has_dbt_s_id_and_every_key_dbt_s_value(
    manifests: tuple[dict[str, Entry], dict[str, Entry]],
) -> None:
    ours, theirs = manifests
    differences: list[str] = []
    for name in SECTIONS:
        mine, other = section(ours, name), section(theirs, name)
        assert set(mine) == set(other), name
        for unique_id, entry in other.items():
            differences += [
                f"{unique_id} {key}: {said!r}, dbt {wanted!r}"
                for key, said, wanted in differing(mine[unique_id], entry)
            ]
    assert not differences, "\n" + "\n".join(differences)
    for name in ("parent_map", "child_map"):
        assert {k: sorted(v) for k, v in ours[name].items()} == {k: sorted(v) for k, v in theirs[name].items()}  # type: ignore[call-overload]
    assert set(theirs["metadata"]) <= set(ours["metadata"])


def differing(mine: Entry, other: Entry) -> Iterator[tuple[str, object, object]]:
    """Keys of dbt's entry of which ours has another value, those of `DIFFERS` left out; some by the keys in them."""
    kind = "generic test" if other.get("test_metadata") else str(other["resource_type"]).replace("_", " ")
    left_out = DIFFERS["every node"] | DIFFERS.get(kind, frozenset())
    if kind == "unit test" and "csv" not in json.dumps(other):
        left_out -= {"given", "expect"}
    for key, said, wanted in compared_keys(mine, other):
        if key not in left_out and plain(key, said) != plain(key, wanted):
            yield key, said, wanted


def compared_keys(mine: Entry, other: Entry) -> Iterator[tuple[str, object, object]]:
    for key, wanted in other.items():
        said = mine.get(key, "nothing")
        if key in NESTED and isinstance(wanted, Mapping) and isinstance(said, Mapping):
            yield from ((f"{key}.{name}", said.get(name, "nothing"), each) for name, each in wanted.items())
        else:
            yield key, said, wanted


def plain(key: str, value: object) -> object:
    """What `refs`, `functions` and `depends_on.nodes` repeat, and their order, says nothing; nor what ends a macro."""
    if key in ("refs", "sources", "functions", "depends_on.nodes") and isinstance(value, list):
        return {json.dumps(entry, sort_keys=True) for entry in value}
    if key in ("node_relation", "exports"):
        return without(("database", "relation_name"), value)
    if key == "columns" and isinstance(value, Mapping):
        return {name: {k: v for k, v in column.items() if k != "doc_blocks"} for name, column in value.items()}
    return value.strip() if isinstance(value, str) else value


def without(keys: tuple[str, ...], value: object) -> object:
    """A value of JSON without these keys, however deep they are."""
    match value:
        case dict():
            return {key: without(keys, part) for key, part in value.items() if key not in keys}
        case list():
            return [without(keys, part) for part in value]
        case _:
            return value


def test_each_difference_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/dbt.md").read_text()
    table = page.partition("## Keys of manifest.json that differ")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    written = {(of.strip(), key) for keys, of in rows for key in re.findall(r"`([a-z_.]+)`", keys)}
    assert written == {(of, key) for of, keys in DIFFERS.items() for key in keys}
