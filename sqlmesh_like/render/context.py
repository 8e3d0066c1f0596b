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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace

import yaml

from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import ConfigFault, UnknownSetting, canonical, merge_config
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import target_words
from sqlmesh_like.project.reading.values import ProjectVars, public_env_var, value_of_yaml
from sqlmesh_like.render.adapter_functions import AdapterFunctions, ColumnOf, LakeQueries, ProjectGraph
from sqlmesh_like.render.macros import Macros, TemplateScope
from sqlmesh_like.render.overrides import Overrides
from sqlmesh_like.render.relations import MissingNode, RelationRegistry, TemplateRelation
from sqlmesh_like.render.rendered import InputRef
from sqlmesh_like.render.template_values import MODULES, RuntimeConfig, TemplateFlags, TemplateNode, TemplateTarget
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
    command: str = "run"
    overrides: Overrides = field(default_factory=Overrides)
    package_vars: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    lake: LakeQueries | None = None
    graph: Callable[[], Mapping[str, object]] | None = None
    config: RuntimeConfig | None = None  # what `ref.config` is

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
    missing: MissingNode | None = None  # what a ref or source said that is not there, or disabled
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
                checked = value
            except ConfigFault as fault:
                raise TemplateFault(fault.message, pattern, fault.hint) from fault
            self._findings.config = merge_config(self._findings.config, {name: checked})
        return ""

    def get(self, key: str, default: object = None, _validator: object = None) -> object:
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

    def require(self, key: str, _validator: object = None) -> object:
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
    functions = _references(registry, findings, around.config)
    asking = AdapterFunctions(around.lake, findings.note_question)
    package = str(node.get("unique_id", "..")).split(".")[1]
    scope: TemplateScope = {
        **around.templates.globals(),
        **functions,
        **_values(around),
        **_ACTIONS,
        **asking.functions(),
        "adapter": asking,
        "flags": TemplateFlags(around.full_refresh, around.command, findings.note_question),
        "graph": ProjectGraph(around.graph, findings.note_question),
        "config": config,
        "builtins": {**functions, "config": config},
        "this": TemplateRelation(this),
        "model": TemplateNode(node, around.graph),
        "is_incremental": _is_incremental(findings, incremental),
    }
    scope["var"] = ProjectVars(
        around.vars_of(package),
        lambda name, text: around.templates.render(f"<var {name}>", text, scope).compiled,
        lambda: findings.is_parsing,
    )
    scope["render"] = lambda text: around.templates.render("<render>", str(text), scope).compiled
    scope["context"] = MappingProxyType(scope)
    scope["dbt"] = {name: scope[name] for name in _OF_DBT}
    around.macros.bind(scope, lambda unique_id: findings.macros.setdefault(unique_id), package)
    around.overrides.lay_over(scope)
    return scope


def _references(
    registry: RelationRegistry | None, findings: RenderTrace, config: RuntimeConfig | None
) -> dict[str, object]:
    def use(input_ref: InputRef) -> TemplateRelation:
        findings.inputs[input_ref.unique_id] = input_ref
        return TemplateRelation(input_ref.table)

    @contextmanager
    def noting() -> Iterator[None]:
        try:
            yield
        except MissingNode as missing:
            findings.missing = missing
            raise

    def ref(*names: str, v: object = None, version: object = None) -> TemplateRelation:
        wanted = version if v is None else v
        if registry is None:
            return TemplateRelation(TableName("", str(names[-1:])))
        with noting():
            return use(registry.ref(*names, version=wanted))

    def source(source_name: str, table_name: str) -> TemplateRelation:
        if registry is None:
            return TemplateRelation(TableName(source_name, table_name))
        with noting():
            return use(registry.source(source_name, table_name))

    functions: dict[str, Callable[..., TemplateRelation]] = {"ref": ref, "source": source}
    for function in functions.values():
        vars(function)["config"] = config
    return {**functions}


def _is_incremental(findings: RenderTrace, incremental: bool) -> Callable[[], bool]:
    def is_incremental() -> bool:
        findings.asked_incremental = True
        return incremental

    return is_incremental


def _values(around: RenderEnvironment) -> dict[str, object]:
    target = around.target
    return {
        "env_var": public_env_var,
        "target": target_words(target) if target.type == "spark" else TemplateTarget(target_words(target)),
        "schema": target.schema,
        "database": None,
        "project_name": around.project,
        "invocation_args_dict": {"full_refresh": around.full_refresh},
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


def _raise(message: object) -> None:
    raise TemplateFault(str(message), r"\braise_compiler_error\b")


def _empty(*_args: object, **_options: object) -> str:
    return ""


def _to_json(value: object, _default: object = None, sort_keys: bool = False) -> str:
    return json.dumps(
        value, sort_keys=sort_keys, default=lambda one: dict(one) if isinstance(one, Mapping) else str(one)
    )


def _to_yaml(value: object, _default: object = None, sort_keys: bool = False) -> str:
    return yaml.safe_dump(value, sort_keys=sort_keys)


def _md5(text: object) -> str:
    return hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest()


def _create_relation(
    database: object = None, schema: str = "", identifier: str = "", type: object = None, **_more: object
) -> TemplateRelation:
    del database, type
    return TemplateRelation(TableName(schema or "", identifier or ""))


def _try(message: object, function: Callable[..., object], *args: object, **options: object) -> object:
    try:
        return function(*args, **options)
    except Exception as error:
        raise TemplateFault(f"{message}: {error}", r"\btry_or_compiler_error\b") from error


def _difference(one: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What of `one` is not in `other`, key by key; case does not matter."""
    known = {key.lower(): [value.lower() for value in values] for key, values in other.items()}
    left = {key: [value for value in values if value.lower() not in known.get(key.lower(), ())]
            for key, values in one.items()}  # fmt: skip
    return {key: values for key, values in left.items() if values}


def _ephemeral_name(name: str) -> str:
    return f"__dbt__cte__{name}"


_OF_DBT = ("run_query", "statement", "load_result", "load_relation", "is_incremental")
"""Functions that templates may call as macros of dbt: `dbt.run_query(…)`."""
_ACTIONS: Mapping[str, object] = {
    "return": _return,
    "log": _log_message,
    "print": _log_message,
    "exceptions": SimpleNamespace(raise_compiler_error=_raise, raise_not_implemented=_raise, warn=_warn),
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
    "try_or_compiler_error": _try,
    "diff_of_two_dicts": _difference,
    "dbt_metadata_envs": MappingProxyType({}),
    "local_md5": _md5,
}
