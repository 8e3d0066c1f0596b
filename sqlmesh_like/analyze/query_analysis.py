"""A rendered model → facts about its query. Owns parsing, error positions and the inlining of views.

`QueryFacts.relation` is None if the query can only be rebuilt in full; `unsupported_reason` then says why and where.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError

from sqlmesh_like.analyze.algebra.canonical_form import Forms, canonical_forms
from sqlmesh_like.analyze.algebra.column_pruning import prune_columns
from sqlmesh_like.analyze.algebra.contract_order import contract_order, in_order
from sqlmesh_like.analyze.algebra.relation import Aggregate, Relation, columns
from sqlmesh_like.analyze.algebra.relocate import relocate_positions
from sqlmesh_like.analyze.author_text import AuthorText, has_author_text, with_author_text
from sqlmesh_like.analyze.binding.binder import read_query
from sqlmesh_like.analyze.binding.from_clause import InputSchema
from sqlmesh_like.analyze.binding.scope import UnknownName, Unsupported, offset_of
from sqlmesh_like.analyze.binding.subqueries.in_values import reread_value
from sqlmesh_like.analyze.binding.table_brackets import without_table_brackets
from sqlmesh_like.analyze.column_names import known_names, name_all
from sqlmesh_like.analyze.cte_names import distinct_ctes
from sqlmesh_like.analyze.expressions.node_kinds import forms_of
from sqlmesh_like.analyze.expressions.synonyms import with_known_names
from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.analyze.illegal_clauses import first_misplaced
from sqlmesh_like.analyze.name_resolution import ColumnsOf
from sqlmesh_like.analyze.nesting import brackets_are_shallow, is_shallow, too_deep
from sqlmesh_like.analyze.pushdown import push_down_filters
from sqlmesh_like.analyze.python_inputs import python_query
from sqlmesh_like.analyze.refusals.repeated_arguments import refuse_uncertain
from sqlmesh_like.analyze.refused_forms import first_refused
from sqlmesh_like.analyze.star_columns import with_star_columns
from sqlmesh_like.analyze.syntax_errors import syntax_fault
from sqlmesh_like.analyze.text_fidelity import is_read_as_written, is_text_again
from sqlmesh_like.analyze.window_aliases import with_window_aliases
from sqlmesh_like.analyze.word_columns import with_word_columns
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, SqlError, as_sql_error
from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import InputRef, PythonCode, RenderedModel
from sqlmesh_like.render.table_inputs import tables_read

_OPENING = {"'": "quote", '"': "quote", "`": "quote", "/*": "comment"}
_WORD = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/|/\*|[^'"`/-]+|.""", re.DOTALL)

CARRIED_FACTS = frozenset({
    exp.Select, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Having, exp.Table, exp.TableAlias,
    exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.And, exp.Or,
    exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.Add, exp.Sub,
    exp.Mul, exp.Neg, exp.Case, exp.If, exp.Coalesce, *(kind for kind, known in AGGREGATES.items() if known.merge),
})  # fmt: skip
"""Node classes that sqlglot can always generate for Spark: a query of only these needs no trial generation."""
# sqlglot logs a warning for statements that it parses only as a `Command`; `parse` reports them as an error.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


@dataclass(frozen=True)
class UnsupportedReason:
    """Why a query is not in the algebra: rule id, message, and 1-based line and column in the model's own file."""

    rule: str
    message: str
    line: int | None
    column: int | None


