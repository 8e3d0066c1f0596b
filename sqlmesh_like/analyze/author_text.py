"""The SQL that Spark runs for a query: its author's text, with other names for relations. Owns the edits of that text.

A tree that `analyze` returns carries the text it was read from. Where the tree is still the one of that text, Spark
gets the text: only names of tables, inlined views, calls that read the clock and GROUPING in HAVING are replaced, token
by token. Whatever else was changed in a tree is written from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

import sqlglot
from sqlglot import Token, TokenType, exp

from sqlmesh_like.analyze.expressions.clock import clock_calls, frozen, literal
from sqlmesh_like.analyze.expressions.grouping_bits import grouping_bits, grouping_calls
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import TableName
from sqlmesh_like.sql_text import spark_identifier

Bind = Callable[[str, str], str | None]
"""The name under which Spark knows a table, by schema and identifier in lower case; None for what is not a table."""

_KEY = "author_text"
_Edit = tuple[int, int, str]
"""Start, end (exclusive) and new text."""
_BARE_CLOCKS: Mapping[TokenType, type[exp.Func]] = {
    TokenType.CURRENT_DATE: exp.CurrentDate,
    TokenType.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
    TokenType.LOCALTIMESTAMP: exp.Localtimestamp,
}


class _Unplaced(Exception):
    """What has to be replaced cannot be found in the text."""


@dataclass(frozen=True)
class AuthorText:
    """A rendered query and the tree that analysis made of it.

    `views`: queries inlined for names of views, by schema and identifier in lower case. `bare`: the tables that names
    without a schema stand for. `columns`: names given to its columns from outside; `order`: those of a contract.
    """

    sql: str
    tree: exp.Expr
    views: Mapping[tuple[str, str], exp.Expr] = field(default_factory=dict)
    bare: Mapping[str, TableName] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # a copy of the tree is the same query


def with_author_text(tree: exp.Expr, text: AuthorText) -> exp.Expr:
    """The tree, which from now on carries this text."""
    tree.meta[_KEY] = text
    return tree


def has_author_text(tree: exp.Expr) -> bool:
    """Whether Spark is given the text of a query rather than what is written from its tree."""
    return _text_of(tree) is not None


def carry_author_text(tree: exp.Expr, original: exp.Expr, bare: Mapping[str, TableName]) -> exp.Expr:
    """A tree that differs from the original only in the full names of tables: it carries the same text."""
    text = _text_of(original)
    return tree if text is None else with_author_text(tree, replace(text, tree=tree, bare=bare))


def spark_sql(tree: exp.Expr, bind: Bind, now: datetime | None = None, *, from_tree: bool = False) -> str:
    """What Spark runs for a query. `now`: the time of its clock calls; `from_tree`: write all of it from the tree.

    >>> query = "select a  from ods.t -- all of them"
    >>> tree = sqlglot.parse_one(query, dialect="spark")
    >>> tree = with_author_text(tree, AuthorText(query, tree))
    >>> spark_sql(tree, lambda schema, name: "v" if schema == "ods" else None)
    'select a  from `v` AS `t`'
    """

    def bind_node(node: exp.Expr) -> exp.Expr:
        if not from_tree and (text := _text_of(node)) is not None:
            try:
                return exp.Var(this=_author_sql(text, bind, now))
            except _Unplaced:
                return node
        if isinstance(node, exp.Table) and (name := bind(node.db.lower(), node.name.lower())) is not None:
            bound = _rename_table(node, name)  # joins in parentheses are those of their first table
            bound.set("joins", [join.transform(bind_node) for join in node.args.get("joins") or []])
            return bound
        return node

    whole = tree.transform(bind_node)
    for call in list(grouping_calls(whole)):
        if (bits := grouping_bits(call)) is not None:
            call.replace(bits)
    return (whole if now is None else frozen(whole, now)).sql(SPARK)


def _rename_table(node: exp.Table, name: str) -> exp.Table:
    """The table under another name; its old one stays valid for columns."""
    bound = node.copy()
    if not bound.args.get("alias"):
        bound.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
    bound.set("this", exp.to_identifier(name, quoted=True))
    bound.set("db", None)
    bound.set("catalog", None)
    return bound


def _text_of(node: exp.Expr) -> AuthorText | None:
    """The text of a query whose tree is still that of the text."""
    text = node.meta.get(_KEY) if isinstance(node, exp.Query) and node.meta else None
    return text if isinstance(text, AuthorText) and (node is text.tree or node == text.tree) else None


def _author_sql(text: AuthorText, bind: Bind, now: datetime | None) -> str:
    tokens = sqlglot.tokenize(text.sql, dialect=SPARK)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    tree = next(statement for statement in sqlglot.parse(text.sql, dialect=SPARK) if statement is not None)
    if tree.find(exp.Qualify) is not None:
        raise _Unplaced  # Spark 3.5 has no QUALIFY: its tree is written as a subquery
    edits = [*_names(text, tree, tokens, bind, now), *_groupings(tree, tokens)]
    if now is not None:
        edits += _clocks(tree, tokens, now)
    sql = _apply_edits(text.sql[: tokens[-1].end + 1], edits)
    if text.columns:
        sql = f"SELECT * FROM ({sql}) AS _sml_named({', '.join(map(spark_identifier, text.columns))})"
    if text.order:
        sql = f"SELECT {', '.join(map(spark_identifier, text.order))} FROM ({sql}) AS _sml_contract"
    return sql


def _apply_edits(sql: str, edits: list[_Edit]) -> str:
    """
    >>> _apply_edits("select a from t", [(14, 15, "u"), (7, 8, "b")])
    'select b from u'
    """
    parts, at = [], 0
    for start, end, new in sorted(edits):
        if start < at:
            raise _Unplaced
        parts += [sql[at:start], new]
        at = end
    return "".join([*parts, sql[at:]])


def _names(text: AuthorText, tree: exp.Expr, tokens: list[Token], bind: Bind, now: datetime | None) -> Iterator[_Edit]:
    """Edits for the names of tables and views, and for columns that are qualified by a schema."""
    known: set[tuple[str, str]] = set()
    for table in tree.find_all(exp.Table):
        key = (table.db.lower(), table.name.lower())
        new = _relation(text, key, bind, now)
        if new is None:
            continue
        start, end = _span([table.args.get("catalog"), table.args.get("db"), table.this])
        yield start, end, new
        if not table.args.get("alias"):
            known.add(key)
            after = _after_sample(tokens, end)
            yield after, after, f" AS {spark_identifier(table.name)}"
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and (column.text("db").lower(), column.table.lower()) in known:
            start, _ = _span([column.args.get("catalog"), column.args["db"]])
            yield start, _span([column.args["table"]])[0], ""


def _relation(text: AuthorText, key: tuple[str, str], bind: Bind, now: datetime | None) -> str | None:
    if (view := text.views.get(key)) is not None:
        return f"({spark_sql(view, bind, now)})"
    full = None if key[0] else text.bare.get(key[1])
    name = bind(*key) if full is None else bind(full.schema.lower(), full.identifier.lower())
    return None if name is None else spark_identifier(name)


def _span(parts: list[exp.Expr | None]) -> tuple[int, int]:
    """Where a name of several parts starts and ends (exclusive)."""
    meta = [part.meta for part in parts if part is not None]
    if not all("start" in each for each in meta):
        raise _Unplaced
    return min(each["start"] for each in meta), max(each["end"] for each in meta) + 1


def _after_sample(tokens: list[Token], end: int) -> int:
    """Where the alias of a table belongs whose name ends here: behind TABLESAMPLE (…) and REPEATABLE (…)."""
    index = next((n for n, token in enumerate(tokens) if token.start >= end), len(tokens))
    while index < len(tokens) and tokens[index].text.upper() in ("TABLESAMPLE", "REPEATABLE"):
        index = _closing(tokens, index + 1) + 1
    return end if index == 0 else tokens[index - 1].end + 1


def _closing(tokens: list[Token], opening: int) -> int:
    """Index of the bracket that closes the one at this index."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return index
    raise _Unplaced


