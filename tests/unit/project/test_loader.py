"""What the loader makes of a project's files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sqlmesh_like.errors import Location, ProjectError, require_sound
from sqlmesh_like.project.loader import find_project, load_project
from sqlmesh_like.project.nodes import ParsedProject, PartitionBy

Write = Callable[[Mapping[str, str]], Path]

OWN = '[tool.sqlmesh_like]\nname = "shop"\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def files(texts: Mapping[str, str]) -> Path:
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return files


def load(root: Path, **variables: object) -> ParsedProject:
    return load_project(root, variables)


def test_a_project_is_found_from_a_folder_inside_it(write: Write) -> None:
    root = write({"pyproject.toml": OWN, "models/dws/m.sql": "select 1"})
    assert find_project(root / "models" / "dws") == root


def test_a_pyproject_without_our_table_is_no_project(write: Write) -> None:
    root = write({"pyproject.toml": "[tool.other]\n"})
    with pytest.raises(ProjectError, match="no project"):
        find_project(root)


def test_dbt_settings_win_over_pyproject(write: Write) -> None:
    root = write({"pyproject.toml": OWN, "dbt_project.yml": "name: other\n"})
    project = load(root)
    assert (project.name, project.settings_file) == ("other", "dbt_project.yml")


@pytest.mark.parametrize(
    ("settings", "text", "materialized"),
    [("pyproject.toml", OWN, "incremental"), ("dbt_project.yml", "name: shop", "view")],
)
def test_the_default_materialization_follows_the_settings_file(
    write: Write, settings: str, text: str, materialized: str
) -> None:
    root = write({settings: text, "models/m.sql": "select 1"})
    assert load(root).models[0].yaml_config["materialized"] == materialized


def test_config_by_folder_is_overridden_by_properties_and_tags_add_up(write: Write) -> None:
    settings = """
name: shop
models:
  +tags: all
  shop:
    +schema: x
    dws:
      +materialized: table
      +tags: [daily]
      +meta: {a: 1}
"""
    properties = """
models:
  - name: m
    config: {materialized: incremental, tags: [own], meta: {b: 2}}
"""
    root = write({"dbt_project.yml": settings, "models/dws/m.sql": "select 1", "models/p.yml": properties})
    config = load(root).models[0].yaml_config
    assert config["materialized"] == "incremental"
    assert config["schema"] == "x"
    assert config["tags"] == ("all", "daily", "own")
    assert config["meta"] == {"a": 1, "b": 2}


def test_jinja_in_yaml_keeps_native_types(write: Write) -> None:
    properties = "models:\n  - name: m\n    config: {enabled: \"{{ var('on') }}\"}\n"
    root = write({"pyproject.toml": OWN, "models/m.sql": "select 1", "models/p.yml": properties})
    assert load(root, on=False).models[0].yaml_config["enabled"] is False


def test_command_line_vars_win_over_the_projects(write: Write) -> None:
    root = write({"dbt_project.yml": "name: shop\nvars:\n  a: 1\n  b: 1\n  shop: {b: 2}\n"})
    assert {**load(root, a=9).vars} == {"a": 9, "b": 2, "shop": {"b": 2}}


@pytest.mark.checklist(12)
def test_a_source_with_ingestion_is_read_whole(write: Write) -> None:
    text = """
version: 2
sources:
  - name: shop
    schema: ods
    ingest:
      format: debezium
      files: {path: "data/{{ var('day') }}/*.jsonl"}
      on_bad_record: fail
    tables:
      - name: user
        ingest:
          database: test_db
          primary_key: id
          order_by: [modify_time]
          partition_by: {column: create_time, format: yyyyMM, as: year_month}
          unit: millis
        columns: [{name: id, data_type: bigint}, {name: at, data_type: timestamp, unit: microseconds}]
      - name: old
        location: /lake/old
        format: parquet