@dataclass(frozen=True)
class QueryFacts:
    """What analysis knows about a model. `tree` reads only tables, as views are inlined; `inputs` are those tables.

    `own_tree` reads the views (None: the query of no author); `views` are theirs.
    """

    model: RenderedModel
    tree: exp.Expr
    inputs: tuple[InputRef, ...]
    relation: Relation | None
    unsupported_reason: UnsupportedReason | None
    own_tree: exp.Expr | None = None
    views: tuple[QueryFacts, ...] = ()

    @cached_property
    def is_text_again(self) -> bool:
        """Whether the author's texts, of the model and of the views that it reads, are those of their trees.

        A tree of which Spark gets no text (`* except`, an alias within a window) has more than the author's: it is the
        one that the text is read as, before, that must have its tokens.
        """
        own, sql = self.own_tree, self.model.sql
        is_own = own is not None and (
            is_text_again(sql, own) or (not has_author_text(self.tree) and is_read_as_written(sql))
        )
        return is_own and all(view.is_text_again for view in self.views)

    @cached_property
    def pruned(self) -> Relation | None:
        """The relation without columns that nothing reads."""
        return prune_columns(self.relation) if self.relation is not None else None

    @cached_property
    def forms(self) -> Forms:
        """What the relation means, without how it is written."""
        return canonical_forms(self.pruned) if self.pruned is not None else Forms()

    @cached_property
    def schema(self) -> Schema | None:
        """Visible output columns, None if they are not known; for a Python model, those that its contract declares."""
        if self.model.python is not None and self.model.has_contract:
            return self.model.declared or None
        return columns(self.relation) if self.relation is not None else None

    def position(self, offset: int | None, keyword: str = "") -> tuple[int | None, int | None]:
        """1-based line and column in the model's file of an offset in the compiled SQL, or of the keyword before it."""
        offset = _start(self.model.sql, offset, keyword) if offset is not None else None
        return self.model.source_map.locate(offset) if offset is not None else (None, None)


def analyze(model: RenderedModel, schemas: Mapping[str, Schema | None], views: Mapping[str, QueryFacts]) -> QueryFacts:
    """Facts of one model. `schemas`: visible columns by input id (None: not known yet); `views`: facts of view models.

    Raises SqlError with file:line:column for text that is not a single SELECT or that names an unknown column.
    """
    if model.python is not None:
        return _python_facts(model, model.python, views)
    tree = parse(model)
    has_names = model.unique_id.kind not in ("test", "question")  # their columns need none
    if not has_names:
        has_names = not name_all(tree, as_written=model.unique_id.kind == "question")
    by_table = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref for ref in model.inputs}
    columns_of = _names_by_table(by_table, schemas, views)
    try:
        written = with_star_columns(tree, columns_of)
    except UnknownName as unknown:
        raise SqlError(unknown.message, location=locate(model, unknown.offset), hint=unknown.hint) from None
    is_written, worded = written is not tree, with_word_columns(written, columns_of)
    aliased = tree.copy() if tree.find(exp.Window) else None
    is_worded, tree = is_written or worded is not tree, with_window_aliases(worded, columns_of)
    names = () if has_names else known_names(tree)
    is_as_written = names is not None and not is_worded and (aliased is None or aliased == tree)
    relation, unsupported_reason = None, None
    try:
        is_stored = model.config.materialized not in ("view", "ephemeral")
        _require_shown_alone(tree, is_stored=is_stored)
        relation = push_down_filters(read_query(tree, lambda table: _lookup(table, by_table, schemas, views)))
    except Unsupported as unsupported:
        location = locate(model, _start(model.sql, unsupported.offset, unsupported.keyword))
        unsupported_reason = UnsupportedReason(unsupported.rule, unsupported.message, location.line, location.column)
    except UnknownName as unknown:
        raise SqlError(unknown.message, location=locate(model, unknown.offset), hint=unknown.hint) from None
    query, order = tree, contract_order(model)
    if order:
        tree, relation = in_order(tree, relation, order)
    inlined, inputs = _inline_views(tree, model.inputs, by_table, views)
    if is_as_written:
        read_views = {key: views[ref.unique_id].tree for key, ref in by_table.items() if ref.unique_id in views}
        text = AuthorText(model.sql, inlined, read_views, columns=names or (), order=order if tree is not query else ())
        inlined = with_author_text(inlined, text)
    return QueryFacts(
        model, inlined, inputs, _with_tolerance(relation, model.config.floating), unsupported_reason,
        tree, tuple(views[ref.unique_id] for ref in by_table.values() if ref.unique_id in views),
    )  # fmt: skip


