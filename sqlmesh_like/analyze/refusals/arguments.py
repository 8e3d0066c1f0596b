"""Arguments that Spark's analysis refuses by their value: schemas, options, formats, positions. Owns finding them.

Only literals are judged: what a column holds is known when rows are read. Types of arguments are judged by
`expression_types`. Source: `checkInputDataTypes` of the expressions of Spark 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.analyze.expressions.calls import FunctionCall, call_of
from sqlmesh_like.analyze.functions.catalogue import function_named
from sqlmesh_like.analyze.illegal_clauses import Misplaced
from sqlmesh_like.dialects import SPARK

Arguments = Sequence[exp.Expr]
_Fault = tuple[str, str]
"""What is wrong, and what to do."""
_SIMPLE_FIELDS = re.compile(r"\s*\w+\s*:?\s+(\w+)\s*(,\s*\w+\s*:?\s+\w+\s*)*")
_FIELD_TYPE = re.compile(r"\w+\s*:?\s+(\w+)\s*(?:,|$)")
_TYPE_NAMES = frozenset(
    "boolean tinyint byte smallint short int integer bigint long float real double date timestamp timestamp_ntz "
    "timestamp_ltz string binary decimal dec numeric void interval char character varchar array map struct".split()
)
_BINARY_FORMATS = ("hex", "utf-8", "utf8", "base64")
_OF_LAMBDAS = frozenset(
    "transform filter exists forall aggregate reduce zip_with map_filter map_zip_with transform_keys transform_values "
    "array_sort".split()
)
_OF_NAMES = frozenset(("mask", "count_min_sketch", "explode", "explode_outer", "posexplode", "posexplode_outer"))
"""Functions whose arguments may be named."""
_MASK_NAMES = ("str", "upperchar", "lowerchar", "digitchar", "otherchar")
_RANGE_STEP, _RANGE_MOST = 2, 4


def refused_arguments(tree: exp.Expr) -> Iterator[Misplaced]:
    """Calls with an argument that Spark refuses whatever the rows are.

    >>> import sqlglot
    >>> [found.message for found in refused_arguments(sqlglot.parse_one("to_binary(a, 'hax')", dialect="spark"))]
    ["to_binary() takes hex, utf-8 or base64 as its format, not 'hax'"]
    """
    for node in tree.find_all(exp.Func):
        call = _call(node)
        if call is None:
            continue
        fault = _by_name(call) or _REFUSED.get(call.name, _nothing)(call.arguments)
        if fault is not None:
            yield Misplaced(fault[0], node, fault[1])
    for table in tree.find_all(exp.Table):
        is_range = isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "range"
        if is_range and (fault := _range(table.this.expressions)):
            yield Misplaced(fault[0], table.this, fault[1])


JUDGED = (
    exp.Anonymous, exp.FromJson, exp.JSONFormat, exp.ToBinary, exp.RegexpReplace, exp.ArraySort, exp.ToNumber,
    exp.Format, exp.Lambda, exp.Kwarg,
)  # fmt: skip
"""A query without any of these needs no check."""


def _call(node: exp.Func) -> FunctionCall | None:
    given = tuple(value for value in node.args.values() if isinstance(value, exp.Expr))
    match node:
        case exp.FromJson():
            return FunctionCall("from_json", given)
        case exp.ToNumber():
            return FunctionCall("to_number", given)
        case exp.ArraySort():
            return FunctionCall("sort_array" if node.args.get("asc") else "array_sort", given)
    return call_of(node)


def _by_name(call: FunctionCall) -> _Fault | None:
    """Lambdas and named arguments of functions that take none."""
    if function_named(call.name) is None:
        return None
    if call.name not in _OF_LAMBDAS and any(isinstance(argument, exp.Lambda) for argument in call.arguments):
        return f"{call.name}() takes no lambda function", "apply it to each element: transform(…, x -> …)"
    if call.name not in _OF_NAMES and any(isinstance(argument, exp.Kwarg) for argument in call.arguments):
        return f"{call.name}() does not take named arguments", "give them in their order, without names"
    return None


def _nothing(_: Arguments) -> None:
    return None


def _from_json_or_csv(arguments: Arguments) -> _Fault | None:
    """from_json and from_csv: a text, a schema, options."""
    fault = _schema(arguments[1]) if len(arguments) > 1 else None
    return fault or _options(arguments[2:])


def _read_csv(arguments: Arguments) -> _Fault | None:
    kind = arguments[1] if len(arguments) > 1 else None
    if isinstance(kind, exp.Literal) and re.match(r"\s*(array|map)\s*<", kind.name, re.IGNORECASE):
        return f"a row of CSV is a struct, not {kind.name}", "name its columns: 'a INT, b STRING'"
    return _from_json_or_csv(arguments)


def _schema(schema: exp.Expr) -> _Fault | None:
    if isinstance(schema, exp.Literal) and not schema.is_string:
        return f"a schema is a text such as 'a INT, b STRING', not {schema.sql(SPARK)}", "write it as a text"
    text = schema.name if isinstance(schema, exp.Literal) else ""
    if _SIMPLE_FIELDS.fullmatch(text):
        odd = next((kind for kind in _FIELD_TYPE.findall(text) if kind.lower() not in _TYPE_NAMES), None)
        if odd is not None:
            return f"{odd!r} in the schema {text!r} is not a type", "e.g. INT, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP"
    return None


def _options(options: Arguments) -> _Fault | None:
    given = options[0] if options else None
    if isinstance(given, exp.Struct):
        return "options are a map, not a struct", "write map('mode', 'PERMISSIVE')"
    if isinstance(given, exp.VarMap | exp.Map):
        entries = [each for part in ("keys", "values") for each in _elements(given.args.get(part))]
        odd = next((each for each in entries if isinstance(each, exp.Literal) and not each.is_string), None)
        if odd is not None:
            return f"options are texts, not {odd.sql(SPARK)}", f"write '{odd.name}'"
    return None


def _elements(array: object) -> list[exp.Expr]:
    return array.expressions if isinstance(array, exp.Array) else []


def _schema_of_example(arguments: Arguments) -> _Fault | None:
    """schema_of_json and schema_of_csv."""
    example = arguments[0] if arguments else None
    if isinstance(example, exp.Null) or (example is not None and example.find(exp.Column)):
        return "the schema is that of one example, not of a column or NULL", "write an example as a text"
    return _options(arguments[1:])


def _binary(arguments: Arguments) -> _Fault | None:
    form = arguments[1] if len(arguments) > 1 else None
    if form is None or isinstance(form, exp.Null):
        return None
    is_known = not isinstance(form, exp.Literal) or (form.is_string and form.name.lower() in _BINARY_FORMATS)
    if is_known and form.find(exp.Column) is None:
        return None
    return (
        f"to_binary() takes hex, utf-8 or base64 as its format, not {form.sql(SPARK)}",
        "write one of these as a text",
    )


def _mask(arguments: Arguments) -> _Fault | None:
    names = [each.this.name.lower() if isinstance(each, exp.Kwarg) else None for each in arguments]
    first_named = next((at for at, name in enumerate(names) if name is not None), len(names))
    if None in names[first_named:]:
        return "an argument without a name follows one with a name", "name it too, or put it before"
    if arguments and not first_named and "str" not in names:
        return "mask() lacks the text to mask", "name it: str => …"
    for at, argument in enumerate(arguments):
        name = names[at] or (_MASK_NAMES[at] if at < len(_MASK_NAMES) else "")
        value = argument.expression if isinstance(argument, exp.Kwarg) else argument
        if name == "str" or value is None:
            continue
        is_long = isinstance(value, exp.Literal) and value.is_string and len(value.name) != 1
        if is_long or value.find(exp.Column):
            return f"mask() replaces by one character that is written out, not {value.sql(SPARK)}", "e.g. 'X', or NULL"
    return None


def _regexp_replace(arguments: Arguments) -> _Fault | None:
    position = arguments[3] if len(arguments) > 3 else None
    if isinstance(position, exp.Neg) or (isinstance(position, exp.Literal) and position.name == "0"):
        return f"regexp_replace() begins at a position from 1, not {position.sql(SPARK)}", "positions begin at 1"
    return None


def _sort_array(arguments: Arguments) -> _Fault | None:
    is_ascending = arguments[1] if len(arguments) > 1 else None
    if is_ascending is None:
        return None
    is_null = isinstance(is_ascending, exp.Cast) and isinstance(is_ascending.this, exp.Null)
    if is_null or isinstance(is_ascending, exp.Literal):
        return f"sort_array() takes true or false, not {is_ascending.sql(SPARK)}", "write true for ascending"
    return None


def _number_format(arguments: Arguments) -> _Fault | None:
    form = arguments[1] if len(arguments) > 1 else None
    if not isinstance(form, exp.Literal) or not form.is_string:
        return None
    whole, _, fraction = form.name.upper().replace("D", ".").replace("G", ",").partition(".")
    if "," in fraction:
        return f"thousands are separated before the decimal point only: {form.sql(SPARK)}", "leave out the G after D"
    groups = re.sub(r"[^09,]", "", whole).split(",")
    if len(groups) > 1 and not all(groups):
        return f"a separator of thousands stands between digits: {form.sql(SPARK)}", "e.g. '999G999'"
    return None


def _format_string(arguments: Arguments) -> _Fault | None:
    form = arguments[0] if arguments else None
    if isinstance(form, exp.Literal) and "%0$" in form.name:
        return "the arguments of format_string() are numbered from 1: '%0$'", "write '%1$'"
    return None


def _members(arguments: Arguments) -> _Fault | None:
    """json_tuple."""
    odd = next(
        (e for e in arguments if isinstance(e, exp.Null) or (isinstance(e, exp.Literal) and not e.is_string)), None
    )
    return None if odd is None else (f"json_tuple() takes texts, not {odd.sql(SPARK)}", f"write '{odd.name}'")


def _range(arguments: Arguments) -> _Fault | None:
    if len(arguments) > _RANGE_MOST:
        return f"range() takes 1 to {_RANGE_MOST} arguments, not {len(arguments)}", "start, end, step and partitions"
    odd = next((each for each in arguments if isinstance(each, exp.Null | exp.Array)), None)
    if odd is not None:
        return f"range() takes whole numbers, not {odd.sql(SPARK)}", "write numbers"
    step = arguments[_RANGE_STEP] if len(arguments) > _RANGE_STEP else None
    if isinstance(step, exp.Literal) and step.name == "0":
        return "the step of range() is not 0", "write 1"
    return None


_REFUSED: Mapping[str, Callable[[Arguments], _Fault | None]] = {
    "from_json": _from_json_or_csv,
    "from_csv": _read_csv,
    "to_json": lambda arguments: _options(arguments[1:]),
    "to_csv": lambda arguments: _options(arguments[1:]),
    "schema_of_json": _schema_of_example,
    "schema_of_csv": _schema_of_example,
    "to_binary": _binary,
    "mask": _mask,
    "regexp_replace": _regexp_replace,
    "sort_array": _sort_array,
    "to_number": _number_format,
    "try_to_number": _number_format,
    "format_string": _format_string,
    "printf": _format_string,
    "json_tuple": _members,
}
