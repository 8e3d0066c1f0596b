"""Whether a query's tree, written as SQL, is the author's text again, so that Spark reads both alike.

Programs are made of trees. Where Spark builds a table, it is asked whether tree and text have one analyzed plan; where
it does not, they must have one sequence of tokens, but for `token_spellings`: what Spark reads as one thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator
from sqlglot.transforms import any_to_exists, eliminate_distinct_on, preprocess, unnest_to_explode

from sqlmesh_like.analyze.token_spellings import one_spelling
from sqlmesh_like.dialects import SPARK, Write, generate_again


def _not_sql(self: Generator, node: exp.Not) -> str:
    """`NOT` after the first operand of a predicate, where most authors write it."""
    negated = node.this
    if not isinstance(negated, (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)):
        return self.not_sql(node)
    operand, text = self.sql(negated, "this"), self.sql(negated)
    rest = text.removeprefix(operand)
    if rest == text:
        return self.not_sql(node)
    return f"{operand} IS NOT{rest.removeprefix(' IS')}" if isinstance(negated, exp.Is) else f"{operand} NOT{rest}"


class _AsAuthorsWrite(type(SPARK)):  # type: ignore[misc]  # its class is that of the one dialect of authors
    generate = generate_again
    # Spark 3.5 has no QUALIFY: it is given a subquery instead, where the author wrote the clause.
    select = staticmethod(preprocess([eliminate_distinct_on, unnest_to_explode, any_to_exists]))
    writes: ClassVar[Mapping[type[exp.Expr], Write]] = {**SPARK.writes, exp.Not: _not_sql, exp.Select: select}


_AUTHORS = _AsAuthorsWrite()


def is_text_again(sql: str, tree: exp.Expr) -> bool:
    """Whether the text of the tree has the tokens of `sql`, in their order.

    >>> import sqlglot
    >>> def again(sql): return is_text_again(sql, sqlglot.parse_one(sql, dialect=SPARK))
    >>> again("select A b, 'x' from t join u on t.a = u.a -- of both"), again("select a from t where b = 1.50 or (c)")
    (True, True)
    >>> again("select int(a) from t where b is not null and c not in (1) order by substr(d, 1, 2) desc nulls last")
    True
    >>> again("select at - interval 1 day 2 hours from t"), again("select array_size(null) != 1 from t")
    (False, True)
    >>> again("select a from t qualify rank() over (order by b rows unbounded preceding) = 1")
    True
    >>> again("select a = b in (c) from t"), again("select a::int from t")
    (False, False)
    """
    try:
        return one_spelling(SPARK.tokenize(sql)) == one_spelling(SPARK.tokenize(tree.sql(_AUTHORS, comments=False)))
    except SqlglotError:
        return False


def is_read_as_written(sql: str) -> bool:
    """As `is_text_again`, of the tree that `sql` is read as, before what Spark lacks is written in other words."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=SPARK) if tree is not None]
    except SqlglotError:
        return False
    return len(trees) == 1 and is_text_again(sql, trees[0])
