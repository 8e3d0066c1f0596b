"""What a template can call. Owns the scope of one node, and what rendering it reveals.

Rendering needs no engine: queries by a template are in `adapter_functions`; none is answered while a project is read.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

from jinja2 import Undefined

from sqlmesh_like.errors import nearest
from sqlmesh_like.invocation_id import INVOCATION_ID
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.project.config import canonical, merge_config, refuse_both_spellings
from sqlmesh_like.project.keys.config_values import ConfigFault, UnknownSetting
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import target_words
from sqlmesh_like.project.reading.values import ProjectVars, public_env_var
from sqlmesh_like.render.adapter_functions import AdapterFunctions, LakeQueries
from sqlmesh_like.render.jinja.template_errors import MacroReturn, TemplateFault
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.library.functions import FUNCTIONS
from sqlmesh_like.render.library.modules import MODULES
from sqlmesh_like.render.library.node import Entries, ProjectGraph, TemplateNames, TemplateNode, default_setting
from sqlmesh_like.render.library.runtime_config import RuntimeConfig
from sqlmesh_like.render.library.target import TemplateTarget
from sqlmesh_like.render.macros import Macros, TemplateScope
from sqlmesh_like.render.naming import default_names
from sqlmesh_like.render.overrides import Overrides
from sqlmesh_like.render.relations import MissingNode, RelationClass, RelationRegistry, RelationSince, TemplateRelation
from sqlmesh_like.render.rendered import InputRef, SourceMap
from sqlmesh_like.render.results.column import ColumnOf

if TYPE_CHECKING:  # it reads SQL: where a project has no functions, rendering does not
    from sqlmesh_like.render.functions.library import FunctionLibrary

_log = logging.getLogger("sqlmesh_like.render")
_NOTHING = object()
DBT_VERSION = "1.11.16"
"""The version of dbt with whose results ours are compared; templates and packages check it."""
CheckSetting = Callable[[str, object], object]
WarnOf = Callable[[str, str, str | None, bool], None]
"""Warns about the template that is being rendered: message, pattern that finds its position, hint."""


@dataclass(frozen=True)
class RenderEnvironment:
    """What is the same for every node of one rendering."""

    project: str
    target: Target
    vars: Mapping[str, object]
    macros: Macros
    templates: Templates
    now: datetime.datetime
    call: TemplateCall = field(default_factory=TemplateCall)
    overrides: Overrides = field(default_factory=Overrides)
    package_vars: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    lake: LakeQueries | None = None
    graph: Entries | None = None
    config: RuntimeConfig | None = None  # the value of `ref.config`
    is_dbt: bool = True  # whether settings are those of dbt_project.yml
    functions: FunctionLibrary | None = field(default=None, compare=False)  # None: the project has none
    kept: dict[str, object] = field(default_factory=dict, compare=False)  # set by `graph.setdefault`, for all nodes

    def with_expressions(self, text: SourceMap, path: str, findings: RenderTrace) -> SourceMap:
        """A rendered text with functions' expressions in the place of calls, which `findings` lists then.

        Raises ProjectError for a wrong call.
        """
        if self.functions is None:
            return text
        text, called = self.functions.with_expressions(text, path)
        findings.functions.update(dict.fromkeys(called))
        return text

    def vars_of(self, package: str) -> Mapping[str, object]:
        """Variables as a package's nodes see them."""
        return {**self.package_vars[package], **self.overrides.vars} if package in self.package_vars else self.vars


@dataclass
class RenderTrace:
    """What a node's template did while it was rendered."""

    config: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, InputRef] = field(default_factory=dict)
    macros: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    asked_incremental: bool = False
    asked_lake: bool = False
    missing: MissingNode | None = None  # the error of a ref or source to a missing or disabled node
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
        try:
            refuse_both_spellings(given)
        except ConfigFault as fault:
            raise TemplateFault(fault.message, rf"\b{fault.key}\b", fault.hint) from fault
        for key, value in given.items():
            name, pattern = canonical(key), rf"(?<![\w'\"])['\"]?{re.escape(key)}\b['\"]?\s*[=:]"
            try:
                checked = self._check(name, value)
            except UnknownSetting as unknown:
                if self._warn is not None:
                    self._warn(unknown.message, pattern, unknown.hint, unknown.once)
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
        value = default_setting(key) if value is None else value
        return default if value is None else value

    def persist_relation_docs(self) -> bool:
        return self._persists("relation")

    def persist_column_docs(self) -> bool:
        return self._persists("columns")

    def _persists(self, what: str) -> bool:
        chosen = self.get("persist_docs")
        return isinstance(chosen, Mapping) and bool(chosen.get(what, False))

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
    """The names in scope of a node's template. Without a registry every reference is accepted, as in the first pass."""
    functions = _references(registry, findings, around)
    asking = AdapterFunctions(around.lake, findings.note_question)
    package = NodeId.parse(str(node["unique_id"])).package
    scope: TemplateScope = {
        **around.templates.globals(),
        **functions,
        **_values(around),
        **FUNCTIONS,
        **_ACTIONS,
        **asking.functions(),
        "adapter": asking,
        "graph": ProjectGraph(around.graph, findings.note_question, around.kept),
        "config": config,
        "this": TemplateRelation(this),
        "model": TemplateNode(node, around.graph, findings.note_question),
        "is_incremental": _is_incremental(findings, incremental),
    }
    scope["var"] = ProjectVars(
        around.vars_of(package),
        lambda name, text: around.templates.render(f"<var {name}>", text, scope).compiled,
        lambda: findings.is_parsing,
    )
    scope["render"] = lambda text: around.templates.render("<render>", str(text), scope).compiled
    scope["builtins"] = dict(scope)
    scope["context"] = TemplateNames(scope)
    scope["dbt"] = {name: scope[name] for name in _OF_DBT}
    around.macros.bind(scope, lambda unique_id: findings.macros.setdefault(unique_id), package)
    for name, default in default_names(around.target, around.is_dbt).items():
        if not around.macros.place_tables(name, scope):
            scope[name] = default
    around.overrides.lay_over(scope)
    return scope


