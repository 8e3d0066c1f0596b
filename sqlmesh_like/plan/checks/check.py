"""Models checked before anything runs. Owns finding every error that text and known columns show; no lake is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.argument_counts import first_miscounted
from sqlmesh_like.analyze.expressions.functions import first_random
from sqlmesh_like.analyze.expressions.gaps import first_gap
from sqlmesh_like.analyze.expressions.predicates import PredicateFault, read_predicate
from sqlmesh_like.analyze.functions.catalogue import all_functions
from sqlmesh_like.analyze.name_resolution import ColumnsOf, first_unresolved, foreign_tables, output_names
from sqlmesh_like.analyze.nesting import nesting_errors
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate, parse
from sqlmesh_like.analyze.syntax_errors import first_double_colon, first_odd_character
from sqlmesh_like.analyze.typed_literals import first_bad_literal
from sqlmesh_like.analyze.window_aliases import with_window_aliases
from sqlmesh_like.compiler import Compiler, declared_schema, with_versions
from sqlmesh_like.delta.snapshot import key_columns
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, SqlError, as_sql_error, nearest
from sqlmesh_like.names import Column, NodeId, Schema, python_function_of
from sqlmesh_like.plan.checks.checked_models import CheckedModels
from sqlmesh_like.plan.checks.column_names import column_places, refuse_unnamed, refuse_unstorable
from sqlmesh_like.plan.checks.comparison_types import type_family, type_warnings
from sqlmesh_like.plan.checks.config_place import config_place
from sqlmesh_like.plan.checks.contracts import refuse_breach, refuse_incomplete
from sqlmesh_like.plan.checks.refused_operands import refuse_operands
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.plan.checks.written_types import WrittenTypes
from sqlmesh_like.plan.frozen.declared import declared_partitions
from sqlmesh_like.render.rendered import PythonCode, RenderedModel, RenderedTest

_CALLED = re.compile(r"\b(\w+)\s*\(")
_JOINED_TEXTS = re.compile(r"\b(listagg|string_agg|group_concat)\s*\(", re.IGNORECASE)
_HIDDEN_CALL = re.compile(r"(`|\*/|--[^\n]*\n)\s*\(")
_WORDS = "all as by except from having in intersect join on or over select then union using when where with within"
_BRANCH = "#incremental"
_OF_TEMPLATES = frozenset({"ref", "source", "var", "env_var", "config"})
_OF_ONE_COLUMN = (("macro.dbt.test_not_null",), ("macro.dbt.test_unique",))
_SPARK_FUNCTIONS = frozenset(function.name for function in all_functions())
_BEFORE_BRACKETS = _SPARK_FUNCTIONS | frozenset(_WORDS.split())
_COMMA_TOO_MANY = "leave the comma out, or add what it is meant to separate"


def check_models(
    models: Sequence[RenderedModel],
    schemas: Mapping[str, Schema | None],
    *,
    has_catalog: bool = False,
    has_functions: bool = False,
    for_spark: bool = True,
    tests: Sequence[tuple[RenderedTest, RenderedModel]] = (),
) -> CheckedModels:
    """Check models given in dependency order. Warnings are about types that Spark converts implicitly.

    `schemas`: known columns, by unique id, of tables that are not among the models. With a catalog a query may name
    tables that are not ref() or source(); `has_functions`: functions other than Spark's own may exist. Not `for_spark`:
    DuckDB may compute what Spark does not read. `tests` are data tests, each with its query as a view.
    """
    check = _Check(schemas, has_catalog, has_functions or has_catalog, for_spark)
    errors: dict[str, SqlError] = {model.unique_id: error for model in models if (error := check.error_in(model))}
    errors |= {test[0].unique_id: error for test in tests if (error := check.error_of_test(test))}
    run = _run_ephemerals(models, [view for _test, view in tests]) if errors else frozenset()
    harmless: dict[str, SqlError] = {
        model.unique_id: errors.pop(model.unique_id)
        for model in models
        if model.config.materialized == "ephemeral" and model.unique_id in errors.keys() - run
    }
    return CheckedModels(errors, tuple(check.warnings), harmless)


def _run_ephemerals(models: Sequence[RenderedModel], tests: Sequence[RenderedModel]) -> frozenset[str]:
    """Unique ids of the ephemeral models whose SQL becomes part of another model or of a test."""
    ephemeral = {model.unique_id: model for model in models if model.config.materialized == "ephemeral"}
    waiting = [model for model in (*models, *tests) if model.unique_id not in ephemeral]
    run: set[str] = set()
    while waiting:
        read = {ref.unique_id for ref in waiting.pop().inputs} & ephemeral.keys() - run
        run |= read
        waiting += [ephemeral[unique_id] for unique_id in read]
    return frozenset(run)


class _Check:
    """Compiles models one after the other and remembers the columns of each."""

    def __init__(
        self, schemas: Mapping[str, Schema | None], has_catalog: bool, has_functions: bool, for_spark: bool
    ) -> None:
        self._has_catalog = has_catalog
        self._for_spark = for_spark
        self._has_functions = has_functions
        self._schemas: dict[str, Schema | None] = dict(schemas)
        self._stored = dict(schemas)
        self._compiler = Compiler(self._schemas, inlines=False)
        self._random: dict[str, str] = {}
        self.warnings: list[TypeWarning] = []

    def error_in(self, model: RenderedModel) -> SqlError | None:
        """The model's first error. Models that read a broken one are checked as far as its columns are known."""
        self._schemas.pop(model.unique_id, None)
        if model.asks_lake:  # its text is known only at run time
            return None
        try:
            with nesting_errors(model.path):
                refuse_incomplete(model)
                if model.python is not None:
                    self._check_python(model, model.python)
                    return None
                facts = self._check_query(model)
                self._check_config(facts.model)
                refuse_unstorable(facts, self._schemas.get(model.unique_id))
                shown = self._output_schema(facts)
                declared_partitions(facts, shown)
                refuse_breach(model, shown, column_places(facts) if model.has_contract else None)
                if model.branch is not None:
                    self._check_branch(model.branch, shown)
        except SqlError as error:
            return error
        return None

    def _check_python(self, model: RenderedModel, python: PythonCode) -> None:
        """Check a Python model without running its code, so its columns are known only from a contract."""
        refuse_untrusted(model, python)
        self._schemas[model.unique_id] = self._compiler.compile(model).facts.schema
        self._check_config(model)

    def error_of_test(self, pair: tuple[RenderedTest, RenderedModel]) -> SqlError | None:
        """The first error of a data test; that of a generic test is located at its declaration."""
        test, view = pair
        if test.error is not None:
            return as_sql_error(test.error)
        if self._is_sure(test):
            return None
        error = None if test.asks_lake else self.error_in(view)
        if error is None or test.test_type == "singular":
            return error
        message = f"data test {test.name}: {error.message}"
        return SqlError(message, location=test.declared_at or Location(test.path, 1), hint=error.hint)

    def _is_sure(self, test: RenderedTest) -> bool:
        """Whether this is dbt's `not_null` or `unique` on an existing column.

        Such a test has no errors, and a project may have thousands of them.
        """
        if test.macros not in _OF_ONE_COLUMN or test.config.get("where") or len(test.inputs) != 1:
            return False
        name = (test.column_name or "").lower()
        return any(column.name.lower() == name for column in self._compiler.columns(test.inputs[0]) or ())

    def _check_query(self, model: RenderedModel) -> QueryFacts:
        if not self._has_functions:
            _refuse_unknown_functions(model)
        if odd := first_odd_character(model.sql):
            raise SqlError(odd.message, location=locate(model, odd.offset), hint=odd.hint)
        facts = self._compiler.compile(model).facts
        if not (self._has_functions or model.config.pre_hook) and (miscounted := first_miscounted(model.sql)):
            place, refused = locate(model, miscounted[0]), "Spark refuses a call with another number of them"
            raise SqlError(miscounted[1], location=place, hint=refused)
        if self._for_spark and (colons := first_double_colon(model.sql)) is not None:
            message = "Spark 3.5 does not read `::`"
            raise SqlError(message, location=locate(model, colons), hint="write cast(… as type)")
        if gap := first_gap(model.sql):
            offset, message = gap
            hint = _COMMA_TOO_MANY if message.endswith("after a comma") else None
            raise SqlError(f"invalid SQL: {message}", location=locate(model, offset), hint=hint)
        if bad := first_bad_literal(model.sql):
            raise SqlError(bad[1], location=locate(model, bad[0]), hint="Spark refuses it before it reads a row")
        self._refuse_chance(facts)
        self._look_at_types(facts)
        written = WrittenTypes.of(facts, self._compiler.columns) if facts.relation is None else None
        refuse_operands(facts, written)
        self._resolve(facts, written)
        return facts

    def _refuse_chance(self, facts: QueryFacts) -> None:
        """Refuse nondeterministic functions, also those of views that the query reads, under `refresh: strict`."""
        model = facts.model
        random_call = first_random(facts.tree)
        below = next((self._random[ref.unique_id] for ref in model.inputs if ref.unique_id in self._random), None)
        if random_call is None and below is None:
            return
        text = random_call.sql(SPARK) if random_call is not None else str(below)
        if model.config.materialized in ("view", "ephemeral"):
            self._random[model.unique_id] = text
        if model.config.refresh == "strict":
            message = f"FUN002 {text} is not deterministic, which refresh: strict forbids"
            hint = "compute it upstream, or set refresh: auto, which rebuilds the table whenever an input changed"
            raise SqlError(
                message, location=locate(model, offset_of(random_call) if random_call is not None else None), hint=hint
            )

    def _look_at_types(self, facts: QueryFacts) -> None:
        for mismatch in type_warnings(facts, self._compiler.columns):
            if mismatch.is_refused:
                hint = "cast one side: Spark has no common type for them"
                raise SqlError(mismatch.message, location=mismatch.location, hint=hint)
            self.warnings.append(mismatch)

    def _output_schema(self, facts: QueryFacts) -> Schema | None:
        """Columns of the query; a type that cannot be derived is that of the stored table."""
        known = facts.schema or self._schemas.get(facts.model.unique_id)
        stored = {column.name.lower(): column.type for column in self._stored.get(facts.model.unique_id) or ()}
        return known and tuple(Column(c.name, c.type or stored.get(c.name.lower())) for c in known)

    def _check_branch(self, branch: RenderedModel, shown: Schema | None) -> None:
        """Check the query where is_incremental() is true: it may read its own table and must return all its columns.

        With `append_new_columns` a missing column is NULL in new rows, as in dbt.
        """
        _check_predicates(branch)
        this = replace(branch, unique_id=NodeId.parse(f"{branch.unique_id}{_BRANCH}"))
        self._schemas[branch.unique_id] = shown
        this_schema = self._output_schema(self._check_query(this))
        have = {column.name.lower(): column.type for column in this_schema or ()}
        for column in shown or () if this_schema else ():
            if column.name.lower() not in have and branch.config.on_schema_change == "append_new_columns":
                continue
            if column.name.lower() not in have:
                message = f"where is_incremental() is true the query has no column {column.name!r}"
                raise SqlError(message, location=Location(branch.path, 1, 1), hint=f"its columns: {', '.join(have)}")
            here, before = type_family(have[column.name.lower()]), type_family(column.type)
            if here and before and here != before:
                message = f"the column {column.name!r} is {before}, and {here} where is_incremental() is true"
                raise SqlError(message, location=Location(branch.path, 1, 1), hint="cast it, so that both agree")

    def _resolve(self, facts: QueryFacts, written: WrittenTypes | None) -> None:
        """Resolve the names of a query that is not in the algebra; in a derived relation they are resolved already."""
        if facts.relation is not None:
            self._schemas[facts.model.unique_id] = with_versions(facts.model, facts.schema)
            return
        model, tree, columns_of = facts.model, parse(facts.model), self._columns_of(facts.model)
        if not self._has_catalog:
            refuse_foreign_tables(model, tree)
        if unresolved := first_unresolved(with_window_aliases(tree, columns_of), columns_of):
            raise SqlError(unresolved.message, location=locate(model, offset_of(unresolved.node)), hint=unresolved.hint)
        refuse_unnamed(model, tree)
        shown = _output_columns(output_names(facts.tree, columns_of), written)
        self._schemas[model.unique_id] = with_versions(model, shown)

    def _columns_of(self, model: RenderedModel) -> ColumnsOf:
        by_table = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref for ref in model.inputs}

        def columns_of(schema: str, identifier: str) -> tuple[str, ...] | None:
            ref = by_table.get((schema.lower(), identifier.lower()))
            known = (self._schemas.get(ref.unique_id) or declared_schema(ref)) if ref else None
            return tuple(column.name for column in known) if known else None

        return columns_of

    def _check_config(self, model: RenderedModel) -> None:
        known = self._schemas.get(model.unique_id)
        names = [column.name for column in known or ()]
        for key, given in _named_columns(model):
            for name in given if names else ():
                if name.lower() not in (known_name.lower() for known_name in names):
                    hint = nearest(name, names) or f"its columns: {', '.join(names)}"
                    raise SqlError(
                        f"{key} names {name!r}, which is not one of its columns",
                        location=config_place(model, key),
                        hint=hint,
                    )


