"""Unit tests of `manifest.json`, in the shape of dbt's schema v12. Owns the shape.

`changes`, which dbt does not have, are in `config.meta`.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.render.rendered import ChangedRows, RenderedUnitTest

_OVERRIDES = ("macros", "vars", "env_vars")


def unit_test(test: RenderedUnitTest, project: ParsedProject) -> dict[str, object]:
    """Return an entry of the manifest's `unit_tests`."""
    given = [{"input": _input(test, entry.ref.unique_id), **_fixture(entry.fixture)} for entry in test.given]
    meta = test.config.get("meta")
    changes = {"sml_changes": [_change(test, entry) for entry in test.changes]} if test.changes else {}
    return {
        "unique_id": test.unique_id,
        "name": test.name,
        "resource_type": "unit_test",
        "package_name": project.name,
        "path": test.path.partition("/")[2],
        "original_file_path": test.path,
        "fqn": [project.name, *PurePosixPath(test.path).parent.parts[1:], test.model.name, test.name],
        "model": test.model.name,
        "given": given,
        "expect": _fixture(test.expect),
        "description": test.description,
        "overrides": {kind: dict(test.overrides.get(kind, {})) for kind in _OVERRIDES} if test.overrides else None,
        "depends_on": {"macros": [], "nodes": [test.model.unique_id]},
        "config": {
            "tags": list(test.tags),
            "meta": {**(meta if isinstance(meta, dict) else {}), **changes},
            "enabled": True,
            "static_analysis": None,
        },
        "schema": test.model.table.schema,
        "checksum": None,
        "versions": None,
        "version": None,
    }


def _input(test: RenderedUnitTest, unique_id: str) -> str:
    from sqlmesh_like.render.unit_tests import jinja_call

    ref = next(input_ref for input_ref in test.inputs if input_ref.unique_id == unique_id)
    return "this" if unique_id == test.model.unique_id else jinja_call(ref)


def _change(test: RenderedUnitTest, entry: ChangedRows) -> dict[str, object]:
    rows = {"upsert": _rows(entry.upsert) or [], "delete": _rows(entry.delete) or []}
    return {"input": _input(test, entry.ref.unique_id), "key": list(entry.key), **rows}


def _fixture(fixture: Fixture) -> dict[str, object]:
    return {"rows": _rows(fixture), "format": fixture.format, "fixture": fixture.text_path}


def _rows(fixture: Fixture) -> object:
    return fixture.text if fixture.rows is None else fixture.rows.value
