"""What is told to a catalog, and how it is asked: no JVM."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from sqlmesh_like.app.setup.doctor import _catalog
from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.catalogs.catalog_settings import metastore_address, metastore_uri, sync_options
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target

TABLE = TableName("ods", "user")


def target(kind: str = "hive", **settings: Any) -> Target:
    return Target("p", "t", "spark", catalog=kind, options={"catalog": {kind: settings}})


@pytest.mark.checklist(54)
def test_a_partitioned_table_is_known_by_its_partition_column() -> None:
    options = sync_options(target(uri="thrift://h:1"), TABLE, "/w/ods/user", "year_month")
    assert options["hoodie.datasource.hive_sync.partition_fields"] == "year_month"
    assert options["hoodie.datasource.hive_sync.partition_extractor_class"].endswith(".MultiPartKeysValueExtractor")
    assert options["hoodie.datasource.hive_sync.metastore.uris"] == "thrift://h:1"
    flat = sync_options(target(), TABLE, "/w/ods/user", None)
    assert flat["hoodie.datasource.hive_sync.partition_extractor_class"].endswith(".NonPartitionedExtractor")
    assert (flat["hoodie.datasource.hive_sync.database"], flat["hoodie.datasource.hive_sync.table"]) == ("ods", "user")


@pytest.mark.checklist(53)
def test_the_profile_overrides_options_of_the_tool_and_nothing_else() -> None:
    own = {"hoodie.datasource.hive_sync.database": "lake", "uri": "thrift://h:1", "region": "eu"}
    options = sync_options(target(**own), TABLE, "/w", None)
    assert options["hoodie.datasource.hive_sync.database"] == "lake"
    assert not {"uri", "region"} & options.keys()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [("thrift://a:1,thrift://b:2", ("a", 1)), ("thrift://a", ("a", 9083)), ("", ("localhost", 9083))],
)
def test_the_first_metastore_is_asked(uri: str, expected: tuple[str, int]) -> None:
    assert metastore_address(target(uri=uri)) == expected


def test_a_catalog_by_name_alone_has_no_settings() -> None:
    assert metastore_uri(Target("p", "t", "spark", catalog="hive", options={"catalog": "hive"})) == ""


def test_debug_asks_the_metastore() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        uri = f"thrift://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MachineError, match=r"no Hive metastore answers at 127\.0\.0\.1"):
            _catalog(target(uri=uri))
        server.listen()
        assert _catalog(target(uri=uri)) == f"hive: {uri} answers"
    assert "hive-site.xml" in _catalog(target())
    assert _catalog(Target("p", "t", "spark")).startswith("none")
