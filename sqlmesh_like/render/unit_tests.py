"""Unit tests after Jinja. Owns what `input:` names and that the model reads it; `run` reads the rows."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlmesh_like.errors import JinjaError, Location, ProjectError
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import has_jinja
from sqlmesh_like.project.testing.unit_test_spec import ChangedInput, Fixture, GivenInput, UnitTestFile
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.overrides import Overrides, overrides_of
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import ChangedRows, GivenRows, InputRef, RenderedModel, RenderedUnitTest

_CALL = re.compile(r"\s*(?:\{\{)?\s*(ref|source)\s*(\(.*\))\s*(?:\}\})?\s*", re.DOTALL)
_THIS = re.compile(r"\s*(?:\{\{)?\s*this\s*(?:\}\})?\s*")
RenderTested = Callable[[str, Overrides], RenderedModel]
"""Renders the model of this name with overrides of its macros and variables."""
RenderFixture = Callable[[str, str, Overrides], RenderedModel]
"""Renders the SQL of a fixture's template, given with the path of its file."""


def render_unit_tests(
    tests: Iterable[UnitTestFile],
    models: Iterable[RenderedModel],
    registry: RelationRegistry,
    render_tested: RenderTested,
    render_fixture: RenderFixture,
    project: str,
) -> tuple[RenderedUnitTest, ...]:
    """The unit tests of enabled models. Raises ProjectError or JinjaError with file, line and column.

    A broken one of a package is left out with a warning: the user cannot fix it. `project` is the root's name.
    """
    by_id: dict[str, RenderedModel] = {model.unique_id: model for model in models}
    names = {model.name for model in by_id.values()}
    rendered: list[RenderedUnitTest] = []
    for test in tests:
        if test.model in names:
            try:
                rendered.append(_Rendering(test, by_id, registry, render_tested, render_fixture).render())
            except ProjectError as error:
                if test.unique_id.package == project:
                    raise
                warn(error.location or test.declared_at, f"unit test {test.name!r} is left out: {error.message}")
    return tuple(rendered)


