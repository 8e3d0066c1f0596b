"""A database that cannot be read, on real servers: which statement mends it, and that nothing was begun. No JVM."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.services import mariadb, postgres
from tests.services.wanted import need

PASSWORD, WRONG = "secret99pw", "wrong88pw"


@dataclass
class Database:
    """A server with the database `shop`, its tables item and keyless, and the user `reader` without any right."""

    url: str
    run: Callable[..., object]


@pytest.fixture(scope="module", params=["mysql", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("server")
    if request.param == "mysql":
        need(mariadb.find_server)
        with mariadb.mariadb(folder) as server, server.connect() as connection:

            def run(*statements: str) -> None:
                with connection.cursor() as cursor:
                    for statement in statements:
                        cursor.execute(statement)

            run("create database shop", "create table shop.item (id int primary key)")
            run("create table shop.keyless (n int)", f"create user reader identified by '{PASSWORD}'")
            yield Database(f"mysql://reader@127.0.0.1:{server.port}/shop", run)
        return
    need(postgres.find_server)
    with postgres.postgres(folder) as service:

        def run_there(*statements: str) -> None:
            service.run("\\c shop", *statements)

        service.run("create database shop", f"create role reader login password '{PASSWORD}'")
        run_there("revoke connect, create on database shop from public", "revoke all on schema public from public")
        item = "create table item (id int primary key, twice int generated always as (id * 2) stored)"
        run_there("create role keeper", item, "create table keyless (n int)")
        run_there("alter table item owner to keeper", "alter table keyless owner to keeper")
        hba = Path(service.run("show hba_file").strip())
        hba.write_text("host all reader 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
        service.run("select pg_reload_conf()")
        yield Database(f"postgresql://reader@127.0.0.1:{service.port}/shop", run_there)


class Project:
    """A project of one source, as `sml init --from` writes it, and calls of `sml` on it."""

    def __init__(self, root: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
        self.root, self.url, self.capsys, self.environment = root, url, capsys, monkeypatch
        monkeypatch.chdir(root)
        self.set_password(PASSWORD)

    def set_password(self, password: str) -> None:
        self.environment.setenv("SML_DATABASE_PASSWORD", password)

    def declare(self) -> None:
        (self.root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
        (self.root / "profiles.yml").write_text("lake: {target: t, outputs: {t: {type: spark, warehouse: w}}}")
        (self.root / "models").mkdir()
        (self.root / "models" / "shop.yml").write_text(
            f'version: 2\nsources:\n  - name: shop\n    ingest:\n      database: {{url: "{self.url}"}}\n    tables:\n'
            "      - {name: item, ingest: {primary_key: [id]}}\n      - {name: keyless, ingest: {primary_key: []}}\n"
        )

    def call(self, *words: str) -> tuple[int, str]:
        code = main(list(words))
        shown = "".join(self.capsys.readouterr())
        assert "Traceback" not in shown and PASSWORD not in shown and WRONG not in shown
        return code, shown

    def refused(self, words: str, *, at: str = "models/shop.yml:5:23: ") -> None:
        """Ingestion and comparison end with the same words and place, and nothing is made."""
        for command in (["ingest"], ["verify", "-s", "source:shop"]):
            code, shown = self.call(*command)
            assert (code, at in shown, words in shown) == (2, True, True), (command, shown)
        assert not (self.root / "w" / "_sml" / "database").exists() and not (self.root / "w" / "shop").exists()


@pytest.fixture
def project(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    return Project(tmp_path, database.url, monkeypatch, capsys)


def grant_all(database: Database, project: Project, shown: str) -> str:
    """Run the statements that are printed until nothing is missing; the last output."""
    granted = list[str]()
    for _ in range(6):
        for statement in re.findall(r"((?:GRANT|ALTER ROLE|ALTER TABLE .* REPLICA) .*?;)", shown):
            database.run(statement.replace("SCHEMA …", "SCHEMA public"))
            granted.append(statement)
        code, shown = project.call("debug")
        if code == 0:
            break
    assert "All checks passed" in shown, (granted, shown)
    return shown


def test_each_missing_right_is_printed_with_the_statement_that_grants_it(database: Database, project: Project) -> None:
    """Whoever runs all statements that are printed, again and again, can read the database at the end."""
    project.declare()
    code, shown = project.call("init", "other", "--from", database.url)
    assert code == 2 and not (project.root / "other").exists()
    shown = grant_all(database, project, shown)
    if "mysql" in database.url:
        assert "keyless has no primary key" in shown and "ALTER TABLE `keyless` ADD PRIMARY KEY" in shown
    assert project.call("init", "other", "--from", database.url)[0] == 0


def test_a_wrong_password_or_database(database: Database, project: Project) -> None:
    project.declare()
    project.set_password(WRONG)
    assert project.call("init", "other", "--from", database.url)[0] == 2
    project.refused("set SML_DATABASE_PASSWORD")
    file = project.root / "models" / "shop.yml"
    right = file.read_text()
    file.write_text(right.replace("reader@", f"reader:{WRONG}@"))
    project.refused("refuses this user or password")
    project.set_password(PASSWORD)
    file.write_text(right.replace("/shop", "/shopp"))
    project.refused("shopp")


def test_a_declared_table_that_the_user_does_not_see_is_refused_before_the_snapshot(
    database: Database, project: Project
) -> None:
    """Without it the snapshot would be taken, and the rows of that table would never come."""
    project.declare()
    grant_all(database, project, "")
    file = project.root / "models" / "shop.yml"
    file.write_text(file.read_text().replace("name: item,", "name: itme,"))
    code, shown = project.call("ingest")
    assert code == 2 and "models/shop.yml:7:9" in shown and "has no table itme" in shown and "item" in shown
    file.write_text(file.read_text().replace("name: itme,", "name: item,").replace("[id]", "[idd]"))
    code, shown = project.call("ingest")
    assert code == 2 and "models/shop.yml:7:9" in shown and "names 'idd', which" in shown and "mean 'id'" in shown
    if database.url.startswith("postgresql"):
        file.write_text(file.read_text().replace("[idd]", "[twice]"))
        code, shown = project.call("ingest")
        assert code == 2 and "names 'twice', which public.item does not have, or does not log" in shown
        file.write_text(file.read_text().replace("[twice]", "[id]"))
        assert "public.item.twice is generated: PostgreSQL does not log it" in project.call("debug")[1]
    assert not (project.root / "w" / "_sml" / "database").exists()


def test_a_table_that_is_system_versioned_is_refused(database: Database, project: Project) -> None:
    """Its log has a delete as an update of a column that Debezium may not know."""
    if "mysql" not in database.url:
        return
    database.run("create table shop.kept (id int primary key, v int)")
    project.declare()
    grant_all(database, project, "")
    with (project.root / "models" / "shop.yml").open("a") as file:
        file.write("      - {name: kept, ingest: {primary_key: [id]}}\n")
    assert project.call("debug")[0] == 0
    database.run("alter table shop.kept add system versioning")
    try:
        code, shown = project.call("ingest")
        assert code == 2 and "kept is system-versioned" in shown and "take it out of the source" in shown
        assert project.call("init", "other", "--from", database.url)[0] == 0
        declared = (project.root / "other" / "models" / "ods" / "shop.yml").read_text()
        assert "# kept is not read: it is system-versioned." in declared and "name: kept" not in declared
    finally:
        database.run("drop table shop.kept")


@pytest.mark.release
def test_a_database_that_is_away_or_silent(database: Database, project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        project.url = re.sub(r":\d+/", f":{port}/", database.url)
        code, shown = project.call("init", "other", "--from", project.url)
        assert code == 2 and "does not answer" in shown
    project.declare()
    project.refused("does not answer")


def test_a_server_that_logs_something_else(database: Database, project: Project, tmp_path: Path) -> None:
    project.declare()
    if "mysql" in database.url:
        database.run("set global binlog_format = 'MIXED'", "set global binlog_row_image = 'NOBLOB'")
        try:
            code, shown = project.call("ingest")
        finally:
            database.run("set global binlog_format = 'ROW'", "set global binlog_row_image = 'FULL'")
        wanted = ["SET GLOBAL binlog_format = 'ROW';", "SET GLOBAL binlog_row_image = 'FULL';"]
    else:
        (tmp_path / "replica").mkdir()
        with postgres.postgres(tmp_path / "replica", "replica") as service:
            service.run("create table item (id int primary key)", "create table keyless (n int)")
            file = project.root / "models" / "shop.yml"
            file.write_text(re.sub(r"reader@.*?/shop", f"postgres@127.0.0.1:{service.port}/postgres", file.read_text()))
            code, shown = project.call("ingest")
        wanted = ["ALTER SYSTEM SET wal_level = 'logical'", "REPLICA IDENTITY FULL"]
    assert code == 2 and "models/shop.yml:5:23: " in shown and all(each in shown for each in wanted), shown
    assert not (project.root / "w" / "_sml" / "database").exists()


def test_a_log_that_has_too_little_of_deleted_rows(database: Database, project: Project) -> None:
    """Of what it has not, Debezium's events have 0 and the like: the rows would stay, or others would go."""
    if "mysql" in database.url:
        return
    database.run(
        "create table coded (id int primary key, code text not null unique)",
        "alter table coded replica identity using index coded_code_key",
        "create table ranked (id int, at int not null, primary key (id)) partition by range (id)",
        "create table ranked_1 partition of ranked for values from (0) to (100)",
        *(f"alter table {name} owner to keeper" for name in ("coded", "ranked", "ranked_1")),
    )
    project.declare()
    with (project.root / "models" / "shop.yml").open("a") as file:
        file.write(
            "      - {name: coded, ingest: {primary_key: [id]}}\n"
            "      - {name: ranked, ingest: {primary_key: [id], order_by: [at]}}\n"
        )
    grant_all(database, project, "")
    database.run(
        "alter table coded replica identity using index coded_code_key",
        "alter table ranked_1 replica identity default",
    )
    code, shown = project.call("ingest")
    assert code == 2 and "models/shop.yml:5:23: " in shown
    assert "public.coded logs code of a deleted row, and primary_key of shop.coded names id" in shown
    assert "public.ranked_1 logs id of a deleted row, and order_by of shop.ranked names at" in shown
    assert 'ALTER TABLE "public"."ranked_1" REPLICA IDENTITY FULL;' in shown
