"""What a template can call. Owns the scope of one node, and what rendering it brought to light.

Rendering needs no engine: queries by a template are in `adapter_functions`; none is answered while a project is read.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace

import yaml

from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import ConfigFault, UnknownSetting, canonical, merge_config
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import target_words
from sqlmesh_like.project.reading.values import ProjectVars, public_env_var, value_of_yaml
from sqlmesh_like.render.adapter_functions import AdapterFunctions, ColumnOf, LakeQueries, ProjectGraph
from sqlmesh_like.render.functions.modules import MODULES
from sqlmesh_like.render.functions.rare_functions import RARE, raising_functions, runtime_config
from sqlmesh_like.render.macros import Macros, TemplateScope
from sqlmesh_like.render.overrides import Overrides
from sqlmesh_like.render.relations import RelationRegistry, RelationSince, TemplateRelation
from sqlmesh_like.render.rendered import InputRef
from sqlmesh_like.render.templates import MacroReturn, TemplateFault, Templates

_log = logging.getLogger("sqlmesh_like.render")
_NOTHING = object()
DBT_VERSION = "1.11.16"
"""The dbt whose outcomes ours are compared with, as templates and packages ask for it."""
INVOCATION = str(uuid.uuid4())
"""`invocation_id`: one of this process."""
CheckSetting = Callable[[str, object], object]
WarnOf = Callable[[str, str, str | None], None]
"""Tells of something in the template that is being rendered: message, pattern of its place, hint."""


@dataclass(frozen=True)
class RenderEnvironment:
    """What is the same for every node of one rendering."""

    project: str
    target: Target
    vars: Mapping[str, object]
    macros: Macros
    templates: Templates
    now: datetime.datetime
    full_refresh: bool = False
    overrides: Overrides = field(default_factory=Overrides)
    package_vars: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    lake: LakeQueries | None = None
    graph: Callable[[], Mapping[str, object]] | None = None
    versions: Mapping[str, str | None] = field(default_factory=dict)  # of the project and its packages

    def vars_of(self, package: str) -> Mapping[str, object]:
        """Variables as a package's nodes see them."""
        return {**self.package_vars[package], **self.overrides.vars} if package in self.package_vars else self.vars


@dataclass
class RenderTrace:
    """What a node's template did while it was rendered."""

    config: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, InputRef] = field(default_factory=dict)
    macros: dict[str, None] = field(default_factory=dict)
    asked_incremental: bool = False
    asked_lake: bool = False
    begin: str | None = None  # of a microbatch model: rows of inputs with an `event_time` before it are left out
    is_parsing: bool = False  # only config is wanted, maybe that of a disabled node: variables may be missing

    def note_question(self) -> None:
        self.asked_lake = True


class ConfigCall:
    """`config` of templates: `config(key=value)` sets, `config.get(key, default)` reads the effective value."""

    def __init__(
        self,
        weaker: Mapping[str, object],
        findings: RenderTrace,
        check: CheckSetting,
        warn: WarnOf | None = None,
    ) -> None:
        self._weaker = weaker
        self._findings = findings
        self._check = check
        self._warn = warn

    def __call__(self, *args: Mapping[str, object], **kwargs: object) -> str:
        given = {key: value for part in (*args, kwargs) for key, value in dict(part).items()}
        for key, value in given.items():
            name, pattern = canonical(key), rf"(?<![\w'\"])['\"]?{re.escape(key)}\b['\"]?\s*[=:]"
            try:
                checked = self._check(name, value)
            except UnknownSetting as unknown:
                if self._warn is not None:
                    self._warn(unknown.message, pattern, unknown.hint)
                checked = value if unknown.kept else None
            except ConfigFault as fault:
                raise TemplateFault(fault.message, pattern, fault.hint) from fault
            self._findings.config = merge_config(self._findings.config, {name: checked})
        return ""

    def set(self, key: str, value: object) -> str:
        return self({key: value})

    def get(self, key: str, default: object = None, validator: object = None) -> object:
        del validator
        value = merge_config(self._weaker, self._findings.config).get(key)
        return default if value is None else value

    def meta_get(self, key: str, default: object = None) -> object:
        meta = self.get("meta")
        return meta.get(key, default) if isinstance(meta, Mapping) else default

    def meta_require(self, key: str) -> object:
        value = self.meta_get(key, _NOTHING)
        if value is _NOTHING:
            raise TemplateFault(f"meta {key!r} is required here", rf"meta_require\s*\(\s*['\"]{re.escape(key)}")
        return value

    def require(self, key: str, validator: object = None) -> object:
        del validator
        value = self.get(key, _NOTHING)
        if value is _NOTHING:
            raise TemplateFault(f"config {key!r} is required here", rf"require\s*\(\s*['\"]{re.escape(key)}")
        return value