def _with_tolerance(relation: Relation | None, tolerance: float | None) -> Relation | None:
    """The relation with the tolerance of its groups' floating sums, if nothing is computed on these."""
    if tolerance is None or not isinstance(relation, Aggregate):
        return relation
    return replace(relation, calls=tuple(replace(call, tolerance=tolerance) for call in relation.calls))


def _require_shown_alone(tree: exp.Expr, *, is_stored: bool) -> None:
    if (value := reread_value(tree, is_stored=is_stored)) is not None:
        message = "IN of a query as a value that Spark may compute again where it is read"
        raise Unsupported("QRY005", message, value)


def _python_facts(model: RenderedModel, python: PythonCode, views: Mapping[str, QueryFacts]) -> QueryFacts:
    """Facts about a Python model: its inputs are known, what it computes from them is not."""
    by_table = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref for ref in model.inputs}
    tree, inputs = _inline_views(python_query(model, python), model.inputs, by_table, views)
    place = python.function
    blocker = UnsupportedReason(
        "PYT001", f"the function of {model.name} is run over all rows", place.line, place.column
    )
    return QueryFacts(model, tree, inputs, None, blocker)


def parse(model: RenderedModel) -> exp.Expr:
    """The one SELECT of a model as a sqlglot tree. Raises SqlError, also for an error in its template."""
    if model.error is not None:
        raise as_sql_error(model.error)
    if not brackets_are_shallow(model.sql):
        raise too_deep(model.path)
    try:
        statements = [statement for statement in sqlglot.parse(model.sql, dialect=SPARK) if statement is not None]
    except ParseError as error:
        fault = syntax_fault(model.sql, error)
        raise SqlError(fault.message, location=locate(model, fault.offset), hint=fault.hint) from None
    except TokenError as error:
        raise _unclosed_error(model, error) from None
    except RecursionError:
        raise too_deep(model.path) from None
    if not all(map(is_shallow, statements)):
        raise too_deep(model.path)
    if not statements:
        raise SqlError("the model is empty", location=Location(model.path, 1, 1), hint="write one SELECT")
    if len(statements) > 1:
        place = locate(model, _second_statement(model))
        raise SqlError("a model is one SELECT; a second statement starts here", location=place)
    if not isinstance(statements[0], exp.Query):
        kind = sqlglot.tokenize(model.sql, dialect=SPARK)[0].text.upper()
        raise SqlError(f"a model is one SELECT; this is {kind}", location=Location(model.path, 1, 1))
    refused = first_refused(statements[0])
    statements[0] = without_table_brackets(with_known_names(statements[0]))
    if misplaced := first_misplaced(statements[0]) or refused:
        offset = offset_of(misplaced.node)
        if offset is None:  # a node for which the parser records no position
            offset = max(0, model.sql.lower().find(misplaced.node.sql(SPARK).lower()))
        raise SqlError(misplaced.message, location=locate(model, offset), hint=misplaced.hint)
    _require_faithful(statements[0], model)
    refuse_uncertain(model.source_map.repeated, model.path)
    return statements[0]


