"""Types of whole expressions by Spark's rules. Owns the walk over a tree, and the rules that no table holds.

A type is None where it is not proven, never a guess; `void` is the type of NULL. Source: Spark 3.5 `TypeCoercion` and
the `dataType` of each expression in `sqlcat.expressions`. A test compares what is inferred with Spark's own analysis.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlmesh_like.analyze.expressions.calls import FunctionCall, call_of
from sqlmesh_like.analyze.expressions.clock import clock_type, is_clock_call
from sqlmesh_like.analyze.expressions.nested_expressions import (
    MEMBERSHIPS,
    applied_type,
    flat_type,
    item_type,
    map_type,
    mapped_type,
    membership_type,
    parameter_type,
    parsed_type,
    sequence_type,
    struct_type,
)
from sqlmesh_like.analyze.expressions.scalar_rules import (
    days_later_type,
    joined_type,
    offset_type,
    rounded_type,
    whole_type,
)
from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.analyze.functions.signatures import common_type, result_type
from sqlmesh_like.analyze.spark_types.coercion import (
    INTEGERS,
    TIMES,
    VOID,
    is_decimal,
    wider,
)
from sqlmesh_like.analyze.spark_types.function_types import (
    Outcome,
    avg_type,
    cast_to,
    interval_type,
    narrow,
    number_of_format,
    numeric_aggregate_type,
    part_type,
    sum_type,
)
from sqlmesh_like.analyze.spark_types.nested_types import element_of
from sqlmesh_like.analyze.spark_types.operators import (
    SIGNS,
    arithmetic,
    bitwise,
    is_comparable,
)
from sqlmesh_like.analyze.spark_types.refusal import Refusal
from sqlmesh_like.analyze.spark_types.type_names import normalize, number_type
from sqlmesh_like.dialects import SPARK

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
_OF_FLOATS = frozenset({"nanvl", "regr_avgx", "regr_avgy"})


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
            self._outcomes[id(node)] = node, self._node_type(node)
        return self._outcomes[id(node)][1]

    def _node_type(self, node: exp.Expr) -> Outcome:
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
        if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
            return None  # a branch, not a call
        if is_clock_call(node):
            return clock_type(node)
        if isinstance(node, _COMPARED):
            return self._comparison_type(node.this, [node.expression], is_equality=isinstance(node, _EQUALITIES))
        return self._operator(node)

    def _operator(self, node: exp.Expr) -> Outcome:
        if sign := SIGNS.get(type(node)) or _TRIED.get(type(node)):
            return self._arithmetic(sign, node.this, node.expression)
        match node:
            case exp.Neg():
                return self._negative(node)
            case exp.Interval():
                return interval_type(node)
            case exp.And() | exp.Or() | exp.Not():
                return self._logical(node)
            case exp.Between():
                return self._comparison_type(node.this, [node.args["low"], node.args["high"]], is_equality=False)
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
        return self._nested_type(node)

    def _nested_type(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Identifier():
                return parameter_type(node, self.of)
            case exp.Struct():
                return struct_type(node, self.of)
            case exp.Bracket():
                return item_type(node, self.of)
            case exp.GenerateSeries():
                return sequence_type(node, self.of)
            case exp.Transform() | exp.Reduce():
                return applied_type(node, self.of)
            case exp.ArraySort():
                return result_type("array_compact", [self.of(node.this)])
            case exp.FromJson():
                return parsed_type(node)
            case exp.Flatten():
                return flat_type(self.of(node.this))
            case exp.VarMap():
                return map_type(node, self.of)
            case exp.Exists() if not isinstance(node.expression, exp.Lambda):
                return "boolean"
        return membership_type(node, self.of) if isinstance(node, MEMBERSHIPS) else self._time(node)

    def _time(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Extract():
                return part_type(node.name, self.of(node.expression))
            case exp.TimestampTrunc():
                return "timestamp"
            case exp.TimestampDiff():
                return "bigint"
            case exp.DateDiff():
                return "int" if node.args.get("unit") is None else "bigint"
            case exp.TsOrDsAdd() | exp.DateAdd() | exp.DateSub():
                return days_later_type(node, self.of)
            case exp.TimestampAdd():
                type_ = self.of(node.this)
                return "timestamp" if type_ in ("date", "string") else type_ if type_ in TIMES else None
        return self._number(node)

    def _number(self, node: exp.Expr) -> Outcome:
        match node:
            case exp.Round():
                return rounded_type(self.of(node.this), node.args.get("decimals"))
            case exp.Ceil() | exp.Floor():
                return whole_type(node, self.of)
            case exp.Concat() if not isinstance(node, exp.ConcatWs):
                return joined_type(node.expressions, self.of)
            case exp.DPipe():
                return joined_type([node.this, node.expression], self.of)
            case exp.Lag() | exp.Lead():
                return offset_type(node, self.of)
        record = aggregate_of(node)
        return self._call(node) if record is None or record.type_rule is None else record.type_rule(node, self.of)

    def _call(self, node: exp.Expr) -> Outcome:
        call = call_of(node)
        if call is None:
            return None
        if (sign := _SIGNED_CALLS.get(call.name)) and len(call.arguments) == 2:
            return self._arithmetic(sign, *call.arguments)
        if call.name in _OF_FLOATS and len(call.arguments) == 2:
            return self._of_floats(call)
        return self._special(call) or self._in_table(call)

    def _in_table(self, call: FunctionCall) -> Outcome:
        return result_type(call.name, [self.of(argument) for argument in call.arguments])

    def _special(self, call: FunctionCall) -> Outcome:
        """A function whose result depends on more than the types of its arguments; None for any other."""
        types = [self.of(argument) for argument in call.arguments]
        match call.name, len(types):
            case "date_part" | "datepart", 2:
                field = call.arguments[0]
                return part_type(field.name, types[1]) if isinstance(field, exp.Literal) else None
            case "bround", 1 | 2:
                return rounded_type(types[0], call.arguments[1] if len(types) == 2 else None)
            case "reverse", 1:
                return types[0] if element_of(types[0]) else result_type("upper", types)
            case "try_sum", 1:
                return numeric_aggregate_type(types[0], sum_type)
            case "try_avg", 1:
                return numeric_aggregate_type(types[0], avg_type)
            case (("lpad" | "rpad" | "elt"), n) if n > 1:
                padded = types[1:] if call.name == "elt" else types[::2]
                made = self._in_table(call)
                known = None if None in padded else "binary" if set(padded) == {"binary"} else "string"
                return made if isinstance(made, Refusal) else known
            case "mean", 1:
                return numeric_aggregate_type(types[0], avg_type)
            case (("to_number" | "try_to_number"), 2):
                return number_of_format(call.arguments[1])
            case "zip_with" | "transform_keys" | "transform_values", 2 | 3:
                return mapped_type(call.name, call.arguments, self.of)
            case (("bigint" | "smallint" | "tinyint" | "binary" | "decimal"), 1):
                return cast_to(normalize(call.name), types[0])
        return None

    def _of_floats(self, call: FunctionCall) -> Outcome:
        """NANVL has the wider of two types, REGR_AVGX and REGR_AVGY are averages of one."""
        first, second = (self.of(argument) for argument in call.arguments)
        made = self._in_table(call)
        if isinstance(made, Refusal) or first is None or second is None:
            return made
        if call.name == "nanvl":
            return "float" if first == second == "float" else "double"
        return avg_type(second if call.name == "regr_avgx" else first)

    def _cast(self, cast: exp.Cast) -> Outcome:
        target, actual = normalize(cast.to.sql(SPARK)), self.of(cast.this)
        if type(cast) is exp.Cast and target == "timestamp":
            return target  # this may be to_timestamp(), which takes anything that has a text
        return cast_to(target, actual, is_tried=bool(cast.args.get("safe")))

    def _arithmetic(self, sign: str, left: exp.Expr, right: exp.Expr) -> Outcome:
        first, second = self.of(left), self.of(right)
        if first is None or second is None:
            return None
        if is_decimal(first) or is_decimal(second):
            first, second = narrow(left, first), narrow(right, second)
        return arithmetic(sign, first, second) if first is not None and second is not None else None

    def _negative(self, node: exp.Neg) -> Outcome:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number_type(node.this.name, is_negative=True)
        type_ = self.of(node.this)
        return None if type_ is None else result_type("negative", [type_])

    def _logical(self, node: exp.Expr) -> Outcome:
        for side in node.iter_expressions():
            type_ = self.of(side)
            if type_ not in (None, "boolean", VOID):
                return Refusal(f"{node.key.upper()} takes a boolean, not {type_}")
        return "boolean"

    def _comparison_type(self, first: exp.Expr, others: list[exp.Expr], *, is_equality: bool) -> Outcome:
        left = self.of(first)
        for other in others:
            right = self.of(other)
            if left and right and not is_comparable(left, right, is_equality=is_equality):
                return Refusal(f"{left} is compared with {right}")
        return "boolean"

    def _in(self, node: exp.In) -> Outcome:
        left, *others = (self.of(value) for value in (node.this, *node.expressions))
        for right in others:
            if left and right and (wider(left, right) is None or left.startswith("map<")):
                return Refusal(f"{left} is compared with {right}")
        return "boolean"

    def _case(self, node: exp.Expr) -> Outcome:
        if isinstance(node, exp.DecodeCase):
            values = node.expressions
            # Without a default, what is left over is a NULL of type STRING.
            default = values[-1] if len(values) % 2 == 0 else exp.cast(exp.Null(), "string")
            return self._common([*values[2::2], default])
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