def _output_columns(names: Sequence[str] | None, written: WrittenTypes | None) -> Schema | None:
    """Columns of a query that is not in the algebra, with types where they are proven."""
    outputs = (written.outputs() if written is not None else None) or []
    lowered = [name.lower() for name, _ in outputs]
    if names and ([name.lower() for name in names] != lowered or len(set(lowered)) < len(lowered)):
        return tuple(map(Column, names))
    return tuple(Column(name, type_) for name, type_ in outputs) or None


def refuse_untrusted(model: RenderedModel, python: PythonCode) -> None:
    """Raise SqlError for the Python model of a package whose code the root project has not allowed to run."""
    if not python.is_allowed:
        package = model.unique_id.package
        message = f"a Python model of the package {package!r}, whose code is not run unless your project says so"
        hint = f"read it, then write in your settings  flags: {{python_model_packages: [{package}]}}  or disable it"
        raise SqlError(message, location=python.function, hint=hint)


def _refuse_unknown_functions(model: RenderedModel) -> None:
    if model.config.pre_hook or _names_known_functions_only(model.sql):  # a hook may create functions
        return
    tree = parse(model)
    if tree.find(exp.GroupConcat) and (joined := _JOINED_TEXTS.search(model.sql)):  # names that are the parser's own
        hint = "Spark 3.5 has none: write array_join(sort_array(collect_list(…)), ',')"
        place = locate(model, joined.start())
        raise SqlError(f"unknown function {joined[1].lower()!r}", location=place, hint=hint)
    for call in tree.find_all(exp.Anonymous):
        is_known = call.name.lower() in _SPARK_FUNCTIONS or python_function_of(call.name) is not None
        if not is_known and not isinstance(call.parent, exp.Dot):
            raise SqlError(
                f"unknown function {call.name!r}", location=locate(model, offset_of(call)), hint=_function_hint(call)
            )


