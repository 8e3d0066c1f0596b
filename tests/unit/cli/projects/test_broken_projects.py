"""A good project broken in two hundred ways: never a traceback, never exit 0, always a file and a line.

Each rule is a pattern and what stands in its place; a project is broken once for each place that matches: in the suite
once for each file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.levels import IS_RELEASE, sample
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
SETTINGS = """name: shop
version: '1.0'
profile: lake
vars:
  least: 0
models:
  shop:
    staging:
      +materialized: view
      +tags: [raw]
    +table_type: cow
seeds:
  +delimiter: ","
data_tests:
  shop:
    +severity: "{{ 'warn' if target.name == 'dev' else 'error' }}"
on-run-start: []
"""
SCHEMA = """version: 2
sources:
  - name: ods
    description: as it comes
    tables:
      - name: orders
        columns:
          - name: id
            data_type: int
          - name: product
            data_type: string
          - name: amount
            data_type: decimal(10,2)
          - name: at
            data_type: timestamp
models:
  - name: stg_orders
    description: one row an order
    config:
      materialized: incremental
      unique_key: id
    columns:
      - name: id
        data_tests:
          - unique
          - not_null
      - name: product
        data_tests:
          - accepted_values:
              values: [tea, milk]
          - relationships:
              to: ref('products')
              field: product
              config:
                severity: warn
  - name: daily
    columns:
      - name: total
        data_tests:
          - not_negative
seeds:
  - name: products
    config:
      column_types:
        price: decimal(5,2)
snapshots:
  - name: kept
    relation: ref('products')
    config:
      strategy: check
      unique_key: product
      check_cols: all
"""
FILES = {
    "dbt_project.yml": SETTINGS,
    "profiles.yml": "lake:\n  target: t\n  outputs:\n    t:\n      type: duckdb\n      threads: 1\n",
    "models/schema.yml": SCHEMA,
    "models/shelves.yml": """version: 2
models:
  - name: shelf
    latest_version: 2
    columns:
      - name: id
        data_tests:
          - unique
      - name: wide
    versions:
      - v: 1
        defined_in: shelf_old
      - v: 2
        columns:
          - include: all
            exclude: [wide]
data_tests:
  - name: no_shelf_is_wide
    description: none of the old ones
    config:
      severity: warn
      where: "id < {{ var('least') }}"
""",
    "models/shelf_old.sql": "select 1 as id, 2 as wide",
    "models/shelf_v2.sql": "select id from {{ ref('shelf', v=1) }}",
    "tests/no_shelf_is_wide.sql": "select id from {{ ref('shelf', v=1) }} where wide > 10",
    "models/staging/stg_orders.sql": """{{ config(table_type='cow', tags=['daily']) }}
select id, product, amount, cast(at as date) as day
from {{ source('ods', 'orders') }}
where amount > {{ var('least') }}
""",
    "models/daily.sql": """with priced as (
  select o.day, o.product, o.amount, p.price
  from {{ ref('stg_orders') }} as o
  left join {{ ref('products') }} as p on o.product = p.product
)
select day, sum(amount) as total, count(*) as n, max({{ rounded('price') }}) as dearest
from priced
group by day
{% if var('least') > 10 %}
having count(*) > 1
{% endif %}
""",
    "models/top.sql": """select day, total
