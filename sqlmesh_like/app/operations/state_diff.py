"""Changes since the manifest of `--state`. Owns what is compared; `artifacts.change_impact` compares."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.artifacts.change_impact import AffectedNode, ChangedNode, ImpactAnalysis
from sqlmesh_like.artifacts.state import MANIFEST
from sqlmesh_like.errors import UsageError


@dataclass(frozen=True)
class StateDiff:
    """Changed nodes, and nodes downstream that they affect."""

    changes: tuple[ChangedNode, ...]
    touched: tuple[AffectedNode, ...]


def require_state(call: Invocation) -> None:
    """Raises UsageError where a call has no `--state` to compare with; called before the project is read."""
    if call.state is None:
        hint = "give the folder of an earlier manifest.json, such as a copy of target/"
        raise UsageError("diff needs --state PATH to compare with", hint=hint)


def state_diff(loaded: Loaded) -> StateDiff:
    """Return the changes, only of selected nodes if the call selects some. Raises UsageError without a manifest."""
    if loaded.state is None or loaded.state.manifest is None:
        raise UsageError(f"there is no {MANIFEST} in {loaded.invocation.state}", hint="`sml compile` writes it")
    impact = ImpactAnalysis(loaded.state.manifest, loaded.manifest)
    chosen = {node.unique_id for node in loaded.select_nodes()} if loaded.invocation.is_selecting else None
    changes = tuple(change for change in impact.changes() if chosen is None or change.unique_id in chosen)
    return StateDiff(changes, tuple(impact.affected_models(changes)))
