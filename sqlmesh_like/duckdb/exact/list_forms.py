"""Lists that DuckDB builds as Spark does: a group's sorted texts, joined, and ascending sequences of numbers.

Owns which forms these are. Any other list, such as one in the order in which rows arrive, is not checkable.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.binding.time_windows import is_window_call

LIST_FORMS = (
    exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ArraySort, exp.ArraySlice, exp.ArrayToString, exp.Transform, exp.Lambda,
    exp.GenerateSeries, exp.Struct, exp.PropertyEQ, exp.Dot,
)  # fmt: skip
_JOINED = (exp.ArrayToString, exp.ArraySlice)
_COLLECTED = (exp.ArrayAgg, exp.ArrayUniqueAgg)


def unproven_list(node: exp.Expr) -> str | None:
    """Why a node is not an allowed use of a list form; None if it is, or if it is not a list form.

    >>> import sqlglot
    >>> def ask(text): return [w for n in sqlglot.parse_one(text, dialect="spark").walk() if (w := unproven_list(n))]
    >>> ask("array_join(slice(array_sort(collect_set(cast(a as string))), 1, 2), ',')")
    []
    >>> ask("array_join(transform(sort_array(collect_list(a), false), v -> cast(v as string)), ',')")
    []
    >>> ask("array_join(collect_list(a), ',')"), ask("sequence(1, n)")
    (['ARRAY_JOIN of other than sorted texts', 'COLLECT_LIST that is not sorted'], ['SEQUENCE without steps upwards'])
    """
    match node:
        case exp.ArrayToString() if not _joins_sorted_texts(node):
            return "ARRAY_JOIN of other than sorted texts"
        case exp.ArraySlice() if not isinstance(node.parent, exp.ArrayToString) or not _is_beginning(node):
            return "SLICE of other than the first of sorted texts"
        case exp.Transform() if not isinstance(node.parent, _JOINED):
            return "TRANSFORM"
        case exp.Lambda() if not isinstance(node.parent, exp.Transform) or not _is_cast_to_text(node):
            return "a lambda"
        case exp.ArraySort() if not isinstance(node.parent, (*_JOINED, exp.Transform)):
            return "a sorted list that is not joined"
        case exp.ArrayAgg() | exp.ArrayUniqueAgg() if not isinstance(node.parent, exp.ArraySort):
            return f"COLLECT_{'LIST' if isinstance(node, exp.ArrayAgg) else 'SET'} that is not sorted"
        case exp.Struct() if not _is_sorted_item(node):
            return "STRUCT"
        case exp.Dot() if node.find_ancestor(exp.Lambda) is None and not is_window_call(node.this):
            return "a field"
        case exp.GenerateSeries() if not _counts_up(node):
            return "SEQUENCE without steps upwards"
    return None


def _joins_sorted_texts(joined: exp.ArrayToString) -> bool:
    delimiter = joined.expression
    items = joined.this.this if isinstance(joined.this, exp.ArraySlice) else joined.this
    is_spelt = isinstance(items, exp.Transform)
    ordered = items.this if is_spelt else items
    if not isinstance(ordered, exp.ArraySort) or not isinstance(ordered.this, _COLLECTED):
        return False
    is_plain_order = ordered.expression is None and isinstance(ordered.args.get("asc"), exp.Boolean | None)
    is_plain_join = isinstance(delimiter, exp.Literal) and delimiter.is_string and not joined.args.get("null")
    return is_plain_order and is_plain_join and (is_spelt or _is_text(ordered.this.this))


def _is_text(value: exp.Expr | None) -> bool:
    return isinstance(value, exp.Cast) and value.to.is_type(exp.DType.TEXT, exp.DType.VARCHAR)


def _is_cast_to_text(function: exp.Lambda) -> bool:
    """`v -> cast(v as string)`, or of a field of `v`."""
    cast, names = function.this, [name.name for name in function.expressions]
    if not _is_text(cast) or len(names) != 1:
        return False
    of = cast.this.this if isinstance(cast.this, exp.Dot) else cast.this
    return isinstance(of, exp.Identifier) and of.name == names[0]


def _is_sorted_item(item: exp.Struct) -> bool:
    """Whether an item is `case when v is not null then struct(k is null, k, v) end`.

    The engines sort NULLs within structs differently, hence the flag.
    """
    case = item.parent.parent if item.parent else None
    fields = [field.expression for field in item.expressions if isinstance(field, exp.PropertyEQ)]
    if not isinstance(case, exp.Case) or not isinstance(case.parent, exp.ArrayAgg) or len(fields) != 3:
        return False
    flag, key, value = (field.unnest() for field in fields)
    is_apart = _null_test_operand(flag) == key and _null_test_operand(case.args["ifs"][0].this) == value
    return is_apart and case.args.get("default") is None and len(case.args["ifs"]) == 1


def _null_test_operand(condition: exp.Expr) -> exp.Expr | None:
    """The operand of `… is null` or `… is not null`; None for any other condition."""
    test = condition.this if isinstance(condition, exp.Not) else condition
    return test.this.unnest() if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) else None


def _is_beginning(sliced: exp.ArraySlice) -> bool:
    return _number(sliced.args.get("start")) == 1 and _number(sliced.args.get("end")) > 0


def _counts_up(series: exp.GenerateSeries) -> bool:
    return isinstance(series.args.get("start"), exp.Literal) and _number(series.args.get("step")) > 0


def _number(node: exp.Expr | None) -> int:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else 0
