"""The sandboxed Jinja environment. Owns dbt's tags, undefined names and recording uses of the clock; `context` owns the
scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from jinja2 import Environment, Undefined, UndefinedError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context

from sqlmesh_like.project.reading.bounds import BoundedSandbox
from sqlmesh_like.project.reading.file_dependencies import record_clock
from sqlmesh_like.project.reading.values import repeatable_random

_OF_CALL = frozenset({"run_started_at", "invocation_id"})


class TestTag(Extension):
    """`{% test name(model, column_name) %} … {% endtest %}` defines the macro `test_name`, as dbt does."""

    __test__ = False
    tags = {"test", "data_test"}  # noqa: RUF012 (an instance variable of the base class)

    def parse(self, parser: Parser) -> nodes.Node:
        node = nodes.Macro(lineno=next(parser.stream).lineno)
        node.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(node)
        node.body = parser.parse_statements(("name:endtest", "name:enddata_test"), drop_needle=True)
        return node


class MaterializationTag(Extension):
    """`{% materialization … %} … {% endmaterialization %}` is skipped: its code is for dbt's adapters.

    A model that uses a custom materialization is refused, at its config.
    """

    tags = {"materialization"}  # noqa: RUF012 (an instance variable of the base class)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        while not parser.stream.current.test("block_end"):
            next(parser.stream)
        parser.parse_statements(("name:endmaterialization",), drop_needle=True)
        return []


def refuse_undefined(message: str) -> None:
    """Raise UndefinedError, instead of printing an empty text."""
    raise UndefinedError(message)


class LoudUndefined(Undefined):
    """Jinja's undefined value (false, empty), but never silently part of the SQL: it is reported when it is printed.

    Names that some template sets, maybe in a branch that was not taken, are not reported: packages rely on it.
    """

    _assigned: ClassVar[set[str]] = set()

    @staticmethod
    def _report(message: str) -> None:
        refuse_undefined(message)

    @property
    def _undefined_message(self) -> str:
        package = getattr(self._undefined_obj, "_package_name", None)
        return f"package {package!r} has no macro {self._undefined_name!r}" if package else super()._undefined_message

    def __str__(self) -> str:
        if self._undefined_name not in self._assigned:
            self._report(self._undefined_message)
        return ""


class NotingContext(Context):
    """Records that a template reads a name whose value differs in each call; the sandbox does so for `now()` etc."""

    def resolve_or_missing(self, key: str) -> object:
        if key in _OF_CALL:
            record_clock()
        return super().resolve_or_missing(key)


def environment(assigned: set[str], report: Callable[[str], None] = refuse_undefined) -> Environment:
    """A new sandboxed environment; templates reach nothing but what their scope holds.

    `report` is called when an undefined name is printed, unless it is one of the `assigned` names.

    As in dbt, templates may change lists and mappings (`do names.append(…)`): two scopes never share one.
    """
    made = BoundedSandbox(
        undefined=type("LoudUndefined", (LoudUndefined,), {"_assigned": assigned, "_report": staticmethod(report)}),
        extensions=[TestTag, MaterializationTag, "jinja2.ext.do", "jinja2.ext.loopcontrols"],
    )
    made.context_class = NotingContext
    made.globals.pop("lipsum")  # other words in each rendering
    made.filters["random"] = repeatable_random
    # In YAML these return native values; in SQL, as in dbt, they leave text unchanged.
    made.filters.update(dict.fromkeys(("as_text", "as_native", "as_number", "as_bool"), lambda value: value))
    made.filters["is_list"] = lambda value: isinstance(value, list)
    return made
