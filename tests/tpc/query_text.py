"""A query's text → a model's text. Owns names for the columns of its result, and how its tables are written.

Nothing else of the text changes: positions in the lines that are not edited are those of the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import Token, TokenType, exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from tests.tpc.tables import Table

SPARK = Dialect.get_or_raise("spark")


@dataclass(frozen=True, order=True)
class Edit:
    """The characters from `start` to before `stop` become `text`."""

    start: int
    stop: int
    text: str


def model_text(sql: str, tables: Mapping[str, Table], relation: Callable[[str], str]) -> str:
    """The query with a plain name of its own for each column of its result, and `relation(name)` for each table's name.

    A query qualifies columns by names of tables: the last part of a relation's name must be the table's.
    Raises ValueError for a table that is not declared, and for a query whose columns it cannot name.
    """
    named = _with_named_columns(_with_plain_names(sql), tables)
    return _edited(named, _relation_edits(_parsed(named), tables, relation))


def without_limit(sql: str) -> str | None:
    """The query without the LIMIT at its end; None where there is none.

    >>> without_limit("select a from t limit 10")
    'select a from t'
    """
    tokens = SPARK.tokenize(sql)
    if [token.token_type for token in tokens[-2:]] != [TokenType.LIMIT, TokenType.NUMBER]:
        return None
    return sql[: tokens[-2].start].rstrip()


def _with_plain_names(sql: str) -> str:
    """Plain names for such as `31 - 60 days `: Avro, and with it Hudi, has no others."""
    tokens = SPARK.tokenize(sql)
    names = _Names(tokens)
    plain: dict[str, str] = {}
    edits = []
    for token in tokens:
        if token.token_type is TokenType.IDENTIFIER and not token.text.isidentifier():
            key = token.text.lower()
            if key not in plain:
                words = "_".join(re.findall(r"[a-z0-9]+", key))
                plain[key] = names.unused(f"column_{words}" if words[:1].isdigit() else words)
            edits.append(Edit(token.start, token.end + 1, plain[key]))
    return _edited(sql, edits)


def _with_named_columns(sql: str, tables: Mapping[str, Table]) -> str:
    """An alias for each column of the result that has no name or that of one before it."""
    tree, tokens = _parsed(sql), SPARK.tokenize(sql)
    names, items = _Names(tokens), _select_list(tokens)
    if any(column.is_star for column in tree.selects):
        return _edited(sql, _star_edits(tree, items, tables, names))
    edits = []
    for column, item, alias in zip(tree.selects, items, _aliases(tree.selects, names), strict=True):
        last = item[-1]
        if alias and isinstance(column, exp.Alias):
            edits.append(Edit(last.start, last.end + 1, alias))
        elif alias:
            edits.append(Edit(last.end + 1, last.end + 1, f" AS {alias}"))
    return _edited(sql, edits)


def _star_edits(
    tree: exp.Query, items: Sequence[Sequence[Token]], tables: Mapping[str, Table], names: _Names
) -> Iterator[Edit]:
    """`*` is written out where two of its columns have the same name."""
    schema: dict[str, object] = {name: dict(table.columns) for name, table in tables.items()}
    qualified = qualify(tree, dialect=SPARK, schema=schema, quote_identifiers=False, validate_qualify_columns=False)
    assert isinstance(qualified, exp.Query)
    aliases = _aliases(qualified.selects, names)
    if not any(aliases):
        return
    columns = [column.unalias() for column in qualified.selects]
    if len(items) > 1 or any(column.is_star or not isinstance(column, exp.Column) for column in columns):
        raise ValueError("two columns of * have the same name, and not all columns are known")
    (star,) = items[0]
    pairs = zip((column.sql(SPARK) for column in columns), aliases, strict=True)
    yield Edit(star.start, star.end + 1, ", ".join(f"{sql} AS {alias}" if alias else sql for sql, alias in pairs))


def _aliases(columns: Sequence[exp.Expr], names: _Names) -> list[str | None]:
    """The alias that each column needs, None where it has a name of its own."""
    aliases: list[str | None] = []
    seen: set[str] = set()
    for number, column in enumerate(columns, 1):
        inner = column.unnest()
        name = inner.alias_or_name if isinstance(inner, exp.Alias | exp.Column) else ""
        is_its_own = bool(name) and name.lower() not in seen
        aliases.append(None if is_its_own else names.unused(name or f"column_{number}"))
        seen.add(name.lower())
    return aliases


def _relation_edits(tree: exp.Query, tables: Mapping[str, Table], relation: Callable[[str], str]) -> Iterator[Edit]:
    for scope in traverse_scope(tree):
        for table in scope.tables:
            if isinstance(scope.sources[table.alias_or_name], Scope):
                continue  # a CTE
            name = table.name.lower()
            if name not in tables:
                raise ValueError(f"{table.name} is neither a table of the suite nor a CTE")
            place = table.this.meta
            yield Edit(place["start"], place["end"] + 1, relation(name))


class _Names:
    """Hands out names that a query does not use yet: a new one can then hide none."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._taken = {token.text.lower() for token in tokens}

    def unused(self, wanted: str) -> str:
        candidates = (wanted if number == 1 else f"{wanted}_{number}" for number in count(1))
        unused_name = next(name for name in candidates if name.lower() not in self._taken)
        self._taken.add(unused_name.lower())
        return unused_name


def _parsed(sql: str) -> exp.Query:
    tree = parse_one(sql, dialect=SPARK)
    if not isinstance(tree, exp.Query):
        raise ValueError("not a query")
    return tree


def _edited(sql: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        sql = sql[: edit.start] + edit.text + sql[edit.stop :]
    return sql


def _select_list(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each item of the first SELECT that is in no CTE: its names are those of the result."""
    is_cte: list[bool] = []  # for each open parenthesis
    for position, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            is_cte.append(position > 0 and tokens[position - 1].token_type is TokenType.ALIAS)
        elif token.token_type is TokenType.R_PAREN:
            is_cte.pop()
        elif token.token_type is TokenType.SELECT and not any(is_cte):
            return _items(tokens[position + 1 :])
    raise ValueError("no SELECT")


def _items(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between commas up to FROM."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is TokenType.FROM:
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items