def _groupings(tree: exp.Expr, tokens: list[Token]) -> Iterator[_Edit]:
    """Edits for GROUPING and GROUPING_ID in HAVING."""
    for call in grouping_calls(tree):
        if (bits := grouping_bits(call)) is not None:
            index = _index_of(tokens, call)
            yield tokens[index].start, tokens[_closing(tokens, index + 1)].end + 1, bits.sql(SPARK)


def _index_of(tokens: list[Token], call: exp.Expr) -> int:
    return next(n for n, token in enumerate(tokens) if token.start == call.meta["start"])


def _clocks(tree: exp.Expr, tokens: list[Token], now: datetime) -> list[_Edit]:
    """Edits for the calls that read the clock, which all runs of a query see at the same time."""
    calls = clock_calls(tree)
    placed = [call for call in calls if "start" in call.meta]
    edits: list[_Edit] = []
    for call in placed:
        index = _index_of(tokens, call)
        last = _closing(tokens, index + 1) if _is(tokens, index + 1, TokenType.L_PAREN) else index
        edits.append((tokens[index].start, tokens[last].end + 1, literal(call, now).sql(SPARK)))
    # Without brackets they are words that a column or an alias may be named by: the tree says how many are calls.
    words = [n for n, token in enumerate(tokens) if token.token_type in _BARE_CLOCKS and _is_bare(tokens, n)]
    kinds = [_BARE_CLOCKS[tokens[index].token_type] for index in words]
    if sorted(map(repr, kinds)) != sorted(repr(type(call)) for call in calls if "start" not in call.meta):
        raise _Unplaced
    for index, kind in zip(words, kinds, strict=True):
        edits.append((tokens[index].start, tokens[index].end + 1, literal(kind(), now).sql(SPARK)))
    return edits


def _is_bare(tokens: list[Token], index: int) -> bool:
    is_name = _is(tokens, index - 1, TokenType.DOT, TokenType.ALIAS) or _is(tokens, index + 1, TokenType.DOT)
    return not is_name and not _is(tokens, index + 1, TokenType.L_PAREN)


def _is(tokens: list[Token], index: int, *kinds: TokenType) -> bool:
    return 0 <= index < len(tokens) and tokens[index].token_type in kinds
