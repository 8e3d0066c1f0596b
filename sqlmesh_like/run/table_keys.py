"""The columns by which rows of a table are told apart. Owns where the project says so, for unit tests' changes."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.render.rendered import RenderedProject


def table_keys(project: ParsedProject, rendered: RenderedProject) -> Mapping[str, tuple[str, ...]]:
    """By unique id: the primary key of ingestion, `unique_key`, else the first column with a `unique` data test."""
    keys: dict[str, tuple[str, ...]] = {}
    for test in rendered.tests:
        called = test.metadata
        is_unique = called is not None and (called.namespace, called.name) == (None, "unique")
        if test.attached_to and test.column_name and is_unique and not test.config.get("where"):
            keys.setdefault(test.attached_to, (test.column_name,))
    for source in project.sources:
        keys |= {t.unique_id: t.ingest.primary_key for t in source.tables if t.ingest and t.ingest.primary_key}
    for seed in rendered.seeds:
        given = seed.config.get("unique_key")
        if given:
            keys[seed.unique_id] = tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)
    return keys | {model.unique_id: model.config.unique_key for model in rendered.models if model.config.unique_key}
