"""Whether a query's tree, written as SQL, is the author's text again, so that Spark reads both alike.

Programs are made of trees. Where Spark builds a table, it is asked whether tree and text have one analyzed plan; where
it does not, they must have one sequence of tokens, but for words that mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.dialects import SPARK

_SILENT = frozenset({"AS", "INNER", "OUTER", "ASC"})
"""Words that Spark lets out or in with the same meaning."""
_SAME = {"!=": "<>", "==": "=", "integer": "int"}
"""Two spellings of one thing."""


def is_text_again(sql: str, tree: exp.Expr) -> bool:
    """Whether the text of the tree has the tokens of `sql`, in their order.

    >>> import sqlglot
    >>> def again(sql): return is_text_again(sql, sqlglot.parse_one(sql, dialect=SPARK))
    >>> again("select A b, 'x' from t join u on t.a = u.a -- of both"), again("select a from t where b = 1.50 or (c)")
    (True, True)
    >>> again("select at - interval 1 day 2 hours from t"), again("select array_size(null) != 1 from t")
    (False, True)
    """
    try:
        return list(_tokens(sql)) == list(_tokens(tree.sql(SPARK, comments=False)))
    except SqlglotError:
        return False


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """Kind and text of the tokens that mean something; a name may be quoted or not."""
    for token in SPARK.tokenize(sql):
        if token.token_type == TokenType.STRING:
            yield "text", token.text
        elif token.token_type not in (TokenType.SEMICOLON, TokenType.HINT) and token.text.upper() not in _SILENT:
            text = token.text.lower()
            yield "", _SAME.get(text, text)