def build_scope(
    around: RenderEnvironment,
    registry: RelationRegistry | None,
    node: Mapping[str, object],
    this: TableName,
    config: ConfigCall,
    findings: RenderTrace,
    incremental: bool = False,
) -> TemplateScope:
    """The names a node's template knows. Without a registry every reference is accepted: its name is not known yet."""
    functions = _references(registry, findings)
    asking = AdapterFunctions(around.lake, findings.note_question)
    package = str(node.get("unique_id", "..")).split(".")[1]
    scope: TemplateScope = {
        **around.templates.globals(),
        **functions,
        **_values(around),
        **_ACTIONS,
        **RARE,
        **asking.functions(),
        "adapter": asking,
        "graph": ProjectGraph(around.graph, findings.note_question),
        "config": config,
        "this": TemplateRelation(this),
        "model": node,
        "is_incremental": _is_incremental(findings, incremental),
    }
    scope["context"] = MappingProxyType(scope)
    scope["var"] = ProjectVars(
        around.vars_of(package),
        lambda name, text: around.templates.render(f"<var {name}>", text, scope).compiled,
        lambda: findings.is_parsing,
    )
    scope["render"] = lambda text: around.templates.render("<render>", str(text), scope).compiled
    scope["dbt"] = {name: scope[name] for name in _OF_DBT}
    scope["builtins"] = dict(scope)
    config_of_run = runtime_config(around.project, around.target, around.vars, around.versions)
    setattr(functions["ref"], "config", config_of_run)  # noqa: B010 (packages find it there)
    around.macros.bind(scope, lambda unique_id: findings.macros.setdefault(unique_id), package)
    around.overrides.lay_over(scope)
    return scope


def _references(registry: RelationRegistry | None, findings: RenderTrace) -> dict[str, object]:
    def use(input_ref: InputRef) -> TemplateRelation:
        findings.inputs[input_ref.unique_id] = input_ref
        event_time = None if registry is None else registry.event_times.get(input_ref.unique_id)
        if findings.begin is not None and event_time is not None:
            return RelationSince(input_ref.table, event_time, findings.begin)
        return TemplateRelation(input_ref.table)

    def ref(*names: str, v: object = None, version: object = None) -> TemplateRelation:
        wanted = version if v is None else v
        return (
            TemplateRelation(TableName("", str(names[-1:])))
            if registry is None
            else use(registry.ref(*names, version=wanted))
        )

    def source(source_name: str, table_name: str) -> TemplateRelation:
        input_ref = None if registry is None else registry.source(source_name, table_name)
        return TemplateRelation(TableName(source_name, table_name)) if input_ref is None else use(input_ref)

    return {"ref": ref, "source": source}


def _is_incremental(findings: RenderTrace, incremental: bool) -> Callable[[], bool]:
    def is_incremental() -> bool:
        findings.asked_incremental = True
        return incremental

    return is_incremental


def _values(around: RenderEnvironment) -> dict[str, object]:
    target = around.target
    return {
        "env_var": public_env_var,
        "target": target_words(target),
        "schema": target.schema,
        "database": None,
        "project_name": around.project,
        "flags": {"FULL_REFRESH": around.full_refresh, "WHICH": "run"},
        "invocation_args_dict": {"full_refresh": around.full_refresh, "which": "run"},
        "run_started_at": around.now,
        "modules": MODULES,
        "invocation_id": INVOCATION,
    }


def _return(value: object = None) -> None:
    raise MacroReturn(value)


def _log_message(message: object, info: bool = False) -> str:
    _log.log(logging.INFO if info else logging.DEBUG, "%s", message)
    return ""


def _warn(message: object) -> str:
    _log.warning("%s", message)
    return ""


def _empty(*_args: object, **_options: object) -> str:
    return ""


def _to_json(value: object, _default: object = None, sort_keys: bool = False) -> str:
    return json.dumps(value, sort_keys=sort_keys, default=str)


def _to_yaml(value: object, _default: object = None, sort_keys: bool = False) -> str:
    return yaml.safe_dump(value, sort_keys=sort_keys)


def _md5(text: object) -> str:
    return hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest()


def _create_relation(
    database: object = None, schema: str = "", identifier: str = "", type: object = None, **_more: object
) -> TemplateRelation:
    del database, type
    return TemplateRelation(TableName(schema or "", identifier or ""))


def _ephemeral_name(name: str) -> str:
    return f"__dbt__cte__{name}"


_OF_DBT = ("run_query", "statement", "load_result", "load_relation", "is_incremental")
"""Functions that templates may call as macros of dbt: `dbt.run_query(…)`."""
_ACTIONS: Mapping[str, object] = {
    "return": _return,
    "log": _log_message,
    "print": _log_message,
    "exceptions": SimpleNamespace(**raising_functions(), warn=_warn),
    "api": SimpleNamespace(
        Relation=SimpleNamespace(create=_create_relation, add_ephemeral_prefix=_ephemeral_name),
        Column=ColumnOf,
    ),
    "doc": _empty,
    "fromjson": json.loads,
    "tojson": _to_json,
    "fromyaml": value_of_yaml,
    "toyaml": _to_yaml,
    "set": set,
    "zip": zip,
    "set_strict": set,
    "zip_strict": zip,
    "dbt_version": DBT_VERSION,
    "thread_id": "MainThread",
    "local_md5": _md5,
}
