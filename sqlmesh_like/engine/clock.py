"""The frozen clock of a run. Owns replacing clock functions by literals, so that one run has one now."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

_DATE_NAMES = {"CURDATE"}
_TIME_NAMES = {"NOW", "LOCALTIMESTAMP"}


def frozen(tree: exp.Expr, now: datetime) -> exp.Expr:
    """The tree with `current_date`, `current_timestamp` and `now()` as literals of the run's clock (UTC).

    >>> import sqlglot
    >>> frozen(sqlglot.parse_one("select current_date()", dialect="spark"), datetime(2024, 5, 1)).sql("spark")
    "SELECT CAST('2024-05-01' AS DATE)"
    """

    def freeze(node: exp.Expr) -> exp.Expr:
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.CurrentDate) or name in _DATE_NAMES:
            return exp.Cast(this=exp.Literal.string(now.strftime("%Y-%m-%d")), to=exp.DataType.build("date"))
        if isinstance(node, exp.CurrentTimestamp | exp.CurrentDatetime) or name in _TIME_NAMES:
            text = now.strftime("%Y-%m-%d %H:%M:%S.%f")
            return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("timestamp", dialect="spark"))
        return node

    return tree.copy().transform(freeze)
