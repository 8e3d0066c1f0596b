"""Queries as DuckDB's SQL, where every value is Spark's to the last digit. Owns the proof: form by form, with types.

A delta program has few forms: columns, equalities, counts, exact sums, record keys. On these the two engines agree, or
can be made to agree: a quotient of decimals is computed in whole numbers, a date plus days stays a date. A form that is
not listed here is not proven, and Spark computes it. Where it depends on values (an overflow that wraps or is NULL in
Spark, a year of five digits in a text), DuckDB fails instead of continuing, and Spark computes that query as well.

Invariants of each expression: DuckDB's type is of the same kind as Spark's, and a decimal has the same scale. Doubles
are never negative zero, which Spark treats as zero in comparisons and grouping: relations contain none, and no
operation here produces one. Sums of doubles depend on the order of their rows in either engine.
Spark's rules: https://spark.apache.org/docs/3.5.7/sql-ref-ansi-compliance.html (with ANSI mode off).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.expressions.types import DOUBLE_DIGITS, averages_doubles
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.dialect import CASED_ALIKE, duck_text
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.names import Column, Schema

SETUP = (
    "CREATE MACRO _sml_unscaled(x) AS CAST(replace(CAST(x AS VARCHAR), '.', '') AS HUGEINT)",
    # Half up, away from zero. For a divisor of at least `bound`, Spark's own rounding to 38 digits could matter.
    "CREATE MACRO _sml_quotient(a, b, factor, bound) AS CASE WHEN abs(b) < bound THEN sign(a) * sign(b) *"
    " ((abs(a) * factor * 2 + abs(b)) // (2 * abs(b))) ELSE CAST('too large: ' || CAST(b AS VARCHAR) AS HUGEINT) END",
)
"""Statements to run on a connection before it runs such SQL."""

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Integer types, with the precision of the decimal as which Spark treats each."""
_FLOATS = ("float", "double")
_OTHERS = ("string", "date", "timestamp", "boolean")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}([.]\d{1,6})?)?")
_MOST_DIGITS = 38
_LEAST_SCALE = 6
_DATE_LETTERS = frozenset("YmdHMS")
_NULL = "null"

Relations = Callable[[exp.Table], Schema]
"""Returns the columns of a table in a query."""


class Unproven(Exception):
    """A form, or its use with these types, that DuckDB is not known to compute as Spark does."""


@dataclass(frozen=True)
class ExactQuery:
    """A query in DuckDB's dialect, and the columns that it yields with their Spark types."""

    sql: str
    columns: Schema


def exact(query: exp.Query, relations: Relations) -> ExactQuery:
    """The query (changed in place) for DuckDB. Raises Unproven."""
    holder = exp.Subquery(this=query)
    columns = _Proof(relations).query(query, None)
    made = holder.this.transform(without_zone, copy=False)
    return ExactQuery(duck_text(made, is_exact=True), tuple(Column(name, type_) for name, type_ in columns))


_Columns = Sequence[tuple[str, str]]
"""Names and Spark types."""


@dataclass(frozen=True)
class _Scope:
    """The columns that names in one SELECT refer to."""

    sources: Mapping[str, _Columns]
    outer: _Scope | None

    def type_of(self, column: exp.Column) -> str:
        name, alias = column.name.lower(), column.table.lower()
        if alias in self.sources or not alias:
            wanted = [self.sources[alias]] if alias else list(self.sources.values())
            types = [type_ for columns in wanted for known, type_ in columns if known.lower() == name]
            if len(types) == 1:
                return types[0]
            if len(types) > 1:
                raise Unproven(f"the column {name} is of several tables")
        if self.outer is None:
            raise Unproven(f"no column {name}")
        return self.outer.type_of(column)