def _references(
    registry: RelationRegistry | None, findings: RenderTrace, around: RenderEnvironment
) -> dict[str, object]:
    def use(input_ref: InputRef) -> TemplateRelation:
        findings.inputs[input_ref.unique_id] = input_ref
        event_time = None if registry is None else registry.event_times.get(input_ref.unique_id)
        if findings.begin is not None and event_time is not None:
            return RelationSince(input_ref.table, event_time, findings.begin)
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
            return TemplateRelation(TableName("", _text_or_empty(names[-1]) if names else ""))
        with noting():
            return use(registry.ref(*names, version=wanted))

    def source(*names: str) -> TemplateRelation:
        if registry is None:
            first, last = (names[0], names[-1]) if names else ("", "")
            return TemplateRelation(TableName(_text_or_empty(first), _text_or_empty(last)))
        with noting():
            return use(registry.source(*names))

    references: dict[str, Callable[..., TemplateRelation]] = {"ref": ref, "source": source}
    for reference in references.values():
        vars(reference)["config"] = around.config
    return {**references, "function": lambda *names: _function(around.functions, findings, names)}


def _function(library: FunctionLibrary | None, findings: RenderTrace, names: tuple[object, ...]) -> str:
    """The name by which a query calls a function of the project: `function(name)`, or `function(package, name)`."""
    name = str(names[-1]) if names else ""
    function = None if library is None else library.find(name)
    if function is None or (len(names) > 1 and str(names[0]) != function.unique_id.package):
        message = f"there is no function {'.'.join(map(str, names))!r}"
        hint = (
            nearest(name, library.names if library is not None else ())
            or "declare it under functions: in properties YAML"
        )
        raise TemplateFault(message, rf"\bfunction\s*\(\s*['\"]{re.escape(name)}", hint)
    findings.functions[function.unique_id] = None
    return function.name


def _text_or_empty(name: object) -> str:
    """A name in the first pass, which knows no nodes yet; one without quotes is refused by the second, with a hint."""
    return "" if isinstance(name, Undefined) else str(name)


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
        "defer_relation": None,
        "run_started_at": around.now,
        "modules": MODULES,
        "invocation_id": INVOCATION_ID,
        **around.call.names(),
    }


def _return(value: object = None) -> None:
    raise MacroReturn(value)


def _log_message(message: object, info: bool = False) -> str:
    _log.log(logging.INFO if info else logging.DEBUG, "%s", message)
    return ""


def _warn(message: object) -> str:
    _log.warning("%s", message)
    return ""


def _print(message: object) -> str:
    return _log_message(message, info=True)


def _raising(name: str) -> Callable[..., None]:
    """`exceptions.<name>(message)`: raises an error of the template, located at the call."""

    def raise_error(*words: object, **named: object) -> None:
        given = [word for word in (*words, *named.values()) if isinstance(word, str | TemplateRelation)]
        raise TemplateFault(" ".join(map(str, given)) or name, rf"\b{name}\b")

    return raise_error


def _empty(*_args: object, **_options: object) -> str:
    return ""


_ERRORS = (
    *("raise_compiler_error", "raise_not_implemented", "raise_database_error", "raise_dependency_error"),
    *("raise_fail_fast_error", "raise_parsing_error", "raise_contract_error", "raise_duplicate_resource_name"),
    *("missing_config", "missing_materialization", "missing_relation", "relation_wrong_type", "column_type_missing"),
)
_OF_DBT = ("run_query", "statement", "load_result", "load_relation", "load_cached_relation", "is_incremental")
"""Functions that templates may call as macros of dbt: `dbt.run_query(…)`."""
_ACTIONS: Mapping[str, object] = {
    "return": _return,
    "log": _log_message,
    "print": _print,
    "exceptions": SimpleNamespace(warn=_warn, **{name: _raising(name) for name in _ERRORS}),
    "api": SimpleNamespace(
        Relation=RelationClass(),
        Column=ColumnOf,
    ),
    "doc": _empty,
    "dbt_version": DBT_VERSION,
    "thread_id": "MainThread",
}
