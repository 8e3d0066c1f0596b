"""Types of whole expressions by Spark's rules. Owns the walk over a tree, and the rules that no table holds.

A type is None where it is not proven, never a guess; `void` is the type of NULL. Source: Spark 3.5 `TypeCoercion` and
the `dataType` of each expression in `sqlcat.expressions`. A test compares what is inferred with Spark's own analysis.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlmesh_like.analyze.expressions.calls import call_of
from sqlmesh_like.analyze.expressions.clock import clock_type, is_clock_call
from sqlmesh_like.analyze.expressions.coercion import (
    INTEGERS,
    LARGEST,
    TIMES,
    VOID,
    bounded,
    castable,
    converted,
    decimal_of,
    is_decimal,
    is_interval,
    wider,
)
from sqlmesh_like.analyze.expressions.nested_types import element_of, entry_of, fields_of
from sqlmesh_like.analyze.expressions.operators import (
    SIGNS,
    arithmetic,
    bitwise,
    is_comparable,
    narrowed,
)
from sqlmesh_like.analyze.expressions.signatures import Refusal, common_type, returned
from sqlmesh_like.analyze.expressions.type_names import is_atomic, normalize, number_type
from sqlmesh_like.dialects import SPARK

Outcome = str | Refusal | None
_COMPARED = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_WRAPPERS = (exp.Paren, exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.Window, exp.Alias, exp.Escape)
_TRIED: dict[type[exp.Expr], str] = {
    exp.SafeAdd: "+",
    exp.SafeSubtract: "-",
    exp.SafeMultiply: "*",
    exp.SafeDivide: "/",
}
_SIGNED_CALLS = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "mod": "%", "pmod": "%"}
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "second"),
    **dict.fromkeys(
        ("YEAROFWEEK", "QUARTER", "QTR", "WEEK", "W", "WEEKS", "DAYOFWEEK", "DOW", "DAYOFWEEK_ISO", "DOW_ISO", "DOY"),
        "calendar",
    ),
}
"""Fields of EXTRACT (Spark 3.5 `DatePart.parseExtractField`)."""
_INTERVAL_PARTS = {"year": "int", "month": "tinyint", "day": "int", "hour": "tinyint", "minute": "tinyint",
                   "second": "decimal(8,6)"}  # fmt: skip
_UNITS = {"WEEK": "day", "MILLISECOND": "second", "MICROSECOND": "second"}


class ExpressionTypes:
    """Types of expressions over the same columns; each node is judged once."""

    def __init__(self, column_type: Callable[[exp.Column], str | None]) -> None:
        self._column_type = column_type
        self._outcomes: dict[int, tuple[exp.Expr, Outcome]] = {}

    def of(self, node: exp.Expr) -> str | None:
        """A node's type, None where it is not proven or Spark refuses the node."""
        outcome = self.outcome(node)
        return outcome if isinstance(outcome, str) else None

    def outcome(self, node: exp.Expr) -> Outcome:
        """A node's type, or why Spark refuses the node itself over the types of its operands."""
        if id(node) not in self._outcomes:  # keeps the node: ids are unique only among live objects
            self._outcomes[id(node)] = node, self._judged(node)
        return self._outcomes[id(node)][1]

    def _judged(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Column():
                return self._column_type(node)
            case exp.Literal():
                return "string" if node.is_string else number_type(node.name)
            case exp.Null():
                return VOID
            case exp.Boolean():
                return "boolean"
            case exp.HexString():
                return "binary"
            case exp.Cast():
                return self._cast(node)
        if isinstance(node, _WRAPPERS):
            return self.of(node.this)
        if is_clock_call(node):
            return clock_type(node)
        if isinstance(node, _COMPARED):
            return self._compared(node.this, [node.expression], is_equality=isinstance(node, _EQUALITIES))
        return self._operator(node)

    def _operator(self, node: exp.Expr) -> Outcome:
        if sign := SIGNS.get(type(node)) or _TRIED.get(type(node)):
            return self._arithmetic(sign, node.this, node.expression)
        match node:
            case exp.Neg():
                return self._negative(node)
            case exp.Interval():
                return _interval(node)
            case exp.And() | exp.Or() | exp.Not():
                return self._logical(node)
            case exp.Between():
                return self._compared(node.this, [node.args["low"], node.args["high"]], is_equality=False)
            case exp.In():
                return self._in(node)
            case exp.Is() | exp.Any() | exp.All():
                return "boolean"
            case exp.Case() | exp.DecodeCase():
                return self._case(node)
            case exp.BitwiseNot():
                return self._of_integers(self.of(node.this), VOID, "~")
            case exp.Distinct():
                return self.of(node.expressions[0]) if len(node.expressions) == 1 else None
        if sign := _BITS.get(type(node)):
            return self._of_integers(self.of(node.this), self.of(node.expression), sign)
        return self._nested(node)

    def _nested(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Identifier():
                return self._parameter(node)
            case exp.Struct():
                return self._struct(node)
            case exp.Bracket():
                return self._item(node)
            case exp.GenerateSeries():
                return self._sequence(node)
            case exp.Transform():
                body = self.of(node.expression.this) if isinstance(node.expression, exp.Lambda) else None
                return f"array<{body}>" if body and body != VOID else None
            case exp.ArraySort():
                return self.of(node.this)
            case exp.Flatten():
                return element_of(self.of(node.this))
            case exp.VarMap():
                entry = [element_of(self.of(node.args[part])) for part in ("keys", "values")]
                return f"map<{entry[0]},{entry[1]}>" if all(entry) and VOID not in entry else None
            case exp.Exists() if not isinstance(node.expression, exp.Lambda):
                return "boolean"
        return self._time(node)

    def _time(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Extract():
                return _part(node.name, self.of(node.expression))
            case exp.TimestampTrunc():
                return "timestamp"
            case exp.TimestampDiff():
                return "bigint"
            case exp.DateDiff():
                return "int" if node.args.get("unit") is None else "bigint"
            case exp.TsOrDsAdd() | exp.DateAdd() | exp.DateSub():
                return self._days_later(node)
            case exp.TimestampAdd():
                type_ = self.of(node.this)
                return "timestamp" if type_ in ("date", "string") else type_ if type_ in TIMES else None
        return self._number(node)

    def _number(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Round():
                return self._rounded(self.of(node.this), node.args.get("decimals"))
            case exp.Ceil() | exp.Floor():
                return self._whole(node)
            case exp.Concat():
                return self._joined(node.expressions)
            case exp.DPipe():
                return self._joined([node.this, node.expression])
            case exp.Sum():
                return sum_type(self.of(node.this))
            case exp.Avg():
                return avg_type(self.of(node.this))
            case exp.Lag() | exp.Lead():
                return self.of(node.this)
            case exp.Median() | exp.Quantile():
                quantile = node.args.get("quantile")
                is_list = quantile is not None and (self.of(quantile) or "array<").startswith("array<")
                return None if is_list else "double"
        return self._call(node)

    def _call(self, node: exp.Expr) -> Outcome:
        call = call_of(node)
        if call is None:
            return None
        if (sign := _SIGNED_CALLS.get(call.name)) and len(call.arguments) == 2:
            return self._arithmetic(sign, *call.arguments)
        types = [self.of(argument) for argument in call.arguments]
        match call.name, len(types):
            case "date_part" | "datepart", 2:
                field = call.arguments[0]
                return _part(field.name, types[1]) if isinstance(field, exp.Literal) else None
            case "bround", 1 | 2:
                return self._rounded(types[0], call.arguments[1] if len(types) == 2 else None)
            case "reverse", 1:
                return types[0] if element_of(types[0]) else returned("upper", types)
            case "try_sum", 1:
                return sum_type(types[0])
            case "try_avg", 1:
                return avg_type(types[0])
        if isinstance(node, exp.Anonymous) and any(isinstance(argument, exp.Lambda) for argument in call.arguments):
            return "boolean" if call.name == "forall" else None
        return returned(call.name, types)

    def _cast(self, cast: exp.Cast) -> Outcome:
        target, actual = normalize(cast.to.sql(SPARK)), self.of(cast.this)
        if actual is not None and is_atomic(actual) and is_atomic(target) and not castable(actual, target):
            return Refusal(f"{actual} cannot be cast to {target}")
        return target

    def _arithmetic(self, sign: str, left: exp.Expr, right: exp.Expr) -> Outcome:
        first, second = self.of(left), self.of(right)
        if first is None or second is None:
            return None
        if is_decimal(first) or is_decimal(second):
            first, second = _narrow(left, first), _narrow(right, second)
        return arithmetic(sign, first, second)

    def _negative(self, node: exp.Neg) -> Outcome:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number_type(node.this.name, is_negative=True)
        type_ = self.of(node.this)
        return None if type_ is None else returned("negative", [type_])

    def _logical(self, node: exp.Expr) -> Outcome:
        for side in node.iter_expressions():
            type_ = self.of(side)
            if type_ not in (None, "boolean", VOID):
                return Refusal(f"{node.key.upper()} takes a boolean, not {type_}")
        return "boolean"

    def _compared(self, first: exp.Expr, others: list[exp.Expr], *, is_equality: bool) -> Outcome:
        left = self.of(first)
        for other in others:
            right = self.of(other)
            if left and right and not is_comparable(left, right, is_equality=is_equality):
                return Refusal(f"{left} is compared with {right}")
        return "boolean"

    def _in(self, node: exp.In) -> Outcome:
        left, *others = (self.of(value) for value in (node.this, *node.expressions))
        for right in others:
            if left and right and wider(left, right) is None:
                return Refusal(f"{left} is compared with {right}")
        return "boolean"

    def _case(self, node: exp.Expr) -> Outcome:
        if isinstance(node, exp.DecodeCase):
            values = node.expressions
            return self._common([*values[2::2], *(values[-1:] if len(values) % 2 == 0 else [])])
        for branch in node.args["ifs"]:
            condition = self.of(branch.this)
            if node.this is None and condition not in (None, "boolean", VOID):
                return Refusal(f"WHEN takes a boolean, not {condition}")
        return self._common([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")])

    def _common(self, values: list[exp.Expr | None]) -> Outcome:
        return common_type([self.of(value) for value in values if value is not None])

    def _of_integers(self, left: str | None, right: str | None, sign: str) -> Outcome:
        if left is None or right is None:
            return None
        return bitwise(left, right) or Refusal(f"{sign} takes integers, not {left if left not in INTEGERS else right}")

    def _parameter(self, name: exp.Identifier) -> str | None:
        """Type of a lambda's parameter: an element of the array that the function reads."""
        function = name.find_ancestor(exp.Lambda)
        while function is not None and name.name not in [parameter.name for parameter in function.expressions]:
            function = function.find_ancestor(exp.Lambda)
        caller = function.parent if function is not None else None
        if function is None or not isinstance(caller, exp.Transform | exp.ArrayFilter | exp.Exists):
            return None
        position = [parameter.name for parameter in function.expressions].index(name.name)
        return "int" if position else element_of(self.of(caller.this))

    def _struct(self, node: exp.Struct) -> str | None:
        fields = []
        for field in node.expressions:
            type_ = self.of(field.expression) if isinstance(field, exp.PropertyEQ) else None
            if type_ in (None, VOID) or not isinstance(field.this, exp.Identifier):
                return None
            fields.append(f"{field.this.name}:{type_}")
        return f"struct<{','.join(fields)}>" if fields else None

    def _item(self, bracket: exp.Bracket) -> str | None:
        """A struct's field, an array's element or a map's value."""
        type_, (index, *more) = self.of(bracket.this), bracket.expressions
        if more or type_ is None:
            return None
        if isinstance(index, exp.Literal) and index.is_string and type_.startswith("struct<"):
            fields = {name.lower(): field_type for name, field_type in fields_of(type_).items()}
            return fields.get(index.name.lower())
        entry = entry_of(type_)
        return entry[1] if entry else element_of(type_)

    def _sequence(self, node: exp.GenerateSeries) -> str | None:
        ends = {self.of(end) for part in ("start", "end") if (end := node.args.get(part)) is not None}
        type_ = ends.pop() if len(ends) == 1 else None
        return f"array<{type_}>" if type_ in (*INTEGERS, "date", *TIMES) else None

    def _days_later(self, node: exp.Expr) -> Outcome:
        if isinstance(node, exp.DateAdd | exp.DateSub) and node.args.get("unit") is not None:
            return None
        return "date"

    def _rounded(self, type_: str | None, digits: exp.Expr | None) -> Outcome:
        if type_ is None:
            return None
        number = converted(type_, "number")
        if number is None or number == VOID:
            return Refusal(f"ROUND takes a number, not {type_}")
        scale = _whole_literal(digits) if digits is not None else 0
        return _rounded_decimal(number, scale) if is_decimal(number) else number

    def _whole(self, node: exp.Expr) -> Outcome:
        """CEIL and FLOOR: to a whole number, or to some digits of a decimal."""
        type_ = self.of(node.this)
        if type_ is None:
            return None
        if converted(type_, "number") is None:
            return Refusal(f"{node.key.upper()} takes a number, not {type_}")
        if (digits := node.args.get("decimals")) is not None:
            decimal = converted(type_, "decimal")
            return _rounded_decimal(decimal, _whole_literal(digits)) if decimal else None
        if not is_decimal(type_):
            return "bigint"
        precision, scale = decimal_of(type_) or (0, 0)
        return type_ if scale == 0 else bounded(precision - scale + 1, 0)

    def _joined(self, values: list[exp.Expr]) -> Outcome:
        """`||` and CONCAT: of binaries, of arrays, else of texts."""
        types = [self.of(value) for value in values]
        if any(type_ is None for type_ in types):
            return None
        known = [type_ for type_ in types if type_ is not None]
        if any(type_.startswith("array<") for type_ in known) or set(known) == {"binary"}:
            return common_type(types)
        if refused := next((type_ for type_ in known if type_ != VOID and converted(type_, "string") is None), None):
            return Refusal(f"texts and {refused} cannot be joined")
        return "string"


def _narrow(side: exp.Expr, type_: str) -> str:
    """The type of an integer literal beside a decimal: that of its digits, with or without a sign."""
    literal = side.this if isinstance(side, exp.Neg) else side
    if isinstance(literal, exp.TryCast | exp.Cast) and type_ in INTEGERS:
        literal = literal.this
    return narrowed(literal.name) if isinstance(literal, exp.Literal) and type_ in INTEGERS else type_


def _whole_literal(node: exp.Expr) -> int | None:
    is_negative = isinstance(node, exp.Neg)
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or not literal.name.isdigit():
        return None
    return -int(literal.name) if is_negative else int(literal.name)


def _rounded_decimal(type_: str, digits: int | None) -> str | None:
    """`RoundBase.dataType`: rounding may need one more digit before the point."""
    if digits is None:
        return None
    precision, scale = decimal_of(type_) or (0, 0)
    whole = precision - scale + 1
    if digits < 0:
        return f"decimal({min(LARGEST, max(whole, 1 - digits))},0)"
    kept = min(scale, digits)
    return f"decimal({min(LARGEST, whole + kept)},{kept})"


def _interval(node: exp.Interval) -> str | None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return f"interval {unit.this.name} to {unit.expression.name}".lower()
    name = (unit.name if unit is not None else "").upper().removesuffix("S")
    return f"interval {_UNITS.get(name, name.lower())}" if name else None


def _part(field: str, type_: str | None) -> Outcome:
    """Type of EXTRACT and DATE_PART."""
    part = _PARTS.get(field.upper())
    if type_ is None:
        return None
    if is_interval(type_):
        return _INTERVAL_PARTS.get(part or "")
    if part is None:
        return Refusal(f"{field} is not a field of {type_}")
    if converted(type_, "timestamp") is None:
        return Refusal(f"{type_} has no field {field}")
    return "decimal(8,6)" if part == "second" else "int"


def sum_type(argument: str | None) -> str | None:
    """Type of SUM.

    >>> sum_type("int"), sum_type("decimal(10,2)"), sum_type("string")
    ('bigint', 'decimal(20,2)', 'double')
    """
    if argument in INTEGERS:
        return "bigint"
    if argument in ("float", "double", "string", VOID):
        return "double"
    precision, scale = (decimal_of(argument) if is_decimal(argument) else None) or (0, 0)
    return f"decimal({min(LARGEST, precision + 10)},{scale})" if precision else None


def avg_type(argument: str | None) -> str | None:
    """Type of AVG.

    >>> avg_type("int"), avg_type("decimal(10,2)"), avg_type("decimal(38,10)")
    ('double', 'decimal(14,6)', 'decimal(38,14)')
    """
    if argument in (*INTEGERS, "float", "double", "string", VOID):
        return "double"
    precision, scale = (decimal_of(argument) if is_decimal(argument) else None) or (0, 0)
    # DecimalType.bounded caps precision and scale at 38, without reducing the scale to keep whole digits.
    return bounded(precision + 4, scale + 4) if precision else None
