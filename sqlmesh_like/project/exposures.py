"""`exposures:` and `groups:` of properties YAML. Owns reading them; `render` resolves what an exposure reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from sqlmesh_like.names import NodeId
from sqlmesh_like.project.doc_blocks import Descriptions
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.property_keys import EXPOSURE, GROUP
from sqlmesh_like.project.nodes import Exposure, ModelGroup
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.sources import required_text


def parse_exposures(
    nodes: Iterable[YamlNode], values: ValueRenderer, descriptions: Descriptions, settings: FolderConfig
) -> tuple[Exposure, ...]:
    """The enabled exposures. Raises ProjectError at the first wrong key or value."""
    exposures = [_exposure(values.render(node, frozenset({"description", "depends_on"})), descriptions, settings)
             for node in nodes]  # fmt: skip
    return tuple(exposure for exposure in exposures if exposure is not None)


def _exposure(node: YamlNode, descriptions: Descriptions, settings: FolderConfig) -> Exposure | None:
    EXPOSURE.check(node)
    name = required_text(node, "name", "an exposure")
    config = node.get("config")
    levels = [node] if config is None else [node, config.mapping("config")]
    if any(level.children["enabled"].value is False for level in levels if "enabled" in level.children):
        return None
    project = settings.settings.name
    metas = [child for level in levels if (child := level.get("meta")) is not None]
    return Exposure(
        unique_id=NodeId("exposure", project, name),
        name=name,
        type=str(EXPOSURE.value(node, "type")),
        owner=_owner(node, "an exposure"),
        depends_on=tuple(
            (one.text("depends_on"), one.location.line, one.location.column) for one in node.elements_of("depends_on")
        ),
        description=descriptions.of(node),
        label=node.text_of("label"),
        maturity=cast(str | None, EXPOSURE.value(node, "maturity")),
        url=node.text_of("url"),
        tags=tuple(sorted({tag for level in levels for tag in level.texts_of("tags")})),
        meta={key: child.value for meta in metas for key, child in meta.mapping("meta").items()},
        fqn=(project, *settings.folders(node.location.path), name),
        declared_at=node.location,
    )


def parse_groups(nodes: Iterable[YamlNode], project: str, descriptions: Descriptions) -> tuple[ModelGroup, ...]:
    """The groups. Raises ProjectError at the first wrong key or value."""
    return tuple(_group(node, project, descriptions) for node in nodes)


def _group(node: YamlNode, project: str, descriptions: Descriptions) -> ModelGroup:
    GROUP.check(node)
    name = required_text(node, "name", "a group")
    owner = _owner(node, "a group")
    return ModelGroup(NodeId("group", project, name), name, owner, descriptions.of(node), node.location)


def _owner(node: YamlNode, what: str) -> Mapping[str, object]:
    """All keys of an owner. Raises ProjectError if it has neither a name nor an email."""
    child = node.get("owner")
    if child is None:
        raise node.error(f"{what} needs 'owner'", "add owner: {name: …, email: …}")
    if child.mapping("owner").get("name") is None and child.get("email") is None:
        raise child.error(f"the owner of {what} needs a name or an email", "add owner: {name: …, email: …}")
    return {key: value.value for key, value in child.items()}
