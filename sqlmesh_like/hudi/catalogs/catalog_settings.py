"""A target's settings for the catalog that other engines use. Owns options of Hudi's sync tool; calls nothing.

Options: https://hudi.apache.org/docs/syncing_metastore
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target

_EXTRACTORS = "org.apache.hudi.hive."
_DEFAULT_PORT = 9083


def sync_options(target: Target, table: TableName, uri: str, partition_field: str | None) -> dict[str, str]:
    """The tool's options; those in the profile below the catalog that start with `hoodie.` override them."""
    extractor = "MultiPartKeysValueExtractor" if partition_field else "NonPartitionedExtractor"
    options = {
        "hoodie.datasource.meta.sync.base.path": uri,
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.database": table.schema,
        "hoodie.datasource.hive_sync.table": table.identifier,
        "hoodie.datasource.hive_sync.partition_fields": partition_field or "",
        "hoodie.datasource.hive_sync.partition_extractor_class": _EXTRACTORS + extractor,
        # Otherwise timestamps appear as numbers.
        "hoodie.datasource.hive_sync.support_timestamp": "true",
    }
    if target.catalog == "hive":
        options["hoodie.datasource.hive_sync.metastore.uris"] = metastore_uri(target)
    given = {name: str(value) for name, value in _settings(target).items() if name.startswith("hoodie.")}
    return {**options, **given}


def metastore_uri(target: Target) -> str:
    """The `uri` of a target's Hive metastore; empty: Hadoop's own settings on this machine name it."""
    return str(_settings(target).get("uri") or "")


def metastore_address(target: Target) -> tuple[str, int]:
    """Host and port of the first metastore in the profile."""
    first = urlsplit(metastore_uri(target).split(",")[0])
    return first.hostname or "localhost", first.port or _DEFAULT_PORT


def _settings(target: Target) -> Mapping[str, object]:
    given = target.options.get("catalog")
    result = given.get(target.catalog) if isinstance(given, dict) else None
    return result if isinstance(result, dict) else {}
