"""Tables that a catalog lists: a commit that adds no column and no partition needs no JVM, any other one does."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.catalogs.registration import is_registered, note_registration
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import PARTITION, TableName
from sqlmesh_like.project.nodes import Target
from tests.faults.shop import CUSTOMER, DAILY, ORDERS, Shop
from tests.unit.app.test_full_refreshes import run

ADDRESS = "thrift://127.0.0.1:9"
TARGET = Target("lake", "local", "spark", catalog="hive", options={"catalog": {"hive": {"uri": ADDRESS}}})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose catalog does not answer, with a change that no model has read."""
    dice = random.Random(7)
    shop = Shop.changed(tmp_path_factory.mktemp("built"), dice, 4)
    run(shop)
    profile = shop.root / "profiles.yml"
    profile.write_text(
        profile.read_text().replace("schema: dws", f"schema: dws\n      catalog: {{hive: {{uri: {ADDRESS}}}}}")
    )
    shop.commit(ORDERS, dice)
    return shop


def named(unique_id: str) -> TableName:
    return TableName("dws", unique_id.rpartition(".")[2])


def test_a_table_that_the_catalog_has_taken_is_followed_without_a_jvm(shop: Shop) -> None:
    with pytest.raises(AssertionError, match="this must not need Spark"):
        run(shop, "customer")
    before = shop.timeline(CUSTOMER)
    note_registration(before, TARGET, named(CUSTOMER))
    for seed in (1, 2):  # the second goes by the note of the first
        assert run(shop, "customer")[CUSTOMER][0] == "group_recompute"
        assert shop.stored(CUSTOMER) == shop.expected(CUSTOMER)
        shop.commit(ORDERS, random.Random(seed))
    assert len(shop.timeline(CUSTOMER).commit_instants) > len(before.commit_instants)
    with Project.load(shop.root) as project, pytest.raises(AssertionError, match="this must not need Spark"):
        assert [each.message for each in project.run(select=["customer"], full_refresh=True).results] == []


def test_new_partitions_are_told_to_the_catalog(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop.root)
    assert main(["explain", "daily"]) == 0
    expected = "DuckDB scans and computes, Spark commits: if partitions are new, which the catalog hive is told of"
    assert expected in capsys.readouterr().out
    timeline = shop.timeline(DAILY)
    note_registration(timeline, TARGET, named(DAILY))
    assert timeline.frontier is not None
    known = {partition for partition, _ in timeline.slices(timeline.frontier)}
    assert is_registered(timeline, TARGET, named(DAILY), known) and len(known) > 1
    assert not is_registered(timeline, TARGET, named(DAILY), {*known, "_sml_partition=2099-01-01"})
    shop.commit(ORDERS, random.Random(1))  # of days that are not there yet
    with pytest.raises(AssertionError, match="this must not need Spark"):
        run(shop, "daily")


class Catalog:
    """Spark on a cluster, which tells the catalog of a table and does nothing else."""

    def __init__(self) -> None:
        self.told: list[tuple[TableName, str, str | None]] = []

    def register(self, table: TableName, uri: str, partition_field: str | None) -> None:
        self.told.append((table, uri, partition_field))
        note_registration(Timeline(uri), TARGET, table)

    def release(self) -> None: ...

    def stop(self) -> None: ...