@dataclass(frozen=True)
class _Rendering:
    """One unit test against the models and tables of its project."""

    test: UnitTestFile
    models: Mapping[str, RenderedModel]
    registry: RelationRegistry
    render_tested: RenderTested
    render_fixture: RenderFixture

    def render(self) -> RenderedUnitTest:
        test = self.test
        own = next(model for model in self.models.values() if model.name == test.model)
        if own.error is not None:
            return self._of_broken(own)
        model = self._render_tested_model()
        if model.python is not None:
            message = f"unit test {test.name!r} is of {test.model!r}, a Python model: as in dbt these have none"
            hint = "test its functions by pytest, or the SQL models around it"
            raise ProjectError(message, location=test.declared_at, hint=hint)
        given = [self._given_rows(entry, model) for entry in test.given]
        changes = [self._changed_rows(entry, model) for entry in test.changes]
        _refuse_twice([(entry.ref, entry.location) for entry in given], "given")
        _refuse_twice([(entry.ref, entry.location) for entry in changes], "changes")
        entries = [(entry.ref, entry.location) for entry in given]
        entries += [(entry.ref, entry.location) for entry in changes]
        named = {ref.unique_id for ref, _ in entries}
        if model.unique_id in named:
            this = InputRef(model.unique_id, model.table, "model", model.declared)
            model = replace(model, inputs=(*model.inputs, this))
        inputs, views = self._tables_and_views(model, named)
        self._refuse_unread(entries, inputs, model)
        return RenderedUnitTest(
            unique_id=test.unique_id,
            name=test.name,
            path=test.path,
            description=test.description,
            model=model,
            views=views,
            inputs=inputs,
            given=tuple(given),
            changes=tuple(changes),
            expect=self._fixture(test.expect),
            declared_at=test.declared_at,
            overrides=test.overrides,
            now=_moment(test),
            tags=test.tags,
            config=test.config,
        )

    def _of_broken(self, model: RenderedModel) -> RenderedUnitTest:
        """The unit test of a model whose template is broken: it fails with that error, whatever its rows."""
        test = self.test
        return RenderedUnitTest(
            test.unique_id, test.name, test.path, test.description, model, (), (), (), (), test.expect,
            test.declared_at, test.overrides, None, test.tags, test.config,
        )  # fmt: skip

    def _fixture(self, fixture: Fixture) -> Fixture:
        """The fixture with its SQL rendered, which is a template, as in dbt."""
        if fixture.format != "sql" or fixture.text is None or not has_jinja(fixture.text):
            return fixture
        rendered = self.render_fixture(fixture.text, fixture.path, overrides_of(self.test.overrides))
        return replace(fixture, text=rendered.sql, template=fixture.text if rendered.asks_lake else None)

    def _render_tested_model(self) -> RenderedModel:
        try:
            return self.render_tested(self.test.model, overrides_of(self.test.overrides))
        except JinjaError as error:
            hint = f"in unit test {self.test.name}, {self.test.declared_at}"
            shown = f"{error.hint}; {hint}" if error.hint else hint
            raise JinjaError(error.message, location=error.location or self.test.declared_at, hint=shown) from error

    def _given_rows(self, entry: GivenInput, model: RenderedModel) -> GivenRows:
        return GivenRows(self._find(entry.input, entry.location, model), self._fixture(entry.fixture), entry.location)

    def _changed_rows(self, entry: ChangedInput, model: RenderedModel) -> ChangedRows:
        ref = self._find(entry.input, entry.location, model)
        return ChangedRows(ref, entry.upsert, entry.delete, entry.key, entry.location)

    def _find(self, text: str, location: Location, model: RenderedModel) -> InputRef:
        if _THIS.fullmatch(text):
            return InputRef(model.unique_id, model.table, "model", model.declared)
        call = _CALL.fullmatch(text)
        names = _names(call[2]) if call else None
        if call is None or names is None:
            hint = "write ref('model'), source('source', 'table') or this"
            raise ProjectError(f"input {text!r} names nothing", location=location, hint=hint)
        try:
            if call[1] == "ref":
                return self.registry.ref(*names)
            if len(names) != 2:
                raise ProjectError("source takes a source and a table", location=location)
            return self.registry.source(*names)
        except TemplateFault as fault:
            raise ProjectError(fault.message, location=location, hint=fault.hint) from fault

    def _tables_and_views(
        self, model: RenderedModel, named: Collection[str]
    ) -> tuple[tuple[InputRef, ...], tuple[RenderedModel, ...]]:
        """Inputs that get rows, and views that get none, whose own query is run, each after the views it reads."""
        tables: dict[str, InputRef] = {}
        views: dict[str, RenderedModel] = {}

        def visit(reader: RenderedModel) -> None:
            for ref in reader.inputs:
                view = self.models.get(ref.unique_id)
                if ref.unique_id in named:
                    tables[ref.unique_id] = ref
                elif view is not None and view.config.materialized in ("view", "ephemeral"):
                    visit(view)
                    views[ref.unique_id] = view
                else:
                    raise self._missing(ref)

        visit(model)
        return tuple(tables.values()), tuple(views.values())

    def _missing(self, ref: InputRef) -> ProjectError:
        hint = f"add to given: `- input: {jinja_call(ref)}` with its rows; `rows: []` where it is empty"
        message = f"unit test {self.test.name!r} has no rows for {jinja_call(ref)}, which {self.test.model} reads"
        return ProjectError(message, location=self.test.declared_at, hint=hint)

    def _refuse_unread(
        self, entries: Iterable[tuple[InputRef, Location]], inputs: tuple[InputRef, ...], model: RenderedModel
    ) -> None:
        read = {ref.unique_id for ref in inputs}
        for ref, location in entries:
            if ref.unique_id not in read:
                hint = f"it reads {', '.join(jinja_call(input_ref) for input_ref in inputs) or 'nothing'}"
                raise ProjectError(f"{model.name} does not read {jinja_call(ref)}", location=location, hint=hint)


def jinja_call(ref: InputRef) -> str:
    """An input as a template names it.

    >>> from sqlmesh_like.names import NodeId, TableName
    >>> jinja_call(InputRef(NodeId("source", "p", "shop", "user"), TableName("ods", "user"), "source"))
    "source('shop', 'user')"
    """
    parts = ref.unique_id.parts
    return f"source('{parts[-2]}', '{parts[-1]}')" if ref.kind == "source" else f"ref('{parts[-1]}')"


def _names(text: str) -> tuple[str, ...] | None:
    try:
        value: object = ast.literal_eval(text.strip().removesuffix(")") + ",)")
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, tuple) and all(isinstance(name, str) for name in value) else None


def _refuse_twice(entries: Iterable[tuple[InputRef, Location]], where: str) -> None:
    seen: dict[str, Location] = {}
    for ref, location in entries:
        if ref.unique_id in seen:
            hint = f"the first is at {seen[ref.unique_id]}"
            raise ProjectError(f"{jinja_call(ref)} is given twice in {where}", location=location, hint=hint)
        seen[ref.unique_id] = location


def _moment(test: UnitTestFile) -> datetime.datetime | None:
    if test.now is None:
        return None
    try:
        parsed = datetime.datetime.fromisoformat(test.now)
    except ValueError:
        hint = "e.g. now: '2024-05-01T00:00:00Z'"
        raise ProjectError(f"now {test.now!r} is not an ISO 8601 time", location=test.declared_at, hint=hint) from None
    return parsed.astimezone(datetime.UTC) if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)