from {{ ref('daily') }}
where day in (select max(day) as day from {{ ref('stg_orders') }})
union all
select day, amount as total
from {{ ref('stg_orders') }}
""",
    "macros/m.sql": """{% macro rounded(column) %}
  round({{ column }}, 1)
{% endmacro %}
{% test not_negative(model, column_name) %}
select * from {{ model }} where {{ column_name }} < 0
{% endtest %}
""",
    "seeds/products.csv": "product,price\ntea,1.50\nmilk,0.90\n",
    "tests/totals.sql": "select day, total from {{ ref('daily') }} where total < 0\n",
}
SQL = r"(models|tests)/.*\.sql"
MODEL = r"models/.*\.sql"
YAML = r".*\.yml"
PROPERTIES, SHELVES = "models/schema.yml", "models/shelves.yml"
RULES: dict[str, tuple[str, str, str]] = {
    "an unknown column": (MODEL, r"\b(amount|product|id|at|price)\b(?=[ ,)\n])(?! as)", "nowhere"),
    "a column of another table": (MODEL, r"\b([op])\.(day|product|amount|price)\b", r"\1.elsewhere"),
    "a table alias that is not there": (MODEL, r"\b[op]\.(?=\w)", "q."),
    "a misspelt keyword": (SQL, r"\b(select|from|where|group by|union all)\b", "slect"),
    "a function that is not there": (MODEL, r"\b(sum|max|cast)\(", r"\g<1>mary("),
    "a bracket that is not closed": (MODEL, r"\)(?= as|\n)", ""),
    "a quote that is not closed": (MODEL, r"(?<=select )(?=\w)", "'"),
    "a comma too many": (MODEL, r"(?=\nfrom)", ","),
    "an aggregate in WHERE": (MODEL, r"\nwhere ", "\nwhere sum(amount) > 1 and "),
    "a column that is not grouped": (MODEL, r"group by day", "group by total"),
    "a second statement": (MODEL, r"\Z", "; select 1 as a"),
    "no SELECT at all": (MODEL, r"\A(.|\n)*\Z", "delete from t"),
    "an empty file": (MODEL, r"\A(.|\n)*\Z", "\n"),
    "a union of other columns": (MODEL, r"as total\nfrom \{\{ ref\('stg", "as total, 1 as one\nfrom {{ ref('stg"),
    "a reference to nothing": (SQL, r"ref\('(\w+)'\)", r"ref('\1s')"),
    "a source that is not there": (SQL, r"source\('ods', 'orders'\)", "source('ods', 'order')"),
    "a source without its table": (SQL, r"source\('ods', 'orders'\)", "source('ods')"),
    "a function of templates misspelt": (SQL, r"\{\{ (ref|source|var|config|rounded)\(", r"{{ \1x("),
    "a tag that is not closed": (SQL, r" \}\}", ""),
    "a block that is not closed": (r".*\.sql", r"\{% end\w+ %\}", ""),
    "a block that is not opened": (r".*\.sql", r"\{% (if|macro|test) [^%]*%\}", ""),
    "a bracket of a call not closed": (SQL, r"(ref|source|var)\(('[^)]*')\)", r"\1(\2"),
    "a variable that is not set": (SQL, r"var\('least'\)", "var('lest')"),
    "a setting misspelt": (MODEL, r"table_type=", "table_typ="),
    "a setting of a wrong value": (MODEL, r"'cow'", "'horse'"),
    "a version that is not there": (SQL, r"v=1", "v=7"),
    "a latest version that is not there": (SHELVES, r"latest_version: 2", "latest_version: 9"),
    "a version without a number": (SHELVES, r"- v: \d", "- description: x"),
    "a version that is there twice": (SHELVES, r"- v: 2", "- v: 1"),
    "a rule for columns that is none": (SHELVES, r"include: all", "includes: all"),
    "a word that a target does not have": (YAML, r"target\.name", "target.nam"),
    "a severity by folder that is not there": ("dbt_project.yml", r"'error' }}", "'fatal' }}"),
    "a description of a test that is not there": (
        SHELVES,
        r"(?m)^data_tests:\n(.|\n)*\Z",
        "data_tests: [{name: x, colour: red}]",
    ),
    "a condition of a test that is none": (SHELVES, r"where: .*", "where: [1]"),
    "a key of a version misspelt": (SHELVES, r"defined_in|exclude|latest_version", r"\g<0>x"),
    "a filter that is not there": (SQL, r"var\('least'\)", "var('least') | upperr"),
    "a quote in YAML that is not closed": (YAML, r"(?m)(?<=: )(?=\w+$)", '"'),
    "a tab in YAML": (YAML, r"(?m)^  (?=\s*- name|\s*\w+:)", "\t"),
    "a bracket in YAML that is not closed": (YAML, r"\]", ""),
    "a key misspelt": (
        PROPERTIES,
        r"\b(models|seeds|sources|columns|config|data_tests|tables|description|snapshots|unique_key|column_types|strategy)(?=:)",
        r"\1x",
    ),
    "a key of the settings misspelt": (
        "dbt_project.yml",
        r"(?m)^(models|vars|seeds|on-run-start|profile|version)(?=:)",
        r"\1x",
    ),
    "a setting by folder misspelt": ("dbt_project.yml", r"\+(materialized|tags|table_type|delimiter)", r"+\1x"),
    "a name that is missing": (
        PROPERTIES,
        r"- name: (stg_orders|daily|orders|ods|products|kept)\n",
        "- description: x\n",
    ),
    "a mapping for a list": (PROPERTIES, r"(?m)^(models|sources|seeds|snapshots):$", r"\1: {a: 1}\nanchors:"),
    "a text for a list": (PROPERTIES, r"values: \[tea, milk\]", "values: {a: [}"),
    "a key that is there twice": (
        PROPERTIES,
        r"(?m)^( +)(description|unique_key|strategy): (.*)$",
        r"\1\2: \3\n\1\2: \3",
    ),
    "a node described twice": (PROPERTIES, r"(?m)^  - name: (stg_orders|daily)$", r"  - name: \1\n  - name: \1"),
    "a materialization that is not there": (YAML, r"(?<=materialized: )\w+", "tabel"),
    "a test that is not there": (
        PROPERTIES,
        r"- (unique|not_null|not_negative|accepted_values|relationships)\b",
        r"- \1x",
    ),
    "a test without what it needs": (PROPERTIES, r"(?m)^ +(values: .*|to: .*|field: .*)\n", ""),
    "a test of nothing": (PROPERTIES, r"to: ref\('products'\)", "to: ref('product')"),
    "a severity that is not there": (PROPERTIES, r"severity: warn", "severity: mild"),
    "a key that the query lacks": (PROPERTIES, r"unique_key: (id|product)", "unique_key: nowhere"),
    "a strategy that is not there": (PROPERTIES, r"strategy: check", "strategy: chess"),
    "a type that is not there": (PROPERTIES, r"price: decimal\(5,2\)", "price: decimel"),
    "a type that the seed is not": (PROPERTIES, r"price: decimal\(5,2\)", "product: int"),
    "a line of a seed too long": ("seeds/.*", r"(?m)(?<=\d)$", ",1"),
    "a column of a seed twice": ("seeds/.*", r"product,price", "price,price"),
    "no header": ("seeds/.*", r"\A(.|\n)*\Z", ""),
    "an engine that is not there": ("profiles.yml", r"duckdb", "duckbd"),
    "a number that is none": ("profiles.yml", r"threads: 1", "threads: many"),
    "a key of an output misspelt": ("profiles.yml", r"threads:", "thread:"),
    "a target without an engine": ("profiles.yml", r" +type: duckdb\n", ""),
    "a macro defined twice": ("macros/.*", r"\A", "{% macro rounded(c) %}{% endmacro %}\n"),
    "bytes that are no text": (r".*\.(sql|yml|csv)", r"\A", "\udcff"),
}


TOLD = re.compile(r"^(error: )?[\w/]+\.(sql|yml|csv):\d+", re.MULTILINE)
"""A file of the project with a line, where a message begins."""


ALL_PLACES, LAST_PLACE = slice(None), slice(-1, None)


def broken(places: slice = ALL_PLACES) -> Iterator[tuple[str, str, str, int]]:
    """Rule, file, broken text, and which of the places of that file it is."""
    for rule, (files, pattern, instead) in RULES.items():
        for path, text in FILES.items():
            if not re.fullmatch(files, path):
                continue
            for number, match in list(enumerate(re.finditer(pattern, text)))[places]:
                yield rule, path, text[: match.start()] + match.expand(instead) + text[match.end() :], number


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_there_are_two_hundred_and_the_project_itself_is_good(project: Path, capsys: Shown) -> None:
    assert main(["compile"]) == 0, capsys.readouterr().err
    assert len(list(broken())) >= 200
    assert {rule for rule, *_ in broken()} == set(RULES)


PASSED_OVER = (
    "an empty file",
    *("a setting misspelt", "a setting by folder misspelt", "a key misspelt", "a key of a version misspelt"),
    *("a key that is there twice", "a description of a test that is not there"),
)
"""What dbt takes as well: a warning, told as errors are."""


@sample("rule", RULES, every=2)
def test_what_is_broken_is_told_with_its_file_and_line(project: Path, capsys: Shown, rule: str) -> None:
    call = ["compile", "--warn-error"] if rule in PASSED_OVER else ["compile"]
    wrong: list[str] = []
    places = ALL_PLACES if IS_RELEASE else LAST_PLACE
    for _, path, text, number in (case for case in broken(places) if case[0] == rule):
        (project / path).write_bytes(text.encode("utf-8", "surrogateescape"))
        code, message = main(call), capsys.readouterr().err
        (project / path).write_text(FILES[path])
        if code != 2 or "Traceback" in message or not TOLD.search(message):
            wrong.append(f"{path}, place {number}: exit {code}: {message.strip() or 'nothing message'}")
    assert not wrong, "\n".join(wrong)