def test_a_clusters_driver_commits_new_partitions_of_which_spark_tells_the_catalog(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop.root)
    profile, catalog = shop.root / "profiles.yml", Catalog()
    profile.write_text(profile.read_text().replace("local[2]", "spark://127.0.0.1:1"))
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_: catalog)
    note_registration(shop.timeline(DAILY), TARGET, named(DAILY))
    shop.commit(ORDERS, random.Random(1))  # of days that are not there yet
    assert main(["explain", "daily"]) == 0
    assert "; Spark tells the catalog hive of new partitions" in capsys.readouterr().out
    run(shop, "daily")
    assert shop.stored(DAILY) == shop.expected(DAILY)
    timeline = shop.timeline(DAILY)
    assert catalog.told == [(named(DAILY), timeline.uri, PARTITION)]
    assert is_registered(timeline, TARGET, named(DAILY), ())
    dice, told = random.Random(2), set[bool]()
    for _ in range(6):
        before = folders(shop)
        catalog.told.clear()
        shop.commit(ORDERS, dice)
        run(shop, "daily")
        assert shop.stored(DAILY) == shop.expected(DAILY)
        assert len(catalog.told) == (folders(shop) != before)
        told.add(folders(shop) != before)
    assert told == {True, False}


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:1"])
def test_slices_are_told_of_once_all_are_at_the_table_s_place(
    master: str, shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop.root)
    profile, catalog, uri = shop.root / "profiles.yml", Catalog(), shop.timeline(DAILY).uri
    profile.write_text(profile.read_text().replace("local[2]", master))
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_: catalog)
    model = shop.root / "models/daily.sql"
    model.write_text(model.read_text().replace("config(", "config(build_by='day', "))
    shutil.rmtree(uri)
    told = "Spark tells the catalog hive of the table once all slices are built"
    assert main(["explain", "daily"]) == 0 and told in capsys.readouterr().out
    for full_refresh in (False, True):
        catalog.told.clear()
        with Project.load(shop.root) as project:
            [result] = project.run(select=["daily"], full_refresh=full_refresh).results
        assert result.status == "success", result.message
        assert catalog.told == [(named(DAILY), uri, PARTITION)]
        assert shop.stored(DAILY) == shop.expected(DAILY)
        assert len(shop.timeline(DAILY).commit_instants) > 2
        assert is_registered(shop.timeline(DAILY), TARGET, named(DAILY), ())


def folders(shop: Shop) -> set[str]:
    """The partitions of `daily`, those without rows too."""
    return {path.name for path in (shop.root / "warehouse/dws/daily").glob("_sml_partition=*")}


def test_what_is_not_known_to_be_registered_is_told(shop: Shop) -> None:
    timeline, table = shop.timeline(CUSTOMER), named(CUSTOMER)
    assert not is_registered(timeline, TARGET, table, ())
    note_registration(timeline, TARGET, table)
    assert is_registered(timeline, TARGET, table, ())
    other = {"catalog": {"hive": {"uri": "thrift://elsewhere:9083"}}}
    for target in (replace(TARGET, catalog="glue"), replace(TARGET, options=other)):
        assert not is_registered(timeline, target, table, ())
    assert not is_registered(timeline, TARGET, TableName("dws", "other"), ())
    assert not is_registered(shop.timeline(DAILY), TARGET, named(DAILY), ())
    note = Path(timeline.uri, ".hoodie/.sml_registered")
    whole = note.read_text()
    assert timeline.frontier is not None
    gone = whole.replace(timeline.frontier, "20200101000000000_20200101000001000")  # rolled back, or archived
    for text in ("", "{}", whole[:-9], gone):
        note.write_text(text)
        assert not is_registered(timeline, TARGET, table, ())
    note.write_text(whole)
    model = shop.root / "models/customer.sql"
    model.write_text(model.read_text().replace(" as days", " as days, count(*) as n"))
    (shop.root / "profiles.yml").write_text((shop.root / "profiles.yml").read_text().replace("catalog:", "#"))
    run(shop, "customer")
    assert not is_registered(Timeline(timeline.uri), TARGET, table, ()), "it has a column more"


def promote(shop: Shop, before: str, after: str) -> int:
    """Make an edit of the model of customers in an environment, and promote it; return the exit code of that."""
    model = shop.root / "models/customer.sql"
    assert before in model.read_text()
    model.write_text(model.read_text().replace(before, after))
    with Project.load(shop.root, environment="dev") as project:
        assert {each.status for each in project.run().results} == {"success"}
    return main(["promote", "dev", "--project-dir", str(shop.root)])


def test_a_promotion_tells_the_catalog_of_new_columns_alone(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    table = named(CUSTOMER)
    note_registration(shop.timeline(CUSTOMER), TARGET, table)
    known = shop.timeline(CUSTOMER).frontier
    assert promote(shop, "group by", "where amount > 12 group by") == 0
    timeline = shop.timeline(CUSTOMER)
    assert timeline.frontier != known and is_registered(timeline, TARGET, table, ())
    note = Path(timeline.uri, ".hoodie/.sml_registered").read_text()
    assert timeline.frontier is not None and timeline.frontier in note, "the commit before may be archived"
    assert promote(shop, " as days", " as days, count(*) as n") == 1
    assert "this must not need Spark" in capsys.readouterr().err
    assert not is_registered(shop.timeline(CUSTOMER), TARGET, table, ()), "the next call tells it"