def _function_hint(call: exp.Anonymous) -> str:
    if call.name.lower() in _OF_TEMPLATES:  # the braces of the template were forgotten
        return f"write {{{{ {call.name}({', '.join(part.sql(SPARK) for part in call.expressions)}) }}}}"
    return nearest(call.name.lower(), _SPARK_FUNCTIONS) or "Spark's own functions can be used"


def _names_known_functions_only(sql: str) -> bool:
    """Whether every name before a parenthesis is known: if so, the text need not be parsed to look for functions."""
    called = {name.lower() for name in _CALLED.findall(sql)}
    return called <= _BEFORE_BRACKETS and not _HIDDEN_CALL.search(sql)


def refuse_foreign_tables(model: RenderedModel, tree: exp.Expr) -> None:
    """Raise SqlError at the first table of a query that is not a ref() or source(): it may be the name of a file."""
    known = {(ref.table.schema.lower(), ref.table.identifier.lower()) for ref in model.inputs}
    for table in foreign_tables(tree, known):
        name = table.name
        hint = f"write {{{{ ref('{name}') }}}}, or declare a source and write {{{{ source('…', '{name}') }}}}"
        message = f"the table {table.sql(SPARK, comments=False)} is not a ref() or source()"
        raise SqlError(message, location=locate(model, offset_of(table)), hint=hint)