"""
    (source,) = load(write({"pyproject.toml": OWN, "models/s.yml": text}), day="d1").sources
    user, old = source.tables
    assert source.ingest is not None
    assert user.ingest is not None
    assert (source.ingest.files, source.ingest.on_bad_record) == ("data/d1/*.jsonl", "fail")
    assert user.ingest.primary_key == ("id",)
    assert user.ingest.partition_by == PartitionBy("create_time", "yyyyMM", "year_month")
    assert (user.ingest.unit, user.units) == ("millis", {"at": "micros"})
    assert user.table.sql() == "`ods`.`user`"
    assert user.declared_at == Location("models/s.yml", 11, 9)
    assert (old.ingest, old.format, old.location) == (None, "parquet", "/lake/old")


def test_generic_tests_are_spelt_out_as_calls(write: Write) -> None:
    text = """
models:
  - name: m
    data_tests:
      - own_test: {arguments: {n: 3}}
    columns:
      - name: id
        data_tests:
          - not_null: {config: {severity: warn, where: "id > 0"}}
          - relationships: {to: ref('m'), field: id}
          - accepted_values: {values: ["it's", 2]}
"""
    root = write({"pyproject.toml": OWN, "models/m.sql": "select 1", "models/p.yml": text})
    tests = {test.name: test for test in load(root).tests}
    assert tests["own_test_m_3"].raw_sql == "{{ test_own_test(model=ref('m'), n=3) }}"
    not_null = tests["not_null_m_id"]
    assert not_null.raw_sql == "{{ test_not_null(model=get_where_subquery(ref('m')), column_name='id') }}"
    assert (not_null.config["severity"], not_null.attached_to) == ("warn", "model.shop.m")
    assert "to=ref('m'), field='id'" in tests["relationships_m_id__id__ref_m_"].raw_sql
    assert """values=["it's", 2]""" in tests["accepted_values_m_id__it_s__2"].raw_sql


def test_only_sql_files_are_singular_tests(write: Write) -> None:
    files = {"pyproject.toml": OWN, "tests/test_x.py": "", "tests/no_gap.sql": "select 1", "tests/generic/g.sql": ""}
    project = load(write(files))
    assert [test.unique_id for test in project.tests] == ["test.shop.no_gap"]
    assert "tests/generic/g.sql" in [macro.path for macro in project.macros]


def test_a_unit_test_belongs_to_its_model(write: Write) -> None:
    text = "unit_tests:\n  - {name: u, model: m, given: [{input: this, rows: []}], expect: {rows: []}}\n"
    project = load(write({"pyproject.toml": OWN, "models/p.yml": text, "models/m.sql": "select 1 as x"}))
    assert [test.unique_id for test in project.unit_tests] == ["unit_test.shop.m.u"]
    assert project.unit_tests[0].given[0].input == "this"


@pytest.mark.parametrize(
    ("entry", "place", "message", "hint"),
    [
        ("{name: u, model: n, expect: {rows: []}}", "2:22", "names the model 'n'", "known: m"),
        ("{name: u, model: m}", "2:5", "needs 'expect'", "add expect"),
        ("{name: u, model: m, expects: {rows: []}}", "2:25", "unknown key 'expects'", "did you mean 'expect'?"),
        ("{name: u, model: m, expect: {row: []}}", "2:34", "unknown key 'row'", "did you mean 'rows'?"),
        ("{name: u, model: m, expect: {rows: 'id'}}", "2:34", "rows must be a list of mappings", "format: csv"),
        ("{name: u, model: m, expect: {rows: [1]}}", "2:41", "a row of rows must be a mapping", None),
        ("{name: u, model: m, expect: {format: xml, rows: []}}", "2:34", "format is 'xml'", None),
        ("{name: u, model: m, expect: {format: csv, rows: []}}", "2:47", "rows must be text", "rows: |"),
        ("{name: u, model: m, expect: {format: csv, fixture: usrs}}", "2:47", "no csv fixture 'usrs'", "'users'"),
        ("{name: u, model: m, expect: {rows: []}, changes: [{input: this}]}", "2:55", "is empty", "upsert"),
    ],
)
def test_a_wrong_unit_test_is_refused_at_its_place(
    write: Write, entry: str, place: str, message: str, hint: str | None
) -> None:
    files = {"models/m.sql": "select 1 as x", "tests/fixtures/users.csv": "id\n1\n"}
    with pytest.raises(ProjectError) as caught:
        load(write({"pyproject.toml": OWN, "models/p.yml": f"unit_tests:\n  - {entry}\n", **files}))
    assert str(caught.value).startswith(f"models/p.yml:{place}: ") and message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_properties_of_a_model_that_does_not_exist_are_a_warning(write: Write) -> None:
    files = {"pyproject.toml": OWN, "models/orders.sql": "select 1", "models/p.yml": "models:\n  - name: order\n"}
    (warning,) = load(write(files)).warnings
    assert warning.startswith("models/p.yml:2:5: there is no model 'order'")
    assert "did you mean 'orders'?" in warning


def test_merge_keys_and_aliases_are_followed(write: Write) -> None:
    text = "anchors: &a {materialized: table}\nmodels:\n  - name: m\n    config: {<<: *a, schema: x}\n"
    root = write({"pyproject.toml": OWN, "models/m.sql": "select 1", "models/p.yml": text})
    assert load(root).models[0].yaml_config["materialized"] == "table"


def test_a_seed_takes_types_from_columns_and_config(write: Write) -> None:
    text = """
