"""Whether a call has hooks. Owns the question alone: most projects have none, and need nothing that renders them."""

from __future__ import annotations

from collections.abc import Collection

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.project.nodes import ModelConfig


def has_hooks(loaded: Loaded, written: Collection[str]) -> bool:
    """Whether the run, or a node that it writes, has a hook."""
    project = loaded.project
    return bool(project.on_run_start or project.on_run_end) or nodes_have_hooks(loaded, written)


def nodes_have_hooks(loaded: Loaded, written: Collection[str]) -> bool:
    """Whether a node that the run writes has a hook."""
    rendered = loaded.rendered
    models = [model.config for model in rendered.models if model.unique_id in written]
    seeds = [seed.config for seed in rendered.seeds if seed.unique_id in written]
    return any(map(has_hook, models)) or any(config.get("pre_hook") or config.get("post_hook") for config in seeds)


def has_hook(config: ModelConfig) -> bool:
    """Whether a model has one."""
    return bool(config.pre_hook or config.post_hook)