class _Proof:
    """Types of a query, bottom up; forms that DuckDB needs written differently are replaced in place."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._ctes: dict[str, _Columns] = {}

    def query(self, query: exp.Expr, outer: _Scope | None) -> _Columns:
        if type(query) is exp.Subquery and not query.args.get("with_"):
            return self.query(query.this, outer)
        names = self._add_ctes(query)
        if type(query) is exp.Union:
            columns = self._union(query, outer)
        elif type(query) is exp.Select:
            columns = self._select(query, outer)
        else:
            raise Unproven(f"form {query.key.upper()}")
        for name in names:
            del self._ctes[name]
        return columns

    def _add_ctes(self, query: exp.Expr) -> list[str]:
        """Add the columns of a WITH clause; return its names, of which none may hide another."""
        clause = query.args.get("with_")
        if clause is None:
            return []
        _require_only(clause, "expressions")
        for cte in clause.expressions:
            _require_only(cte, "this", "alias")
            if _names_columns(cte) or cte.alias.lower() in self._ctes:
                raise Unproven("a WITH clause that names columns or reuses a name")
            self._ctes[cte.alias.lower()] = self.query(cte.this, None)
        return [cte.alias.lower() for cte in clause.expressions]

    def _union(self, union: exp.Union, outer: _Scope | None) -> _Columns:
        _require_only(union, "this", "expression", "distinct", "with_")
        left, right = self.query(union.this, outer), self.query(union.expression, outer)
        if len(left) != len(right):
            raise Unproven("a union of other widths")
        entries = [(name, _same(one, other)) for (name, one), (_, other) in zip(left, right, strict=True)]
        if union.args.get("distinct"):
            _require_hashed(type_ for _, type_ in entries)
        return entries

    def _select(self, select: exp.Select, outer: _Scope | None) -> _Columns:
        _require_only(select, "with_", "expressions", "from_", "joins", "where", "group", "having", "distinct")
        sources: dict[str, _Columns] = {}
        scope = _Scope(sources, outer)
        start = select.args.get("from_")
        if start is not None:
            self._add_source(start.this, sources, outer)
        for join in select.args.get("joins") or ():
            self._join(join, sources, scope)
        for clause in ("where", "having"):
            if arguments := select.args.get(clause):
                self._condition(arguments.this, scope)
        if group := select.args.get("group"):
            _require_only(group, "expressions")
            if any(not isinstance(item, exp.Column) for item in group.expressions):
                raise Unproven("GROUP BY other than columns")
            _require_hashed(self.type(item, scope) for item in group.expressions)
        shown = [column for item in list(select.expressions) for column in self._items(item, scope)]
        if distinct := select.args.get("distinct"):
            _require_only(distinct)
            _require_hashed(type_ for _, type_ in shown)
        return shown

    def _add_source(self, source: exp.Expr, sources: dict[str, _Columns], outer: _Scope | None) -> None:
        match source:
            case exp.Table():
                _require_only(source, "this", "db", "alias")
                named = None if source.db else self._ctes.get(source.name.lower())
                columns: _Columns = named or [(c.name, c.type or "") for c in self._relations(source)]
                alias = source.alias or source.name
            case exp.Subquery():
                _require_only(source, "this", "alias")
                columns, alias = self.query(source.this, outer), source.alias
            case _:
                raise Unproven(f"form {source.key.upper()}")
        if alias.lower() in sources or _names_columns(source):
            raise Unproven("names of columns beside a table")
        sources[alias.lower()] = columns

    def _join(self, join: exp.Join, sources: dict[str, _Columns], scope: _Scope) -> None:
        _require_only(join, "this", "on", "side", "kind")
        if join.kind.upper() not in ("", "INNER", "CROSS", "OUTER") or join.side.upper() not in (
            "", "LEFT", "RIGHT", "FULL",
        ):  # fmt: skip
            raise Unproven(f"{join.side} {join.kind} JOIN")
        self._add_source(join.this, sources, scope.outer)
        if on := join.args.get("on"):
            self._condition(on, scope)

    def _items(self, item: exp.Expr, scope: _Scope) -> _Columns:
        if isinstance(item, exp.Star):
            _require_only(item)
            return [column for columns in scope.sources.values() for column in columns]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            return scope.sources[item.table.lower()]
        value = item.this if isinstance(item, exp.Alias) else item
        return [(item.alias_or_name, self.type(value, scope))]

    def _condition(self, condition: exp.Expr, scope: _Scope) -> None:
        if self.type(condition, scope) not in ("boolean", _NULL):
            raise Unproven("a condition that is not a boolean")

    def type(self, node: exp.Expr, scope: _Scope) -> str:
        """Spark's type of an expression."""
        match node:
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return "boolean"
            case exp.Null():
                return _NULL
        for forms, method in _METHODS:
            if type(node) in forms:
                return str(getattr(self, method)(node, scope))
        raise Unproven(f"{'function' if isinstance(node, exp.Func) else 'form'} {node.key.upper()}")

    def _column(self, node: exp.Column, scope: _Scope) -> str:
        result = scope.type_of(node)
        if result not in _INTEGERS and result not in _FLOATS and result not in _OTHERS and result != _NULL:
            _decimal(result)
        return result

    def _paren(self, node: exp.Paren, scope: _Scope) -> str:
        return self.type(node.this, scope)

    def _logical(self, node: exp.Expr, scope: _Scope) -> str:
        for part in (node.this, node.args.get("expression")):
            if part is not None:
                self._condition(part, scope)
        return "boolean"

    def _is(self, node: exp.Is, scope: _Scope) -> str:
        self.type(node.this, scope)
        if not isinstance(node.expression, exp.Null):
            raise Unproven("IS of other than NULL")
        return "boolean"

    def _equal(self, node: exp.Binary, scope: _Scope) -> str:
        return self._compared(node, scope, hashed=True)

    def _ordered(self, node: exp.Binary, scope: _Scope) -> str:
        return self._compared(node, scope, hashed=False)

    def _compared(self, node: exp.Binary, scope: _Scope, *, hashed: bool) -> str:
        left, right = self.type(node.this, scope), self.type(node.expression, scope)
        self._compare(node.this, left, node.expression, right)
        if hashed:
            _require_hashed((left, right))
        return "boolean"

    def _compare(self, one: exp.Expr, left: str, other: exp.Expr, right: str) -> None:
        """Raise Unproven unless both engines compare these types alike. A text compared with a date is cast to one."""
        if left == "string" and right in ("date", "timestamp"):
            return _text_as(one, right)
        if right == "string" and left in ("date", "timestamp"):
            return _text_as(other, left)
        if left == right or _NULL in (left, right):
            return None
        if "double" in (left, right) and _is_exact_double(left) and _is_exact_double(right):
            return None
        _wider(left, right)
        return None

    def _between(self, node: exp.Between, scope: _Scope) -> str:
        _require_only(node, "this", "low", "high")
        own = self.type(node.this, scope)
        for part in (node.args["low"], node.args["high"]):
            self._compare(node.this, own, part, self.type(part, scope))
        return "boolean"

    def _in(self, node: exp.In, scope: _Scope) -> str:
        _require_only(node, "this", "expressions", "query")
        own = self.type(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            columns = self.query(query, scope)
            types = [columns[0][1]] if len(columns) == 1 else []
            if types != [own]:
                raise Unproven("IN of other types")
        else:
            types = []
            for item in list(node.expressions):
                types.append(self.type(item, scope))
                self._compare(node.this, own, item, types[-1])
        _require_hashed((own, *types))
        return "boolean"

    def _exists(self, node: exp.Exists, scope: _Scope) -> str:
        self.query(node.this, scope)
        return "boolean"

    def _subquery(self, node: exp.Subquery, scope: _Scope) -> str:
        columns = self.query(node, scope)
        if len(columns) != 1:
            raise Unproven("a subquery of several columns")
        return columns[0][1]

    def _like(self, node: exp.Like, scope: _Scope) -> str:
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or "\\" in pattern.name or self.type(node.this, scope) != "string":
            raise Unproven("LIKE with a pattern that is computed or has a backslash")
        return "boolean"

    def _case(self, node: exp.Case, scope: _Scope) -> str:
        if node.this is not None:
            raise Unproven("CASE of a value")
        branches = node.args["ifs"]
        for branch in branches:
            self._condition(branch.this, scope)
        values = [branch.args["true"] for branch in branches]
        return self._unified(
            [*values, *([node.args["default"]] if node.args.get("default") is not None else [])], scope
        )

    def _if(self, node: exp.If, scope: _Scope) -> str:
        self._condition(node.this, scope)
        otherwise = node.args.get("false")
        return self._unified([node.args["true"], *([] if otherwise is None else [otherwise])], scope)

    def _coalesce(self, node: exp.Coalesce, scope: _Scope) -> str:
        return self._unified([node.this, *node.expressions], scope)

    def _extreme(self, node: exp.Greatest | exp.Least, scope: _Scope) -> str:
        types = {self.type(part, scope) for part in (node.this, *node.expressions)}
        if len(types) != 1 or types & {"float", _NULL}:
            raise Unproven("GREATEST or LEAST of other types")
        return types.pop()

    def _nullif(self, node: exp.Nullif, scope: _Scope) -> str:
        left, right = self.type(node.this, scope), self.type(node.expression, scope)
        if left != right:
            raise Unproven("NULLIF of other types")
        _require_hashed((left,))
        return left

    def _unified(self, values: Sequence[exp.Expr], scope: _Scope) -> str:
        result = _NULL
        for value in values:
            result = _wider(result, self.type(value, scope))
        return result

    def _cast(self, node: exp.Cast, scope: _Scope) -> str:
        wanted = _spark_type(node.to)
        if isinstance(node.this, exp.Literal) and node.this.is_string and wanted in ("date", "timestamp"):
            if not (_DATE if wanted == "date" else _MOMENT).fullmatch(node.this.name):
                raise Unproven(f"the {wanted} {node.this.name!r}")
            return wanted
        given = self.type(node.this, scope)
        if given in (wanted, _NULL):
            return wanted
        if wanted == "string":
            return self._text(node, given)
        if (given, wanted) in (("date", "timestamp"), ("timestamp", "date")):
            return wanted
        if wanted in _INTEGERS and _INTEGERS.get(given, 99) < _INTEGERS[wanted]:
            return wanted
        if wanted == "bigint" and given.startswith("decimal") and _decimal_scale(given) == 0:
            # If the value does not fit, Spark keeps its low-order bits: this cast fails, while TRY_CAST returns NULL.
            node.replace(_typed(node.this.copy(), wanted))
            return wanted
        if wanted.startswith("decimal") and given not in _FLOATS:
            _digits(given)
            return wanted
        if wanted.startswith("decimal") and given == "double":
            node.replace(_rounded_text(node.this, wanted))
            return wanted
        if wanted == "double" and given != "float":
            if not _is_exact_double(given):
                node.replace(_with_few_digits(node.this, node.copy(), _decimal_scale(given)))
            return wanted
        raise Unproven(f"a cast of {given} to {wanted}")

    def _text(self, node: exp.Cast, given: str) -> str:
        if given in ("date", "timestamp"):
            node.replace(_with_year_of_four_digits(node.this, node.copy()))
        elif given not in ("boolean", "string") and _decimal_scale(given) > _LEAST_SCALE:
            raise Unproven(f"the text of {given}")  # Java may write it with an exponent
        return "string"

    def _text_of(self, node: exp.Expr, scope: _Scope) -> None:
        if self.type(node, scope) != "string":
            raise Unproven(f"{node.key.upper()} of other than a text")

    def _concatenated(self, node: exp.DPipe, scope: _Scope) -> str:
        self._text_of(node.this, scope)
        self._text_of(node.expression, scope)
        return "string"

    def _length(self, node: exp.Length, scope: _Scope) -> str:
        _require_only(node, "this")
        self._text_of(node.this, scope)
        return _as_type(node, "int")

    def _in_case(self, node: exp.Upper | exp.Lower, scope: _Scope) -> str:
        self._text_of(node.this, scope)
        node.replace(_of_letters_alike(node.this, node.copy(), CASED_ALIKE[type(node)]))
        return "string"

    def _replace(self, node: exp.Replace, scope: _Scope) -> str:
        for part in (node.expression, node.args.get("replacement")):
            if not isinstance(part, exp.Literal) or (part is node.expression and not part.name):
                raise Unproven("REPLACE of other than a written text")
        self._text_of(node.this, scope)
        return "string"

    def _substring(self, node: exp.Substring, scope: _Scope) -> str:
        start, length = node.args.get("start"), node.args.get("length")
        for number in (start, length):
            if number is not None and not (isinstance(number, exp.Literal) and number.is_int):
                raise Unproven("SUBSTRING of other than written places")
        if start is None or int(start.name) < 1:
            raise Unproven("SUBSTRING from a position that is not a positive number")
        self._text_of(node.this, scope)
        return "string"

    def _part_of_date(self, node: exp.Func, scope: _Scope) -> str:
        if self.type(node.this, scope) not in ("date", "timestamp"):
            raise Unproven(f"{node.key.upper()} of other than a date")
        return _as_type(node, "int")

    def _to_date(self, node: exp.TsOrDsToDate, scope: _Scope) -> str:
        _require_only(node, "this")
        if self.type(node.this, scope) not in ("date", "timestamp"):
            raise Unproven("TO_DATE of other than a date")
        return "date"

    def _cut_date(self, node: exp.TimestampTrunc, scope: _Scope) -> str:
        if node.text("unit").upper() not in ("DAY", "MONTH", "YEAR", "HOUR", "QUARTER"):
            raise Unproven(f"DATE_TRUNC to {node.text('unit')}")
        if self.type(node.this, scope) not in ("date", "timestamp"):
            raise Unproven("DATE_TRUNC of other than a date")
        return "timestamp"

    def _formatted(self, node: exp.TimeToStr, scope: _Scope) -> str:
        form = node.args.get("format")
        specifiers = form.name.split("%")[1:] if isinstance(form, exp.Literal) else ["?"]
        if not all(part[:1] in _DATE_LETTERS for part in specifiers):
            raise Unproven("this pattern of DATE_FORMAT")
        if self.type(node.this, scope) not in ("date", "timestamp"):
            raise Unproven("DATE_FORMAT of other than a date")
        node.replace(_with_year_of_four_digits(node.this, node.copy()))
        return "string"

    def _days_between(self, node: exp.DateDiff, scope: _Scope) -> str:
        if node.args.get("unit") or {self.type(node.this, scope), self.type(node.expression, scope)} != {"date"}:
            raise Unproven("DATEDIFF of other than dates")
        return _as_type(node, "int")

    def _days_later(self, node: exp.TsOrDsAdd, scope: _Scope) -> str:
        unit = node.text("unit").upper() or "DAY"
        is_whole = self.type(node.expression, scope) in ("tinyint", "smallint", "int")
        if unit != "DAY" or not is_whole or self.type(node.this, scope) != "date":
            raise Unproven("DATE_ADD of other than days to a date")
        return "date"

    def _sum_or_difference(self, node: exp.Add | exp.Sub, scope: _Scope) -> str:
        left = self.type(node.this, scope)
        if isinstance(node.expression, exp.Interval):
            return _moved(node, left)
        right = self.type(node.expression, scope)
        if left in _INTEGERS and right in _INTEGERS:
            return _as_type(node, max(left, right, key=_INTEGERS.__getitem__))
        if "double" in (left, right):
            return _double(node, left, right)
        (one, s1), (other, s2) = (_digits_of(node.this, left), _digits_of(node.expression, right))
        digits = max(s1, s2) + max(one - s1, other - s2) + 1
        return _exact_decimal(digits, max(s1, s2))

    def _product(self, node: exp.Mul, scope: _Scope) -> str:
        left, right = self.type(node.this, scope), self.type(node.expression, scope)
        if left in _INTEGERS and right in _INTEGERS:
            return _as_type(node, max(left, right, key=_INTEGERS.__getitem__))
        if "double" in (left, right):
            return _double(node, left, right)
        (one, s1), (other, s2) = (_digits_of(node.this, left), _digits_of(node.expression, right))
        made = _bounded(one + other + 1, s1 + s2)
        if _decimal_scale(made) != s1 + s2:
            raise Unproven("a product that Spark rounds")
        return made

    def _quotient(self, node: exp.Div, scope: _Scope) -> str:
        left, right = self.type(node.this, scope), self.type(node.expression, scope)
        if "double" in (left, right) or (left in _INTEGERS and right in _INTEGERS):
            node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
            return _double(node, left, right)
        (one, s1), (other, s2) = (_digits_of(node.this, left), _digits_of(node.expression, right))
        scale = max(_LEAST_SCALE, s1 + other + 1)
        made = _bounded(one - s1 + s2 + scale, scale)
        node.replace(_divided(node.this, s1, node.expression, s2, made))
        return made

    def _remainder(self, node: exp.Mod, scope: _Scope) -> str:
        left, right = self.type(node.this, scope), self.type(node.expression, scope)
        if left != right or left not in _INTEGERS:
            raise Unproven("a remainder of other than whole numbers")
        node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
        return left

    def _negative(self, node: exp.Neg | exp.Abs, scope: _Scope) -> str:
        result = self.type(node.this, scope)
        if result == "double" and isinstance(node, exp.Neg):
            return _double(node, result, result)
        if result not in _INTEGERS and result != "double":
            _decimal(result)
        return result

    def _round(self, node: exp.Round, scope: _Scope) -> str:
        places = node.args.get("decimals")
        digits, scale = _decimal(self.type(node.this, scope))
        if places is not None and not (isinstance(places, exp.Literal) and places.is_int):
            raise Unproven("ROUND to computed digits")
        kept = int(places.name) if places is not None else 0
        if kept >= scale:
            raise Unproven("ROUND that keeps all digits")
        return _as_type(node, _exact_decimal(digits - scale + kept + 1, kept), of=node.this)

    def _count(self, node: exp.Count, scope: _Scope) -> str:
        counted = node.this
        if isinstance(counted, exp.Distinct):
            _require_only(counted, "expressions")
            if len(counted.expressions) != 1:
                raise Unproven("COUNT of several values")
            _require_hashed((self.type(counted.expressions[0], scope),))
        elif not isinstance(counted, exp.Star):
            self.type(counted, scope)
        if node.expressions:
            raise Unproven("COUNT of several values")
        return "bigint"

    def _count_if(self, node: exp.CountIf, scope: _Scope) -> str:
        self._condition(node.this, scope)
        return "bigint"

    def _summed(self, node: exp.Sum, scope: _Scope) -> str:
        given = self._argument(node.this, scope)
        if given == "double":
            return _double(node, given, given)
        if given in _INTEGERS:
            return _as_type(node, "bigint")
        digits, scale = _decimal(given)
        return _as_type(node, f"decimal({min(digits + 10, _MOST_DIGITS)},{scale})")

    def _average(self, node: exp.Avg, scope: _Scope) -> str:
        if isinstance(node.this, exp.Distinct):
            raise Unproven("AVG of distinct values")
        digits, scale = _decimal(self.type(node.this, scope))
        if averages_doubles(f"decimal({digits},{scale})") or digits + 10 > _MOST_DIGITS:
            raise Unproven(f"AVG of decimals of {digits} digits")
        made = f"decimal({digits + 4},{scale + 4})"
        total = _typed(exp.Sum(this=node.this.copy()), f"decimal({digits + 10},{scale})")
        node.replace(_divided(total, scale, exp.Count(this=node.this.copy()), 0, made))
        return made

    def _least_or_most(self, node: exp.Min | exp.Max, scope: _Scope) -> str:
        if node.expressions:
            raise Unproven("MIN or MAX of several values")
        argument = self._argument(node.this, scope)
        if argument == "float":
            raise Unproven(f"MIN or MAX of {argument}")
        return argument

    def _all_or_any(self, node: exp.Func, scope: _Scope) -> str:
        self._condition(node.this, scope)
        return "boolean"

    def _argument(self, value: exp.Expr, scope: _Scope) -> str:
        """The type of an aggregate's argument."""
        if not isinstance(value, exp.Distinct):
            return self.type(value, scope)
        _require_only(value, "expressions")
        entries = [self.type(each, scope) for each in value.expressions]
        _require_hashed(entries)
        if len(entries) != 1:
            raise Unproven("an aggregate of several distinct values")
        return entries[0]

    def _filtered(self, node: exp.Filter, scope: _Scope) -> str:
        self._condition(node.expression.this, scope)
        if isinstance(node.this, exp.Avg):
            raise Unproven("AVG with FILTER")
        inner = node.this
        result = self.type(inner, scope)
        if node.this is not inner:  # a cast must be outside the FILTER
            node.set("this", inner.copy())
            return _as_type(node, result)
        return result

    def _windowed(self, node: exp.Window, scope: _Scope) -> str:
        _require_only(node, "this", "partition_by", "order", "over")
        _require_hashed(self.type(part, scope) for part in node.args.get("partition_by") or ())
        order = node.args.get("order")
        if order is not None:
            for item in order.expressions:
                if self.type(item.this, scope) == "float":
                    raise Unproven("an order by floats")
        if isinstance(node.this, exp.RowNumber | exp.Rank | exp.DenseRank):
            return _as_type(node, "int")
        raise Unproven(f"the window of {node.this.key.upper()}")


_METHODS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Column,), "_column"), ((exp.Paren,), "_paren"), ((exp.And, exp.Or, exp.Not), "_logical"), ((exp.Is,), "_is"),
    ((exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ), "_equal"), ((exp.GT, exp.GTE, exp.LT, exp.LTE), "_ordered"),
    ((exp.Between,), "_between"), ((exp.In,), "_in"), ((exp.Exists,), "_exists"), ((exp.Subquery,), "_subquery"),
    ((exp.Like,), "_like"), ((exp.Case,), "_case"), ((exp.If,), "_if"), ((exp.Coalesce,), "_coalesce"),
    ((exp.Greatest, exp.Least), "_extreme"), ((exp.Nullif,), "_nullif"), ((exp.Cast, exp.TryCast), "_cast"),
    ((exp.DPipe,), "_concatenated"), ((exp.Length,), "_length"), ((exp.Replace,), "_replace"),
    ((exp.Upper, exp.Lower), "_in_case"), ((exp.Substring,), "_substring"),
    ((exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Quarter), "_part_of_date"),
    ((exp.TsOrDsToDate,), "_to_date"), ((exp.TimestampTrunc,), "_cut_date"), ((exp.TimeToStr,), "_formatted"),
    ((exp.DateDiff,), "_days_between"), ((exp.TsOrDsAdd,), "_days_later"),
    ((exp.Add, exp.Sub), "_sum_or_difference"), ((exp.Mul,), "_product"), ((exp.Div,), "_quotient"),
    ((exp.Mod,), "_remainder"), ((exp.Neg, exp.Abs), "_negative"), ((exp.Round,), "_round"),
    ((exp.Count,), "_count"), ((exp.CountIf,), "_count_if"), ((exp.Sum,), "_summed"), ((exp.Avg,), "_average"),
    ((exp.Min, exp.Max), "_least_or_most"), ((exp.LogicalAnd, exp.LogicalOr), "_all_or_any"),
    ((exp.Filter,), "_filtered"), ((exp.Window,), "_windowed"),
)  # fmt: skip


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    if node.is_int:
        size = len(node.name)
        if size > 18:
            raise Unproven("a number of more than 18 digits")
        return "int" if size <= 9 else "bigint"
    whole, dot, fraction = node.name.partition(".")
    if not dot or not (whole + fraction).isdigit():
        raise Unproven("a number with an exponent")
    return f"decimal({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"