seeds:
  - name: s
    config: {column_types: {a: int}}
    columns: [{name: b, data_type: date}]
"""
    (seed,) = load(write({"pyproject.toml": OWN, "seeds/s.csv": "a,b\n", "seeds/p.yml": text})).seeds
    assert seed.column_types == {"b": "date", "a": "int"}


REGISTRY = """sources:
  - name: s
    ingest:
      format: {}
      kafka: {{bootstrap_servers: x, topics: t}}
      registry: {{{}}}
"""

BAD_YAML = {
    "tab": ("models:\n\t- name: m\n", "models/p.yml:2:1: invalid YAML"),
    "unclosed": ("models: [\n", "invalid YAML"),
    "value in itself": ("models: &a [*a]\n", "invalid YAML"),
    "unsafe tag": ("models: !!python/object:os.system x\n", "invalid YAML"),
    "impossible date": ("models:\n  - name: m\n    meta: {d: 2024-02-31}\n", "models/p.yml:3:15: invalid YAML"),
    "list at the top": ("- a\n", "must be a mapping"),
    "models no list": ("models: {m: 1}\n", "models must be a list"),
    "model without name": ("models:\n  - description: x\n", "a model needs 'name'"),
    "name that YAML takes for false": (
        "models:\n  - name: off\n",
        "name must be text, not the boolean false\n  put it",
    ),
    "model described twice": ("models:\n  - name: m\n  - name: m\n", "model 'm' is described twice"),
    "wrong materialized": ("models:\n  - name: m\n    config: {materialized: tabel}\n", "did you mean 'table'?"),
    "wrong flag": ("models:\n  - name: m\n    config: {enabled: maybe}\n", "must be true or false"),
    "test with two names": ("models:\n  - name: m\n    tests: [{a: 1, b: 2}]\n", "must have one name"),
    "wrong severity": ("models:\n  - name: m\n    tests: [{a: {severity: eror}}]\n", "did you mean 'error'?"),
    "source without format": ("sources:\n  - name: s\n    ingest: {files: {path: x}}\n", "ingest needs 'format'"),
    "unknown format": (
        "sources:\n  - name: s\n    ingest: {format: debezum, files: {path: x}}\n",
        "models/p.yml:3:14: format must be one of debezium",
    ),
    "both streams": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}, kafka: {}}\n",
        "both files and kafka",
    ),
    "an option that decides between rows": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n    tables:\n"
        "      - {name: t, ingest: {primary_key: [id], hudi: {hoodie.datasource.write.payload.class: a.B}}}\n",
        "models/p.yml:5:54: the option hoodie.datasource.write.payload.class of Hudi is not to be set\n  leave it out:",
    ),
    "registry of files": (
        "sources:\n  - name: s\n    ingest: {format: debezium, files: {path: x}, registry: {url: 'http://r'}}\n",
        "models/p.yml:3:50: a registry is for messages in Kafka\n  remove it: lines of files are JSON",
    ),
    "registry of a format without Avro": (
        REGISTRY.format("canal", "url: 'http://r'"),
        "events of 'canal' are not in Avro or Protobuf",
    ),
    "registry without an address": (REGISTRY.format("debezium", "token: x"), "registry needs 'url'"),
    "registry at no address": (
        REGISTRY.format("debezium", "url: 'r:8081'"),
        "models/p.yml:6:18: url is not the address of a registry\n  write it as http://host:8081",
    ),
    "numbers of another interface": (
        REGISTRY.format("debezium", "url: 'http://r:8081', ids: globalId"),
        "models/p.yml:6:40: ids is of Apicurio's own interface\n  remove it, or set url to …/apis/registry/v2",
    ),
    "user of a registry whose requests are signed": (
        REGISTRY.format("debezium", "url: 'https://glue.eu-central-1.amazonaws.com', username: me, password: p"),
        "models/p.yml:6:66: username has no meaning for AWS Glue's registry\n  remove it: requests are signed",
    ),
    "misspelt key of a registry": (REGISTRY.format("debezium", "ulr: x"), "did you mean 'url'?"),
    "registry with a user alone": (
        REGISTRY.format("debezium", "url: 'http://r', username: me"),
        "registry needs username and password",
    ),
    "registry with two ways to ask": (
        REGISTRY.format("debezium", "url: 'http://r', token: a, username: b, password: c"),
        "registry has a token and a username",
    ),
    "no primary key": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n"
        "    tables: [{name: t, ingest: {table: t}}]\n",
        "without primary_key",
    ),
    "table ingest without stream": (
        "sources:\n  - name: s\n    tables: [{name: t, ingest: {primary_key: id}}]\n",
        "source 's' has none",
    ),
    "wrong regular expression": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n"
        "    tables: [{name: t, ingest: {table: 't(', primary_key: id}}]\n",
        "is not a regular expression",
    ),
    "misspelt unit": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n    tables: [{name: t,"
        " ingest: {primary_key: id}, columns: [{name: at, data_type: timestamp, unit: milis}]}]\n",
        "unit is 'milis'; it must be one of days, seconds, millis, micros, nanos",
    ),
    "unit of a number": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n    tables: [{name: t,"
        " ingest: {primary_key: id}, columns: [{name: at, data_type: bigint, unit: millis}]}]\n",
        "unit of column 'at', which is bigint\n  declare data_type: timestamp, date, or string for a time of day",
    ),
    "unit without a type": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n    tables: [{name: t,"
        " ingest: {primary_key: id}, columns: [{name: at, unit: millis}]}]\n",
        "unit of column 'at', which has no data_type",
    ),
    "days of a time": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}}\n    tables: [{name: t,"
        " ingest: {primary_key: id}, columns: [{name: at, data_type: string, unit: days}]}]\n",
        "unit of column 'at' is days\n  use seconds, millis, micros, nanos",
    ),
    "wrong concurrency": (
        "sources:\n  - name: s\n    ingest: {format: dms, files: {path: x}, concurrency: 0}\n",
        "whole number of at least 1",
    ),
    "table twice": ("sources:\n  - name: s\n    tables: [{name: t}, {name: t}]\n", "is described twice"),
    "missing var": ("sources:\n  - name: s\n    schema: \"{{ var('x') }}\"\n", "models/p.yml:3:13: var 'x' is not set"),
    "missing environment variable": (
        "sources:\n  - name: s\n    schema: \"{{ env_var('SML_NO_SUCH') }}\"\n",
        "environment variable 'SML_NO_SUCH' is not set",
    ),
    "secret outside ingest": (
        "sources:\n  - name: s\n    schema: \"{{ env_var('DBT_ENV_SECRET_X') }}\"\n",
        "not available here",
    ),
    "broken Jinja": ('sources:\n  - name: s\n    schema: "{{ 1 + }}"\n', "invalid Jinja"),
}


@pytest.mark.checklist(12)
@pytest.mark.parametrize("case", BAD_YAML)
def test_bad_properties_are_refused_with_their_place(write: Write, case: str) -> None:
    text, message = BAD_YAML[case]
    root = write({"pyproject.toml": OWN, "models/m.sql": "select 1", "models/p.yml": text})
    with pytest.raises(ProjectError) as caught:
        # An entry that is broken costs its node alone: whoever needs all of them asks for that.
        require_sound({model.unique_id: model.error for model in load(root).models if model.error})
    assert message in str(caught.value)
    assert str(caught.value).startswith("models/p.yml:")
    assert caught.value.exit_code == 2


BAD_FILES = {
    "unknown setting": ({"pyproject.toml": OWN + 'model_paths = ["m"]\n'}, "did you mean 'model-paths'?"),
    "invalid TOML": ({"pyproject.toml": "[tool.sqlmesh_like]\nname = \n"}, "pyproject.toml:2:8: invalid TOML"),
    "old name and new": (
        {"dbt_project.yml": "source-paths: [a]\nmodel-paths: [b]\n"},
        "dbt_project.yml:1:1: source-paths and model-paths are both given",
    ),
    "name no table can have": ({"pyproject.toml": OWN, "models/a b.sql": "select 1"}, "cannot be a table's name"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_projects_are_refused(write: Write, case: str) -> None:
    files, message = BAD_FILES[case]
    with pytest.raises(ProjectError) as caught:
        load(write(files))
    assert message in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused(write: Write) -> None:
    root = write({"pyproject.toml": OWN, "models/m.sql": ""})
    (root / "models" / "m.sql").write_bytes(b"select '\xff'")
    with pytest.raises(ProjectError, match=r"models/m\.sql:1: not UTF-8 text: byte 0xff at offset 8"):
        load(root)


INGESTED = """
version: 2
sources:
  - name: s
    ingest: {format: %s, files: {path: in/*.csv, csv: {header: true, null_value: "", delimiter: ";"}}, zero_dates: null}
    tables:
      - name: t
        ingest: {database: 'db_\\d+', primary_key: [编号, "a-b", นาม], order_by: [1x], zero_dates: dead_letter}
        columns: [{name: "a-b", data_type: int}]
      - {name: u, ingest: {primary_key: [], updates: full}}
"""


def test_an_ingested_table_names_its_columns_as_they_are_stored(write: Write) -> None:
    (source,) = load(write({"pyproject.toml": OWN, "models/s.yml": INGESTED % "ogg"})).sources
    first, second = (table.ingest for table in source.tables)
    assert source.ingest and first and second
    assert (first.primary_key, first.order_by) == (("编号", "a_b", "นาม"), ("_1x",))
    assert [column.name for column in source.tables[0].columns] == ["a_b"]
    assert (source.ingest.zero_dates, first.zero_dates, second.zero_dates) == ("null", "dead_letter", "null")
    assert (first.updates, second.updates) == ("partial", "full"), "GoldenGate leaves out what has not changed"
    assert (source.ingest.csv.header, source.ingest.csv.null, source.ingest.csv.delimiter) == (True, "", ";")


def test_a_time_zone_is_that_of_the_column_the_table_or_the_source(write: Write) -> None:
    text = INGESTED.replace("zero_dates: null}", "time_zone: Europe/Berlin}").replace("updates: full", "time_zone: UTC")
    text = text.replace("data_type: int}", "data_type: timestamp, time_zone: Asia/Shanghai}")
    (source,) = load(write({"pyproject.toml": OWN, "models/s.yml": text % "dms"})).sources
    first, second = source.tables
    assert first.ingest and second.ingest and first.time_zones == {"a_b": "Asia/Shanghai"}
    assert (first.ingest.time_zone, second.ingest.time_zone) == ("Europe/Berlin", None)
    for name, hint in (("Europe/Berlim", "Europe/Berlin"), ("Shanghai", "Asia/Shanghai"), ("+08:00", "IANA's name")):
        root = write({"pyproject.toml": OWN, "models/s.yml": text.replace("Europe/Berlin", f'"{name}"') % "dms"})
        with pytest.raises(ProjectError, match=re.escape(f"{name!r} is not a time zone")) as error:
            load(root)
        assert "models/s.yml:5:" in str(error.value) and hint in str(error.value)
    root = write(
        {"pyproject.toml": OWN, "models/s.yml": text.replace("data_type: timestamp", "data_type: date") % "dms"}
    )
    with pytest.raises(ProjectError, match="time_zone of column 'a_b', which is date"):
        load(root)


def test_a_database_that_is_no_pattern_is_refused_when_the_project_is_read(write: Write) -> None:
    root = write({"pyproject.toml": OWN, "models/s.yml": INGESTED.replace("db_", "(db_") % "dms"})
    with pytest.raises(ProjectError, match="is not a regular expression") as error:
        require_sound(load(root))
    assert error.value.location is not None and error.value.location.line == 8
