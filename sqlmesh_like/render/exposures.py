"""What exposures read, and who may read what. Owns resolving `depends_on` and the access of models by group."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Exposure, ModelConfig, ModelGroup
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import RenderedExposure, RenderedModel, RenderedSemantic, RenderedTest
from sqlmesh_like.render.semantic.names import SemanticNames

_CALL = re.compile(r"\s*(?:ref|source|metric)\s*\(.*\)\s*", re.DOTALL)


def render_exposures(
    exposures: Iterable[Exposure],
    registry: RelationRegistry,
    names: SemanticNames,
    around: RenderEnvironment,
) -> tuple[RenderedExposure, ...]:
    """Exposures with their inputs. Raises ProjectError or JinjaError if one depends on a node that does not exist."""
    return tuple(_render(exposure, registry, names, around) for exposure in exposures)


def _render(
    exposure: Exposure,
    registry: RelationRegistry,
    names: SemanticNames,
    around: RenderEnvironment,
) -> RenderedExposure:
    findings = RenderTrace()
    metrics: dict[tuple[str, ...], str] = {}
    node = {"unique_id": exposure.unique_id, "name": exposure.name, "resource_type": "exposure"}
    config = ConfigCall({}, findings, lambda _key, value: value)
    scope = build_scope(around, registry, node, TableName(around.target.schema, exposure.name), config, findings)
    scope = {**scope, "metric": _metric_call(exposure, names, metrics)}
    for text, line, column in exposure.depends_on:
        place = Location(exposure.declared_at.path, line, column)
        if not _CALL.fullmatch(text):
            hint = "write ref('model'), source('source', 'table') or metric('name')"
            raise ProjectError(f"exposure {exposure.name!r} depends on {text!r}", location=place, hint=hint)
        try:
            around.templates.render(exposure.declared_at.path, f"{{{{ {text} }}}}", scope)
        except ProjectError as error:
            raise type(error)(error.message, location=place, hint=error.hint) from error
    return RenderedExposure(exposure, tuple(findings.inputs.values()), metrics)


def _metric_call(exposure: Exposure, names: SemanticNames, metrics: dict[tuple[str, ...], str]) -> Callable[..., str]:
    """`metric('name')` or `metric('package', 'name')`, which records the metric in `metrics`."""

    def metric(*called: str) -> str:
        if not 1 <= len(called) <= 2 or not all(isinstance(word, str) for word in called):
            raise TemplateFault(f"metric takes a name, or a package and a name, not {called!r}", r"\bmetric\s*\(")
        package = called[0] if len(called) == 2 else None
        metrics[called] = names.metric(called[-1], exposure.fqn[0], exposure.declared_at, package).unique_id
        return ""

    return metric


def check_access(
    groups: Iterable[ModelGroup],
    models: tuple[RenderedModel, ...],
    tests: tuple[RenderedTest, ...],
    exposures: tuple[RenderedExposure, ...],
    semantic: tuple[RenderedSemantic, ...],
) -> None:
    """Refuse unknown groups, and private models read from outside their group, as dbt does. Raises ProjectError.

    A generic test belongs to the group of the model that it tests.
    """
    known = [group.name for group in groups]
    configs: dict[str, ModelConfig] = {model.unique_id: model.config for model in models}
    for model in models:
        _refuse_unknown_group(f"model {model.name!r}", model.config.group, known, Location(model.path, 1, 1))
    for one in semantic:
        kind = one.unique_id.noun
        _refuse_unknown_group(f"{kind} {one.name!r}", one.declared.group, known, one.declared.declared_at)
    private: dict[str, RenderedModel] = {model.unique_id: model for model in models if model.config.access == "private"}
    if not private:
        return
    for reader in models:
        _refuse(reader, reader.config.group, private, reader.raw_sql)
    for test in tests:
        config = configs.get(test.attached_to or "")
        _refuse(test, config.group if config else test.config.get("group"), private, test.raw_sql)
    for exposure in exposures:
        _refuse(exposure, None, private, "")
    for one in semantic:
        _refuse(one, one.declared.group, private, "")


def _refuse_unknown_group(what: str, group: str | None, known: Sequence[str], place: Location) -> None:
    if group is not None and group not in known:
        hint = nearest(group, known) or f"known groups: {', '.join(known) or 'none'}"
        raise ProjectError(f"{what} is of group {group!r}, which there is not", location=place, hint=hint)


def _refuse(
    reader: RenderedModel | RenderedTest | RenderedExposure | RenderedSemantic,
    group: object,
    private: Mapping[str, RenderedModel],
    text: str,
) -> None:
    for ref in reader.inputs:
        model = private.get(ref.unique_id)
        if model is None or (group and group == model.config.group) or model.unique_id == reader.unique_id:
            continue
        hint = f"read it from group {model.config.group!r} alone, or set its access to protected"
        message = f"{reader.name!r} reads {model.name!r}, which is private to the group {model.config.group!r}"
        raise ProjectError(message, location=place_of_ref(reader.path, model.name, text), hint=hint)


def place_of_ref(path: str, name: str, text: str) -> Location:
    """Where a node's file reads a model of a name; the file alone if a macro does."""
    call = re.search(rf"\bref\s*\([^)]*['\"]{re.escape(name)}['\"]", text)
    return Location(path) if call is None else Location.at(path, text, call.start())
