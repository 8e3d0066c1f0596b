"""Semantic models, metrics and saved queries of `manifest.json`, in the shape of dbt's schema v12. Owns the shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlmesh_like.project.paths import within_package
from sqlmesh_like.project.semantic.declarations import Metric, SavedQuery, SemanticModel
from sqlmesh_like.render.rendered import RenderedSemantic

_Entry = dict[str, object]


def semantic_entries(
    semantic: Iterable[RenderedSemantic], refs: Mapping[str, Mapping[str, object]], schema: str
) -> dict[str, dict[str, _Entry]]:
    """Return the manifest's sections. `refs`: calls of ref() by unique id, as in dbt; `schema`: the target's."""
    sections: dict[str, dict[str, _Entry]] = {"semantic_models": {}, "metrics": {}, "saved_queries": {}}
    for rendered in sorted(semantic, key=lambda one: one.unique_id):
        entry = {**_common(rendered), "refs": refs[rendered.unique_id]["refs"]}
        match rendered.declared:
            case SemanticModel():
                table = rendered.inputs[0].table
                sections["semantic_models"][rendered.unique_id] = {
                    **entry,
                    "node_relation": {
                        "alias": table.identifier,
                        "schema_name": table.schema,
                        "database": None,
                        "relation_name": table.sql(),
                    },
                }
            case Metric() as metric:
                sections["metrics"][rendered.unique_id] = {**entry, **_metric(metric, rendered)}
            case SavedQuery() as query:
                own = {"exports": _exports(query, schema), "tags": list(query.tags)}
                sections["saved_queries"][rendered.unique_id] = {**entry, **own}
    return sections


def _common(rendered: RenderedSemantic) -> _Entry:
    declared = rendered.declared
    path = within_package(declared.path, declared.package)
    return {
        **declared.keys,
        "unique_id": declared.unique_id,
        "name": declared.name,
        "resource_type": declared.unique_id.kind,
        "package_name": declared.package,
        "path": path.partition("/")[2],
        "original_file_path": path,
        "fqn": list(declared.fqn),
        "config": dict(declared.config),
        "unrendered_config": {},
        "group": declared.group,
        "metadata": None,
        "depends_on": {"macros": [], "nodes": list(rendered.reads)},
    }


def _metric(metric: Metric, rendered: RenderedSemantic) -> _Entry:
    params = metric.keys["type_params"]
    assert isinstance(params, Mapping)
    more = {"input_measures": [dict(keys) for keys in rendered.measures], "metric_aggregation_params": None}
    return {"type_params": {**params, **more}, "tags": list(metric.tags), "metrics": [], "sources": []}


def _exports(query: SavedQuery, schema: str) -> list[_Entry]:
    exports = query.keys["exports"]
    assert isinstance(exports, list)
    return [
        {**export, "config": {**export["config"], "schema_name": export["config"]["schema_name"] or schema}}
        for export in exports
    ]
