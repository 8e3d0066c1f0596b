"""Secrets: no message, log, artifact, page or cache shows one, however it is spelt there."""

from __future__ import annotations

import base64
import json
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from sqlmesh_like import secrets
from sqlmesh_like.app.setup import packages
from sqlmesh_like.cli.app import COMMANDS, main
from sqlmesh_like.spark.jvm.spark_settings import split_secrets
from tests.levels import parametrize
from tests.projects import enter_project

SECRET = "planted-wörd \"'\\<&>{x} end"
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    secrets.forget()
    yield
    secrets.forget()


SPELT = {
    "as it is": SECRET,
    "in JSON": json.dumps({"a": SECRET}),
    "in JSON without signs of other languages": json.dumps({"a": SECRET}, ensure_ascii=False),
    "in JSON in JSON": json.dumps(json.dumps({"a": SECRET})),
    "in Python": repr([SECRET]),
    "in SQL": f"'{SECRET.replace(chr(39), chr(39) * 2)}'",
    "in an address": f"https://me:{quote(SECRET, safe='')}@host",
    "in a page": "planted-wörd &quot;&#x27;\\&lt;&amp;&gt;{x} end",
    "in a script of a page": json.dumps(SECRET).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
}


@pytest.mark.parametrize("text", SPELT.values(), ids=SPELT)
def test_a_secret_is_found_however_it_is_spelt(text: str) -> None:
    secrets.learn(SECRET)
    shown = secrets.scrub_text(text)
    assert "planted" not in shown and secrets.MASK in shown
    assert b"planted" not in secrets.scrub_bytes(text.encode())


LEARNT = (
    {"password": "planted-word"},
    {"pass": "x", "passwd": "planted-word"},
    {"spark": {"spark.hadoop.fs.s3a.secret.key": "planted-word"}},
    {"spark": {"spark.hadoop.fs.s3a.access.key": "planted-word"}},
    {"spark": {"spark.hadoop.fs.s3a.session.token": "planted-word"}},
    {"spark": {"spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net": "planted-word"}},
    {"spark": {"spark.authenticate.secret": "planted-word"}},
    {"spark": {"spark.ssl.keyStorePassword": "planted-word"}},
    {"token": "planted-word"},
    {"api_key": "planted-word"},
    {"private_key": "-----BEGIN-----\nplanted-word-of-the-first-line\n-----END-----"},
    {"keys": [{"client_secret": "planted-word"}]},
    {"publish": {"bi": {"url": "postgresql://me:planted-word@host/db"}}},
    {"publish": {"bi": {"url": "mysql+pymysql://me@host/db?password=planted-word&x=1"}}},
    {"publish": {"bi": {"url": "https://planted-word@host/"}}},
    {"jdbc": "jdbc:sqlserver://host;user=me;password=planted-word;encrypt=true"},
    {"options": {"kafka.sasl.jaas.config": 'a.B required username="me" password="planted-word";'}},
    {"options": {"kafka.ssl.truststore.password": "planted-word"}},
    {"warehouse": "https://host/x?sig=planted-word&sv=2"},
    {"connection_string": "Endpoint=sb://planted-word.host"},
    {"password": 4711471147114711},
)


@pytest.mark.parametrize("settings", LEARNT)
def test_what_a_setting_holds_is_secret_by_its_name_or_its_form(settings: dict[str, object]) -> None:
    secrets.learn_settings(settings)
    text = "planted-word-of-the-first-line and planted-word of sb://planted-word.host 4711471147114711"
    assert any(secret in text or "planted" in secret for secret in secrets.spellings())
    for secret in [spelt for spelt in secrets.spellings() if spelt in text]:
        assert secret not in secrets.scrub_text(text)


PLAIN = (
    {"primary_key": "order_id"},
    {"hoodie.datasource.write.recordkey.field": "order_id"},
    {"spark.hadoop.fs.s3a.aws.credentials.provider": "com.example.Provider"},
    {"private_key_path": "/keys/mine.p8"},
    {"token": "true"},
    {"password": "abc"},
    {"password": True},
    {"user": "somebody", "host": "db.example.com", "url": "https://git@host/a", "warehouse": "s3a://bucket/lake"},
)