def _names_columns(source: exp.Expr) -> bool:
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)


def _require_only(node: exp.Expr, *known: str) -> None:
    for name, value in node.args.items():
        if name not in known and value:
            raise Unproven(f"{name.strip('_').upper()} of {node.key.upper()}")


def _require_hashed(types: Iterable[str]) -> None:
    """Raise Unproven unless values of these types are equal in both engines alike, also as keys."""
    for result in types:
        if result == "float":
            raise Unproven(f"equality of {result}")


def _same(one: str, other: str) -> str:
    if one == other or other == _NULL:
        return one
    if one == _NULL:
        return other
    raise Unproven(f"a union of {one} and {other}")


def _wider(one: str, other: str) -> str:
    """The type that holds the values of both exactly. Raises Unproven."""
    if one == other or other == _NULL:
        return one
    if one == _NULL:
        return other
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.__getitem__)
    (p1, s1), (p2, s2) = _digits(one), _digits(other)
    return _exact_decimal(max(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def _decimal(type_: str) -> tuple[int, int]:
    match = _DECIMAL.fullmatch(type_)
    if not match:
        raise Unproven(f"a value of type {type_}")
    return int(match[1]), int(match[2])


def _digits(type_: str) -> tuple[int, int]:
    """Precision and scale of a decimal, or of the decimal as which Spark treats an integer type."""
    return (_INTEGERS[type_], 0) if type_ in _INTEGERS else _decimal(type_)


def _digits_of(node: exp.Expr, type_: str) -> tuple[int, int]:
    """As `_digits`; an integer literal has the precision of its digits."""
    value = node.this if isinstance(node, exp.Neg) else node
    is_written = isinstance(value, exp.Literal) and type_ in _INTEGERS
    return (len(value.name.lstrip("0")) or 1, 0) if is_written else _digits(type_)


def _decimal_scale(type_: str) -> int:
    return 0 if type_ in _INTEGERS else _decimal(type_)[1]


def _exact_decimal(digits: int, scale: int) -> str:
    if digits > _MOST_DIGITS:
        raise Unproven("a decimal that Spark cuts down")
    return f"decimal({digits},{scale})"


def _bounded(digits: int, scale: int) -> str:
    """Spark's type for a result of so many digits: if too many, the scale shrinks first (DecimalType.adjust…)."""
    if digits <= _MOST_DIGITS:
        return f"decimal({digits},{scale})"
    whole = digits - scale
    return f"decimal({_MOST_DIGITS},{max(_MOST_DIGITS - whole, min(scale, _LEAST_SCALE))})"


def _spark_type(type_: exp.DataType) -> str:
    text = type_.sql(SPARK).lower().replace(", ", ",")
    return {"integer": "int", "long": "bigint", "text": "string", "timestamp_ntz": "timestamp_ntz"}.get(text, text)


def _typed(node: exp.Expr, type_: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(type_, dialect="spark"))


def _as_type(node: exp.Expr, type_: str, of: exp.Expr | None = None) -> str:
    """Replace a node by a cast of itself (or of `of`), since DuckDB gives it another type; return the type."""
    node.replace(_typed((node if of is None else of).copy(), type_))
    return type_


def _is_exact_double(type_: str) -> bool:
    """Whether both engines convert each value to the same double: a decimal must have no more digits than it holds."""
    return type_ == "double" or type_ in _INTEGERS or _decimal(type_)[0] <= DOUBLE_DIGITS


def _double(node: exp.Expr, left: str, right: str) -> str:
    """Rewrite an operation on doubles so that it never returns negative zero."""
    if not (_is_exact_double(left) and _is_exact_double(right)):
        raise Unproven(f"doubles made of {left} and {right}")
    zero = exp.Cast(this=exp.Literal.number(0), to=exp.DataType.build("double"))
    node.replace(exp.Paren(this=exp.Add(this=exp.Paren(this=node.copy()), expression=zero)))
    return "double"


def _moved(node: exp.Add | exp.Sub, given: str) -> str:
    """Type of a date or timestamp plus a literal interval. DuckDB keeps a date only when adding a number of days."""
    interval = node.expression
    unit = interval.text("unit").upper().removesuffix("S")
    days = ("DAY", "MONTH", "YEAR")
    units = {"date": days, "timestamp": (*days, "HOUR", "MINUTE", "SECOND")}.get(given, ())
    if not isinstance(interval.this, exp.Literal) or not interval.this.name.isdigit() or unit not in units:
        raise Unproven(f"this interval beside a {given}")
    if given == "date" and unit == "DAY":
        node.set("expression", exp.Literal.number(interval.this.name))
    return _as_type(node, "date") if given == "date" else given


def _text_as(node: exp.Expr, type_: str) -> None:
    """Cast a text literal to the date or timestamp with which it is compared, as Spark does. Raises Unproven."""
    if not (isinstance(node, exp.Literal) and (_DATE if type_ == "date" else _MOMENT).fullmatch(node.name)):
        raise Unproven(f"a text beside a {type_}")
    node.replace(_typed(node.copy(), type_))


def _with_year_of_four_digits(value: exp.Expr, text: exp.Expr) -> exp.Expr:
    """The text of a date, failing for years of more than four digits, which have a sign in Spark."""
    low, high = (_typed(exp.Literal.string(moment), "timestamp") for moment in ("0001-01-01", "9999-12-31 23:59:59"))
    return _only_where(exp.Between(this=value.copy(), low=low, high=high), value, text, "string")


def _with_few_digits(value: exp.Expr, double: exp.Expr, scale: int) -> exp.Expr:
    """The double of a decimal, failing for more digits than a double holds, which the engines round differently."""
    if scale > DOUBLE_DIGITS:
        raise Unproven("a double of a decimal with a long fraction")
    most = exp.Literal.number(10 ** (DOUBLE_DIGITS - scale))
    few = exp.LT(this=exp.Abs(this=value.copy()), expression=most)
    return _only_where(few, value, double, "double")


def _rounded_text(double: exp.Expr, wanted: str) -> exp.Expr:
    """The decimal of a double: Spark rounds the shortest text that denotes it, DuckDB the number.

    Java 17 writes more digits than needed now and then; up to 15 digits of the result, none of 30 million sums, ties
    and neighbours of ties was rounded to another value. A double without such a text fails, and Spark computes it.
    """
    digits, scale = _decimal(wanted)
    if digits > DOUBLE_DIGITS:
        raise Unproven(f"a cast of double to {wanted}")
    widest = _typed(_typed(double.copy(), "string"), f"decimal({_MOST_DIGITS},{scale})")
    return exp.TryCast(this=widest, to=exp.DataType.build(wanted, dialect="spark"))


def _of_letters_alike(value: exp.Expr, changed: exp.Expr, pattern: str) -> exp.Expr:
    """A text in another case, failing for letters that the engines map differently."""
    plain = exp.Anonymous(this="regexp_full_match", expressions=[value.copy(), exp.Literal.string(pattern)])
    return _only_where(plain, value, changed, "string")


def _only_where(condition: exp.Expr, value: exp.Expr, result: exp.Expr, type_: str) -> exp.Expr:
    """The result if the condition holds or the value is NULL; otherwise the query fails and Spark computes it."""
    said = exp.DPipe(this=exp.Literal.string("not proven: "), expression=_typed(value.copy(), "string"), safe=True)
    failing = _typed(_typed(said, "boolean"), type_)
    is_null = exp.Is(this=value.copy(), expression=exp.Null())
    return exp.Case().when(exp.or_(is_null, condition), result).else_(failing)


def _divided(one: exp.Expr, s1: int, other: exp.Expr, s2: int, made: str) -> exp.Expr:
    """The quotient of decimals of these scales as a decimal, rounded half up; NULL if the divisor is 0."""
    digits, scale = _decimal(made)
    shift = scale + s2 - s1
    if shift < 0 or scale >= _MOST_DIGITS - 1:
        raise Unproven("a quotient of these scales")
    unscaled = [exp.Anonymous(this="_sml_unscaled", expressions=[value.copy()]) for value in (one, other)]
    unscaled[1] = exp.Anonymous(this="NULLIF", expressions=[unscaled[1], exp.Literal.number(0)])
    numbers = [_huge(10**shift), _huge(10 ** (_MOST_DIGITS - 1 - scale))]
    quotient = exp.Anonymous(this="_sml_quotient", expressions=[*unscaled, *numbers])
    unit = _typed(exp.Literal.string(f"{10**-scale:.{scale}f}"), f"decimal({scale},{scale})")
    product = exp.Mul(this=_typed(quotient, f"decimal({_MOST_DIGITS},0)"), expression=unit)
    return _typed(exp.Paren(this=product), f"decimal({digits},{scale})")


def _huge(number: int) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(str(number)), to=exp.DataType.build("hugeint", dialect="duckdb"))
