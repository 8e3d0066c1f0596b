"""Snapshots of a project where no JVM is: both forms, their place in the graph, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "dbt_project.yml": "name: shop\nsnapshots: {shop: {+tags: [kept]}}\n",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, schema: dws}}}\n",
    "seeds/orders.csv": "id,v\n1,a\n2,b\n",
    "snapshots/s.yml": """
snapshots:
  - name: kept
    relation: ref('orders')
    config: {unique_key: id, strategy: check, check_cols: all, schema: history}
    columns: [{name: id, data_tests: [unique]}]
  - {name: block, description: from a block}
""",
    "snapshots/b.sql": """{% snapshot block %}
  {{ config(unique_key='id', strategy='timestamp', updated_at='at', target_schema='plain') }}
  select id, current_timestamp() as at from {{ ref('orders') }}
{% endsnapshot %}""",
    "models/valid.sql": "select id, dbt_valid_from, dbt_valid_to from {{ ref('kept') }} where dbt_valid_to is null",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)


def test_both_forms_are_snapshots_and_read_like_tables(capsys: Shown) -> None:
    assert main(["build", "--now", "2024-02-01"]) == 0, capsys.readouterr()
    message = capsys.readouterr().out
    assert "OK created snapshot dws_history.kept" in message and "OK created snapshot plain.block" in message
    assert main(["show", "valid", "--output", "json", "--limit", "1"]) == 0
    assert set(json.loads(capsys.readouterr().out)[0]) == {"id", "dbt_valid_from", "dbt_valid_to"}
    nodes = json.loads(Path("target/manifest.json").read_text())["nodes"]
    assert nodes["snapshot.shop.block"]["resource_type"] == "snapshot"
    assert nodes["snapshot.shop.block"]["description"] == "from a block"


def test_a_command_takes_its_own_kind(capsys: Shown) -> None:
    assert main(["ls", "--resource-type", "snapshot", "--output", "name"]) == 0
    assert capsys.readouterr().out.split() == ["block", "kept"]
    assert main(["snapshot", "-s", "tag:kept", "-q"]) == 0
    assert main(["ls", "-s", "kept+", "--output", "name", "--resource-type", "model"]) == 0
    assert capsys.readouterr().out.split()[-1:] == ["valid"]


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("snapshots/b.sql", "{% snapshot a %}select 1", "snapshots/b.sql:1:1: snapshot 'a' is not closed"),
        ("snapshots/b.sql", "\n{% endsnapshot %}", "snapshots/b.sql:2:1: endsnapshot without"),
        ("snapshots/b.sql", "{% snapshot %}select 1{% endsnapshot %}", "a snapshot needs a name"),
        ("snapshots/b.sql", "{% snapshot a %}select 1 as b{% endsnapshot %}", "snapshot 'a': it has no strategy"),
        ("snapshots/b.sql", "{% snapshot block %}\nselect {{ x }} as b{% endsnapshot %}", "snapshots/b.sql:2:11: 'x'"),
        ("snapshots/s.yml", "snapshots: [{name: k, relation: ref('ordres')}]", "no model or seed is named"),
    ],
)
def test_a_wrong_snapshot_is_refused_at_its_place(capsys: Shown, path: str, text: str, message: str) -> None:
    Path(path).write_text(text)
    assert main(["compile"]) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("strategy: timestamp, updated_at: ta", "updated_at names 'ta', which is not one of its columns"),
        ("strategy: check, check_cols: all, updated_at: ta", "updated_at names 'ta'"),
        ("strategy: check, check_cols: [v, w]", "check_cols names 'w'"),
    ],
)
def test_a_column_that_the_query_lacks_is_refused(capsys: Shown, config: str, message: str) -> None:
    Path("snapshots/s.yml").write_text(
        f"snapshots: [{{name: kept, relation: ref('orders'), config: {{unique_key: id, {config}}}}}]"
    )
    assert main(["compile"]) == 2
    assert message in capsys.readouterr().err
    assert main(["build"]) == 1  # the other nodes go on
    assert message in capsys.readouterr().out


def test_a_unique_key_that_the_query_lacks_is_refused(capsys: Shown) -> None:
    text = FILES["snapshots/b.sql"].replace("select id,", "select")
    Path("snapshots/b.sql").write_text(text)
    assert main(["compile"]) == 2
    assert "unique_key names 'id', which is not one of its columns" in capsys.readouterr().err
