"""Columns that have the name of a function which is called without brackets, such as `current_date`.

To Spark such a word is a column where there is one of that name, and the function elsewhere; sqlglot knows no columns
and reads the function. Source: `LiteralFunctionResolution` of Spark's analyzer.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlmesh_like.analyze.name_resolution import ColumnsOf, visible_columns

_WORDS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}
_NO_FUNCTIONS = (exp.SessionUser,)
"""Words that Spark 3.5 has no such function for: each is a column, or an error."""


def with_word_columns(tree: exp.Expr, columns_of: ColumnsOf) -> exp.Expr:
    """The tree, or a copy in which these words are columns where they are to Spark.

    >>> import sqlglot
    >>> from sqlmesh_like.dialects import SPARK
    >>> query = sqlglot.parse_one("select current_date, current_date() from t", dialect=SPARK)
    >>> with_word_columns(query, lambda *_: ("Current_Date",)).sql(SPARK)
    'SELECT `current_date`, CURRENT_DATE FROM t'
    """
    if not any(_is_word(node) for node in tree.find_all(*_WORDS)):
        return tree
    made = tree.copy()
    for scope, known in visible_columns(made, columns_of):
        names = {name.lower() for columns in known.values() for name in columns or ()} | set(_lateral_names(scope))
        for word in [node for node in scope.find_all(*_WORDS) if _is_word(node)]:
            name = _WORDS[type(word)]
            if _is_parameter(word, name):
                word.replace(exp.to_identifier(name, quoted=True))
            elif isinstance(word, _NO_FUNCTIONS) or name in names or _is_alias(word, scope, name):
                word.replace(exp.column(name, quoted=True))
    return made if made != tree else tree


def _is_word(node: exp.Expr) -> bool:
    """Whether a call has no brackets: the parser records the position of a name before a bracket."""
    return "start" not in node.meta and not node.args.get("this")


def _lateral_names(scope: Scope) -> Iterator[str]:
    for view in scope.expression.args.get("laterals") or ():
        alias = view.args.get("alias")
        yield from (column.name.lower() for column in (alias.columns if alias else ()))


def _is_parameter(word: exp.Expr, name: str) -> bool:
    function = word.find_ancestor(exp.Lambda, exp.Query)
    return isinstance(function, exp.Lambda) and any(each.name.lower() == name for each in function.expressions)


def _is_alias(word: exp.Expr, scope: Scope, name: str) -> bool:
    """Whether the word stands in ORDER BY or HAVING, which look at the aliases of the SELECT list before functions."""
    clause, query = word.find_ancestor(exp.Order, exp.Having, exp.Query), scope.expression
    is_of_query = isinstance(clause, exp.Order | exp.Having) and clause.parent is query
    return is_of_query and isinstance(query, exp.Select) and any(e.alias.lower() == name for e in query.expressions)