def _check_predicates(branch: RenderedModel) -> None:
    """Refuse invalid `incremental_predicates`.

    They limit the rows that `merge` and `delete+insert` touch; the other strategies do not match rows.
    """
    predicates, strategy = branch.config.incremental_predicates, branch.author_strategy
    if not predicates or strategy is None:
        return
    place = config_place(branch, "incremental_predicates")
    if strategy not in ("merge", "delete+insert"):
        raise SqlError(f"incremental_predicates have no meaning with {strategy}", location=place, hint="leave them out")
    for text in predicates:
        try:
            read_predicate(text, strategy, str)
        except PredicateFault as fault:
            raise SqlError(str(fault), location=place, hint="e.g. \"DBT_INTERNAL_DEST.day > '2024-01-01'\"") from fault


def _named_columns(model: RenderedModel) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Settings that name columns of the query, with those names."""
    config, snapshot = model.config, model.config.snapshot
    partitions = ("partition_by", config.partition_by)
    if snapshot is None:
        return partitions, ("unique_key", config.unique_key)
    moment = () if snapshot.updated_at is None else (snapshot.updated_at,)
    keys = tuple(name for part in snapshot.unique_key for name in key_columns(part))
    return partitions, ("unique_key", keys), ("updated_at", moment), ("check_cols", snapshot.check or ())
