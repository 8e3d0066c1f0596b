"""Warehouses whose rows can be forgotten for good. Owns the reasons why not, which are said before anything starts."""

from __future__ import annotations

from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.stores.store_client import keeps_versions
from sqlmesh_like.names import is_local, is_s3, is_store
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.secrets import scrub_text


def require_reachable(target: Target) -> None:
    """Raises UsageError for a warehouse whose files this process does not remove under locks."""
    warehouse = target.warehouse
    if is_local(warehouse):
        return
    if not is_s3(warehouse):
        hint = "rewrite the rows with Spark on the machines that own it, then clean with hoodie.clean.policy"
        raise UsageError(f"{scrub_text(warehouse)}: rows are forgotten on local disks and S3 only", hint=hint)
    if target.store.single_writer:
        hint = "a store with conditional writes needs no `single_writer`"
        raise UsageError(f"{scrub_text(warehouse)}: forgetting needs its locks (`single_writer`)", hint=hint)


def require_no_versions(target: Target, uri: str) -> None:
    """Raises UsageError where the bucket of a table keeps what is deleted from it, unless a rule of it removes that."""
    if is_store(uri) and not target.store.versions_expire and keeps_versions(uri):
        hint = "give it a lifecycle rule that expires noncurrent versions, then set `store: {versions_expire: true}`"
        raise UsageError(f"the bucket of {scrub_text(uri)} keeps versions of objects that are deleted", hint=hint)