@pytest.mark.parametrize("settings", PLAIN)
def test_what_is_no_secret_is_shown(settings: dict[str, object]) -> None:
    secrets.learn_settings(settings)
    assert secrets.spellings() == ()


PROFILE = "shop: {target: t, outputs: {t: {%s}}}\n"
OWN = "{{ env_var('SHOP_WORD') }}"
"""Not named like a secret: no message repeats what a template of a profile comes to, all the same."""
WORD = "{{ env_var('DBT_ENV_SECRET_WORD') }}"
WRONG_PROFILES = (
    "type: '{W}'",
    "type: duckdb, threads: '{W}'",
    "type: duckdb, threads: ['{W}']",
    "type: duckdb, schema: ['{W}']",
    "type: duckdb, schema: {{a: '{W}'}}",
    "type: duckdb, catalog: '{W}'",
    "type: duckdb, catalog: {{'{W}': 1}}",
    "type: duckdb, delta_engine: '{W}'",
    "type: duckdb, spark: '{W}'",
    "type: duckdb, spark: ['{W}']",
    "type: duckdb, spark: {{a: ['{W}']}}",
    "type: duckdb, hudi: '{W}'",
    "type: duckdb, publish: '{W}'",
    "type: duckdb, publish: {{bi: '{W}'}}",
    "type: duckdb, publish: {{bi: {{url: ['{W}']}}}}",
    "type: duckdb, master: ['{W}']",
    "type: duckdb, warehouse: ['{W}']",
    "type: duckdb, threads: \"{{{{ env_var('SHOP_WORD') | as_number }}}}\"",
    "type: duckdb, threads: \"{{{{ env_var('SHOP_WORD') | as_bool }}}}\"",
    "type: duckdb, threads: \"{{{{ {{}}[env_var('SHOP_WORD')] }}}}\"",
    "type: duckdb, threads: \"{{{{ env_var('SHOP_WORD') | as_native }}}}\"",
    "type: duckdb, threads: \"{{{{ var(env_var('SHOP_WORD')) }}}}\"",
)
LITERAL_PROFILES = (
    "type: planted-word",
    "type: duckdb, threads: planted-word",
    "type: duckdb, catalog: planted-word",
    "type: duckdb, password: *planted-word",
    "type: duckdb, password: !planted-word x",
    "type: duckdb, catalog: {hive:planted-word: 1}",
    "type: duckdb, publish: {bi: {url:planted-word: 1}}",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBT_ENV_SECRET_WORD", "planted-word")
    monkeypatch.setenv("SHOP_WORD", "planted-word")
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    files = {
        "dbt_project.yml": "name: shop\n",
        "profiles.yml": PROFILE % "type: duckdb, schema: dws",
        "models/m.sql": "select 1 as a",
    }
    enter_project(tmp_path / "shop", monkeypatch, files)
    return tmp_path / "shop"


def is_refused(capsys: Shown, *words: str) -> None:
    for form in ((), ("--log-format", "json"), ("--debug",)):
        code = main([*words, *form])
        shown = "".join(capsys.readouterr())
        assert code == 2 and "planted" not in shown, shown


@pytest.mark.parametrize("template", [OWN, WORD])
@pytest.mark.parametrize("output", WRONG_PROFILES)
def test_a_wrong_profile_is_refused_without_its_values(
    output: str, template: str, project: Path, capsys: Shown
) -> None:
    text = output.format(W=template.replace("'", "''")).replace("SHOP_WORD", template.split("'")[1])
    (project / "profiles.yml").write_text(PROFILE % text)
    is_refused(capsys, "compile")


@pytest.mark.parametrize("output", LITERAL_PROFILES)
def test_words_of_a_wrong_profile_are_not_repeated(output: str, project: Path, capsys: Shown) -> None:
    (project / "profiles.yml").write_text(PROFILE % output)
    is_refused(capsys, "compile")


def test_the_name_of_a_target_is_not_repeated_from_the_file(project: Path, capsys: Shown) -> None:
    (project / "profiles.yml").write_text(f'shop: {{target: "{OWN}", outputs: {{t: {{type: duckdb}}}}}}\n')
    is_refused(capsys, "compile")


WRONG_SOURCES = (
    "format: '{W}', files: {{path: x}}",
    "format: debezium, files: '{W}'",
    "format: debezium, files: {{path: ['{W}']}}",
    "format: debezium, files: {{path: x, max_files_per_batch: '{W}'}}",
    "format: debezium, files: {{path: x}}, trigger: '{W}'",
    "format: debezium, files: {{path: x}}, concurrency: '{W}'",
    "format: debezium, files: {{path: x}}, discover: '{W}'",
    "format: debezium, files: {{path: x}}, on_schema_change: '{W}'",
    "format: debezium, files: {{path: x}}, on_bad_record: '{W}'",
    "format: debezium, files: {{path: x}}, max_events_per_batch: '{W}'",
    "format: debezium, kafka: '{W}'",
    "format: debezium, kafka: {{bootstrap_servers: x, topics: [a], starting_offsets: '{W}'}}",
    "format: debezium, kafka: {{bootstrap_servers: ['{W}'], topics: [a]}}",
)
WRONG_PACKAGES = (
    "git: ['{W}']",
    "git: 'https://{W}@127.0.0.1:9/a.git'",
    "git: 'https://me:{W}@127.0.0.1:9/a.git', revision: '{W}'",
    "git: x, subdirectory: '../{W}'",
    "tarball: 'https://127.0.0.1:9/{W}/a.tar.gz'",
    "tarball: 'https://127.0.0.1:9/a.tar.gz?token={W}'",
    "tarball: '{W}'",
    "local: '../{W}'",
    "package: '{W}', version: 1.0.0",
)


@pytest.mark.parametrize("stream", WRONG_SOURCES)
@pytest.mark.parametrize("template", [OWN, WORD])
def test_a_wrong_source_is_refused_without_its_values(stream: str, template: str, project: Path, capsys: Shown) -> None:
    stream = stream.format(W=template.replace("'", "''"))
    (project / "models/s.yml").write_text(f"sources:\n  - name: s\n    ingest: {{{stream}}}\n")
    is_refused(capsys, "compile")


@pytest.mark.parametrize("package", WRONG_PACKAGES)
def test_a_wrong_package_is_refused_without_its_values(package: str, project: Path, capsys: Shown) -> None:
    text = package.format(W=WORD.replace("'", "''"))
    (project / "packages.yml").write_text(f"packages:\n  - {{{text}}}\n")
    is_refused(capsys, "deps")


def test_git_is_not_called_with_a_password(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(words: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append((words, env))
        return subprocess.CompletedProcess(words, 1, "", "fatal: no")

    monkeypatch.setattr(packages.subprocess, "run", run)
    (project / "packages.yml").write_text("packages: [{git: 'https://me:planted%2Dword@127.0.0.1:9/a.git'}]\n")
    assert main(["deps"]) == 2 and "planted" not in "".join(capsys.readouterr())
    words, env = calls[0]
    assert words[:2] == ["git", "clone"] and "https://127.0.0.1:9/a.git" in words
    header = f"Authorization: Basic {base64.b64encode(b'me:planted-word').decode()}"
    assert (env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"]) == ("http.https://127.0.0.1:9/.extraHeader", header)


def test_arguments_of_java_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_WORD", "planted-word")
    secrets.learn_environment()
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "planted-1", "spark.any": "planted-word", "spark.x": "jdbc://me:planted-2@h",
        "spark.driver.extraJavaOptions": "-Xss4m -Da.password=planted-3 '-Db=planted-word' -Dc=d "
        "-Dsml.log.file=/lakes/planted-word/spark.log",  # known to Java from its start, or it logs to no file of ours
        "spark.sql.session.timeZone": "UTC",
    }  # fmt: skip
    public, secret, properties = split_secrets(settings)
    options = "-Xss4m -Dc=d -Dsml.log.file=/lakes/planted-word/spark.log"
    assert public == {"spark.driver.extraJavaOptions": options, "spark.sql.session.timeZone": "UTC"}
    assert len(secret) == 3 and properties == {"a.password": "planted-3", "b": "planted-word"}


# In a project that has secrets wherever it may have some. What Spark gets: tests/spark/test_secrets.py.
CALLS = {
    "init": ["init", "new"],
    "debug": ["debug"],
    "deps": ["deps", "-t", "t"],
    "explain": ["explain", "--output", "json"],
    "show": ["show", "--inline", "select * from {{ ref('m') }}"],
    "sql": ["sql", "select * from m"],
    "lineage": ["lineage", "m"],
    "run-operation": ["run-operation", "says"],
    "docs": ["docs", "generate"],
    "report": ["report"],
    "retry": ["retry"],
    "diff": ["diff", "--state", "state"],
    "ls": ["ls", "--output", "json"],
    "completion": ["completion", "bash"],
    "history": ["history", "m"],
    "changes": ["changes", "m"],
    "ddl": ["ddl", "m"],
    "source": ["source", "freshness"],
    "watch": ["watch", "-t", "prod"],
    "ingest": ["ingest", "-t", "prod"],
}
LAST = ("deps", "clean")
PLANTED = {
    "profiles.yml": """
        shop:
          target: t
          outputs:
            t:
              type: duckdb
              schema: dws
              password: "planted-of-profile"
              spark: {spark.hadoop.fs.s3a.secret.key: planted-of-spark}
              hudi: {hoodie.x.token: planted-of-hudi}
              publish: {bi: {url: "postgresql://me:planted-of-url@127.0.0.1:9/db"}}
            prod: {type: spark, password: planted-of-prod}
        """,
    "models/m.sql": """
        {{ config(meta={'a': 'planted-of-env'}) }}
        {{ log('planted-of-env planted-of-profile', info=true) }}
        select 'planted-of-env' as a, 'planted-of-kafka' as b -- planted-of-url
        """,
    "models/bad.sql": "select {{ 'planted-of-env' }} planted-of-env from {{ ref('m') }}",
    "models/s.yml": """
        version: 2
        models:
          - {name: m, description: "planted-of-profile", columns: [{name: a, tests: [not_null, unique]}]}
        sources:
          - name: s
            description: planted-of-env
            ingest:
              format: debezium
              kafka:
                bootstrap_servers: 127.0.0.1:9
                topics: [a]
                options:
                  kafka.sasl.jaas.config: 'a.B required username="me" password="planted-of-kafka";'
                  kafka.ssl.key.password: "{{ env_var('DBT_ENV_SECRET_WORD') }}"
              registry: {url: "http://127.0.0.1:9", username: me, password: planted-of-registry, timeout: 1}
            tables: [{name: orders, ingest: {primary_key: [id]}}]
        """,
    "tests/t.sql": "select 'planted-of-env' as shown from {{ ref('m') }}",
    "macros/says.sql": "{% macro says() %}{{ print('planted-of-env') }}{{ return('planted-of-spark') }}{% endmacro %}",
    "report.yml": "title: planted-of-env\ncharts: [{title: planted-of-kafka, model: m}]\n",
    "seeds/seed.csv": "a,b\n1,planted-of-env\n",
    "state/manifest.json": "{}",
}


WORK = ("parse", "compile", "seed", "run", "docs", "lineage", "ls", "deps", "clean", "show", "sql")
"""Commands that must get through where all is well."""
WRITTEN = frozenset({"manifest.json", "run_results.json", "index.html", "m.sql"})


@parametrize(
    "form", suite=[pytest.param(()), pytest.param(("--debug",))], release=[pytest.param(("--log-format", "json"))]
)
def test_no_command_shows_or_writes_a_secret(
    form: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    is_well = "--debug" not in form
    planted = {path: textwrap.dedent(text) for path, text in PLANTED.items() if path != "models/bad.sql" or not is_well}
    root, written = tmp_path / "shop", set()
    enter_project(root, monkeypatch, {"dbt_project.yml": "name: shop\n", **planted})
    monkeypatch.setenv("DBT_ENV_SECRET_WORD", "planted-of-env")
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DBT_PARTIAL_PARSE", "true")
    own = {root / path for path in planted}
    for command in (*(name for name in COMMANDS if name not in LAST), *LAST):
        code = main([*CALLS.get(command, [command]), *form])
        shown = "".join(capsys.readouterr())
        assert "planted" not in shown, (command, shown)
        assert code == 0 or command not in WORK or not is_well, (command, shown)
        for path in {path for path in tmp_path.rglob("*") if path.is_file()} - own:
            assert b"planted" not in path.read_bytes(), (command, path)
            written |= {path.name} if secrets.MASK.encode() in path.read_bytes() else set()
    assert written >= WRITTEN or not is_well
