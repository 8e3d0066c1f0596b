"""dbt's artifacts as another reader, `dbt_artifacts_parser`, takes them: every field by dbt's published schemas.

Each version's classes cost seconds to import, and its own `parser` imports them all. They are imported by the tests
that need them, which one process of the suite runs, and not when tests are collected, which all do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt_artifacts_parser.parsers.catalog.catalog_v1 import CatalogV1
    from dbt_artifacts_parser.parsers.manifest.manifest_v12 import ManifestV12
    from dbt_artifacts_parser.parsers.run_results.run_results_v6 import RunResultsV6

Artifact = Mapping[str, Any]


def read_manifest(artifact: Artifact) -> ManifestV12:
    from dbt_artifacts_parser.parsers.manifest.manifest_v12 import ManifestV12

    return ManifestV12(**_of_version(artifact, "manifest/v12"))


def read_catalog(artifact: Artifact) -> CatalogV1:
    from dbt_artifacts_parser.parsers.catalog.catalog_v1 import CatalogV1

    return CatalogV1(**_of_version(artifact, "catalog/v1"))


def read_run_results(artifact: Artifact) -> RunResultsV6:
    from dbt_artifacts_parser.parsers.run_results.run_results_v6 import RunResultsV6

    return RunResultsV6(**_of_version(artifact, "run-results/v6"))


def _of_version(artifact: Artifact, version: str) -> Artifact:
    assert artifact["metadata"]["dbt_schema_version"] == f"https://schemas.getdbt.com/dbt/{version}.json"
    return artifact
