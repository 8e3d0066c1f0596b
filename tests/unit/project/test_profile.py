"""How a target is chosen from profiles.yml."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import UsageError
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import load_target

PROFILES = """
lake:
  target: local
  outputs:
    local: {type: spark, schema: dws, threads: "{{ env_var('SML_T', '3') }}", hudi: {a.b: true, n: 1}}
    cluster: {type: spark, master: yarn, warehouse: "s3a://b/w", catalog: {hive: {uri: "thrift://h"}}}
    test: {type: duckdb}
"""


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return folder


def target(
    root: Path, profiles: str | None, name: str | None = None, profile: str | None = None, folder: Path | None = None
) -> Target:
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    if profiles is not None:
        (root / "profiles.yml").write_text(profiles)
    return load_target(load_project(root, {}), folder, profile, name, {})


def test_the_profiles_own_target_is_the_default(tmp_path: Path) -> None:
    chosen = target(tmp_path, PROFILES)
    assert (chosen.profile, chosen.name, chosen.schema, chosen.threads) == ("lake", "local", "dws", 3)
    assert chosen.warehouse == str(tmp_path / "warehouse")
    assert chosen.hudi == {"a.b": "true", "n": "1"}
    assert chosen.retention_days == 7


@pytest.mark.checklist(16)
def test_a_named_target_is_taken_and_a_uri_stays_as_it_is(tmp_path: Path) -> None:
    chosen = target(tmp_path, PROFILES, "cluster")
    assert (chosen.master, chosen.warehouse, chosen.catalog) == ("yarn", "s3a://b/w", "hive")


def test_days_of_retention_are_a_number_or_the_text_of_one(tmp_path: Path) -> None:
    profiles = "a: {{outputs: {{x: {{type: spark, retention_days: {}}}}}}}\n"
    assert target(tmp_path, profiles.format(30), "x").retention_days == 30
    assert target(tmp_path, profiles.format("'30'"), "x").retention_days == 30


def test_settings_of_a_store_are_read_once_and_those_of_hadoop_count_where_it_has_none(tmp_path: Path) -> None:
    chosen = target(tmp_path, """
        a:
          outputs:
            x:
              type: spark
              warehouse: s3a://lake/w
              store: {endpoint: "http://127.0.0.1:9000", lease_seconds: "60"}
              spark:
                spark.hadoop.fs.s3a.endpoint: http://other
                spark.hadoop.fs.s3a.path.style.access: true
                spark.hadoop.fs.s3a.access.key: planted-key
                spark.hadoop.fs.s3a.secret.key: planted-of-all
                spark.hadoop.fs.s3a.bucket.lake.secret.key: planted-of-bucket
    """, "x")  # fmt: skip
    store = chosen.store
    assert (store.endpoint, store.path_style, store.lease_seconds) == ("http://127.0.0.1:9000", True, 60)
    assert (store.access_key, store.secret_key) == ("planted-key", "planted-of-bucket")
    assert "planted" not in repr(chosen)


def test_an_environment_variable_reaches_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SML_T", "7")
    assert target(tmp_path, PROFILES).threads == 7


def test_the_flag_wins_over_the_environment_and_both_over_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("flag", "environment"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "profiles.yml").write_text(f"{name}: {{outputs: {{x: {{type: duckdb}}}}}}")
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path / "environment"))
    assert target(tmp_path, PROFILES).profile == "environment"
    assert target(tmp_path, PROFILES, folder=tmp_path / "flag").profile == "flag"


def test_the_home_folder_is_the_last_resort(tmp_path: Path, home: Path) -> None:
    (home / ".dbt").mkdir()
    (home / ".dbt" / "profiles.yml").write_text(PROFILES)
    assert target(tmp_path, None).name == "local"


def test_a_target_does_not_show_what_may_be_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_KEY", "hunter2")
    text = PROFILES.replace("a.b: true", "k: \"{{ env_var('DBT_ENV_SECRET_KEY') }}\"")
    chosen = target(tmp_path, text)
    assert chosen.hudi["k"] == "hunter2"
    assert "hunter2" not in repr(chosen)


BAD = {
    "no file": (None, {}, "no profiles.yml in . and ~/.dbt"),
    "unknown target": (PROFILES, {"name": "lokal"}, "it has: local, cluster, test\n  did you mean 'local'?"),
    "unknown profile": (PROFILES, {"profile": "lak"}, "it has: lake\n  did you mean 'lake'?"),
    "two profiles": ("a: {}\nb: {}\n", {}, "has 2 profiles (a, b)"),
    "no outputs": ("a: {target: x}\n", {}, "profile 'a' has no outputs"),
    "no type": ("a: {outputs: {x: {schema: s}}}\n", {}, "output 'x' has no type"),
    "unknown type": ("a: {outputs: {x: {type: sparc}}}\n", {}, "did you mean 'spark'?"),
    "threads": ("a: {outputs: {x: {type: spark, threads: many}}}\n", {}, "threads must be a whole number"),
    "retention": (
        "a: {outputs: {x: {type: spark, retention_days: 0}}}\n",
        {},
        "retention_days must be a whole number of at least 1",
    ),
    "store": ("a: {outputs: {x: {type: spark, store: {endpont: y}}}}\n", {}, "unknown key 'endpont' in store"),
    "lease": (
        "a: {outputs: {x: {type: spark, store: {lease_seconds: 5}}}}\n",
        {},
        "lease_seconds must be a whole number of at least 30",
    ),
    "address": (
        "a: {outputs: {x: {type: spark, warehouse: 's3://[::1'}}}\n",
        {},
        "warehouse is not an address or a path",
    ),
    "metastore": (
        "a: {outputs: {x: {type: spark, catalog: {hive: {uri: 'thrift://h:port'}}}}}\n",
        {},
        "uri of hive is not an address",
    ),
    "fixed": (
        "a:\n  outputs: {x: {type: spark, spark: {a.b: 1, spark.sql.ansi.enabled: true}}}\n",
        {},
        "profiles.yml:2:46: the Spark setting spark.sql.ansi.enabled is fixed to 'false'\n  remove it from `spark:`",
    ),
    "a locale": (
        "a:\n  outputs: {x: {type: spark, spark: {spark.executor.extraJavaOptions: '-Xss8m -Duser.language=tr'}}}\n",
        {},
        "profiles.yml:2:38: -Duser.language=tr: Java's locale is fixed to en-US\n  remove it:",
    ),
    "an index that loses rows": (
        "a:\n  outputs: {x: {type: spark, hudi: {a.b: 1, hoodie.index.type: GLOBAL_SIMPLE}}}\n",
        {},
        "profiles.yml:2:45: the option hoodie.index.type of Hudi is not to be set\n  leave it out, or",
    ),
    "environment": (
        "a: {outputs: {x: {type: spark, schema: \"{{ env_var('SML_NO') }}\"}}}\n",
        {},
        "environment variable 'SML_NO' is not set",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_profiles_are_refused(tmp_path: Path, case: str) -> None:
    text, arguments, message = BAD[case]
    with pytest.raises(UsageError) as caught:
        target(tmp_path, text, **arguments)
    assert message in str(caught.value)


def test_without_profiles_a_minimal_one_is_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"type: spark, schema: dws"):
        target(tmp_path, None)


def test_a_misspelt_key_of_an_output_is_refused_at_its_place(tmp_path: Path) -> None:
    profiles = "lake:\n  outputs:\n    local: {type: spark, warehose: lake}\n"
    with pytest.raises(UsageError, match=r"profiles.yml:3:26: unknown key 'warehose'") as caught:
        target(tmp_path, profiles)
    assert caught.value.hint == "did you mean 'warehouse'?"


def test_keys_of_other_adapters_may_stand_in_an_output(tmp_path: Path) -> None:
    profiles = "lake:\n  outputs:\n    local: {type: spark, host: h, method: thrift, cluster: c, port: 1}\n"
    assert set(target(tmp_path, profiles).options) == {"host", "method", "cluster", "port"}