def _require_faithful(tree: exp.Expr, model: RenderedModel) -> None:
    """Raise SqlError for a construct that sqlglot cannot reproduce: the SQL that runs is generated from the tree."""
    if forms_of(tree) <= CARRIED_FACTS:
        return
    for within in tree.find_all(exp.WithinGroup):
        if not isinstance(within.this, exp.PercentileCont | exp.PercentileDisc):
            message = f"{within.this.key.upper()} … WITHIN GROUP is not Spark SQL"
            raise SqlError(message, location=locate(model, offset_of(within)), hint="use percentile(value, fraction)")
    try:
        tree.sql(SPARK, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        culprit = _unfaithful(tree)
        offset = next((at for node in culprit.walk() if (at := offset_of(node)) is not None), None)
        raise SqlError(
            f"the query cannot be carried over unchanged: {str(error).splitlines()[0]}",
            location=Location(model.path, 1, 1) if offset is None else locate(model, offset),
            hint="rewrite it with another function",
        ) from None


def _unfaithful(tree: exp.Expr) -> exp.Expr:
    """The innermost part that sqlglot cannot reproduce."""
    for part in tree.iter_expressions():
        try:
            part.sql(SPARK, unsupported_level=ErrorLevel.RAISE)
        except UnsupportedError:
            return _unfaithful(part)
    return tree


def _unclosed_error(model: RenderedModel, error: TokenError) -> SqlError:
    """The error for text that cannot be tokenized: a quote or a comment that is never closed."""
    for word in _WORD.finditer(model.sql):
        if word[0] in _OPENING:
            return SqlError(
                f"invalid SQL: this {_OPENING[word[0]]} is never closed", location=locate(model, word.start())
            )
    return SqlError(f"invalid SQL: {error}", location=Location(model.path, 1, 1))


def _second_statement(model: RenderedModel) -> int:
    """Offset of the first token after the first statement and its semicolon."""
    tokens = sqlglot.tokenize(model.sql, dialect=SPARK)
    ends = [n for n, token in enumerate(tokens[:-1]) if token.token_type == TokenType.SEMICOLON]
    return next((tokens[n + 1].start for n in ends if tokens[n + 1].token_type != TokenType.SEMICOLON), 0)


def locate(model: RenderedModel, offset: int | None) -> Location:
    """The location in the model's own file of an offset in its compiled SQL."""
    if offset is None:
        return Location(model.path)
    return Location(model.path, *model.source_map.locate(offset))


def _start(sql: str, offset: int | None, keyword: str) -> int | None:
    """Where a construct starts: at the last `keyword` before `offset`, whose position sqlglot does not record."""
    words = re.escape(keyword)
    if not words or not words[0].isalpha():
        return offset
    before = r"(?:\b(?:natural|left|right|full|inner|cross|outer|semi|anti)\s+)*" if words == "JOIN" else ""
    offsets = [match.start() for match in re.finditer(rf"{before}\b{words}\b", sql[:offset], re.IGNORECASE)]
    return offsets[-1] if offsets else offset


def _names_by_table(
    by_table: Mapping[tuple[str, str], InputRef],
    schemas: Mapping[str, Schema | None],
    views: Mapping[str, QueryFacts],
) -> ColumnsOf:
    def names(schema: str, identifier: str) -> tuple[str, ...] | None:
        ref = by_table.get((schema.lower(), identifier.lower()))
        view = views.get(ref.unique_id) if ref else None
        known = view.schema if view else schemas.get(ref.unique_id) if ref else None
        return tuple(column.name for column in known) if known else None

    return names


def _lookup(
    table: exp.Table,
    by_table: Mapping[tuple[str, str], InputRef],
    schemas: Mapping[str, Schema | None],
    views: Mapping[str, QueryFacts],
) -> InputSchema | Relation | None:
    ref = by_table.get((table.db.lower(), table.name.lower()))
    if ref is None:
        return None
    view = views.get(ref.unique_id)
    if view is None:
        return InputSchema(ref.unique_id, schemas.get(ref.unique_id))
    if view.relation is None and view.unsupported_reason is not None:
        raise Unsupported(
            view.unsupported_reason.rule, f"{view.unsupported_reason.message} in the view {ref.table}", table
        )
    return relocate_positions(view.relation, offset_of(table)) if view.relation is not None else None


def _inline_views(
    tree: exp.Expr,
    inputs: tuple[InputRef, ...],
    by_table: Mapping[tuple[str, str], InputRef],
    views: Mapping[str, QueryFacts],
) -> tuple[exp.Expr, tuple[InputRef, ...]]:
    used = tables_read(inputs, {unique_id: view.inputs for unique_id, view in views.items()})

    def inline(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Table):
            return node
        ref = by_table.get((node.db.lower(), node.name.lower()))
        view = views.get(ref.unique_id) if ref else None
        if view is None:
            return node
        alias = exp.TableAlias(this=exp.to_identifier(node.alias or node.name))
        # Joins in parentheses are those of their first table.
        joins = [join.transform(inline) for join in node.args.get("joins") or []]
        return exp.Subquery(this=view.tree.copy(), alias=alias, joins=joins)

    return distinct_ctes(tree.transform(inline)) if views else tree, used
