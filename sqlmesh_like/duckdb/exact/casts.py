"""Casts: which are proven, and how DuckDB is given them.

Of a text, those in which both engines read the same value; any other one fails. Numbers are digits with a sign and a
point, as many as their type surely holds; dates and times are written in full, of the years 1000 to 2999. A text that
is empty, or has a letter that no number has, is NULL to Spark.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.exactness import DOUBLE_DIGITS
from sqlmesh_like.dialects import SPARK, duck_template, is_literal_with_suffix
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven
from sqlmesh_like.duckdb.exact.values import (
    DATE,
    FLOATS,
    INTEGERS,
    LEAST_SCALE,
    MOMENT,
    NULL,
    Types,
    cast_of,
    decimal_digits,
    decimal_of_double,
    digits_of_type,
    finite_micros,
    is_exact_double,
    only_where,
    scale_of,
    text_of_double,
    with_year_of_four_digits,
    without_negative_zero,
)

_DAY = "[12][0-9]{3}-[01][0-9]-[0-3][0-9]"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
_MEANT = {
    "int": "-?[0-9]{1,9}",
    "bigint": "-?[0-9]{1,18}",
    "double": r"-?[0-9]{1,15}([.][0-9]{1,15})?",
    "date": _DAY,
    "timestamp": f"{_DAY}([ T]{_TIME})?",
}
"""Patterns (RE2) of texts with one meaning, by type; of a day that is none, such as February 30, it is NULL."""
_NOTHING = {
    "int": "|[ -~]*[A-Za-z][ -~]*",
    "bigint": "|[ -~]*[A-Za-z][ -~]*",
    "double": "",
    "decimal": "|[ -~]*[A-DF-Za-df-z][ -~]*",
    "date": "",
    "timestamp": "",
}
"""Of texts that are NULL."""


def _cast(node: exp.Cast, types: Types) -> str:
    wanted = _spark_type(node.to)
    if isinstance(node.this, exp.Literal) and node.this.is_string and wanted in ("date", "timestamp"):
        if not (DATE if wanted == "date" else MOMENT).fullmatch(node.this.name):
            raise Unproven(f"the {wanted} {node.this.name!r}")
        return wanted
    given = types.of(node.this)
    if given in (wanted, NULL) or is_literal_with_suffix(node):
        return wanted
    if wanted == "string":
        return _text(node, given)
    if given == "string":
        return replace_by_value(node, node.this, wanted)
    is_wider = wanted in INTEGERS and INTEGERS.get(given, 99) < INTEGERS[wanted]
    if is_wider or (given, wanted) in (("date", "timestamp"), ("timestamp", "date")):
        return wanted
    if wanted in INTEGERS:
        return _whole_number(node, given, wanted)
    if wanted.startswith("decimal") and given not in FLOATS:
        digits_of_type(given)
        return wanted
    if given in FLOATS:
        return _of_floating(node, given, wanted)
    if wanted == "double":
        if not is_exact_double(given):
            node.replace(_with_few_digits(node.this, node.copy(), scale_of(given)))
        return wanted
    raise Unproven(f"a cast of {given} to {wanted}")


def _seconds(node: exp.Cast) -> str:
    """Whole seconds since 1970, rounded down."""
    micros, million = finite_micros(node.this), exp.Literal.number(1_000_000)
    rest = exp.Mod(this=exp.Paren(this=micros), expression=million)
    rest = exp.Mod(
        this=exp.Paren(this=exp.Add(this=exp.Paren(this=rest), expression=million.copy())), expression=million.copy()
    )
    down = exp.Paren(this=exp.Sub(this=exp.Paren(this=micros.copy()), expression=exp.Paren(this=rest)))
    node.replace(exp.Paren(this=exp.IntDiv(this=down, expression=million.copy())))
    return "bigint"


def _of_floating(node: exp.Cast, given: str, wanted: str) -> str:
    """Of a float, Spark casts the double that it is."""
    double = without_negative_zero(cast_of(node.this.copy(), "double")) if given == "float" else node.this
    if wanted.startswith("decimal"):
        node.replace(decimal_of_double(double, wanted))
    elif wanted == "double":
        node.replace(double)
    else:
        raise Unproven(f"a cast of {given} to {wanted}")
    return wanted


def _text(node: exp.Cast, given: str) -> str:
    if given in ("date", "timestamp"):
        node.replace(with_year_of_four_digits(node.this, node.copy()))
    elif given == "double":
        node.replace(text_of_double(node.this))
    elif given not in ("boolean", "string") and scale_of(given) > LEAST_SCALE:
        raise Unproven(f"the text of {given}")  # Java may write it with an exponent
    return "string"


def _whole_number(node: exp.Cast, given: str, wanted: str) -> str:
    if (given, wanted) == ("timestamp", "bigint"):
        return _seconds(node)
    if (given, wanted) in (("double", "int"), ("double", "bigint")):  # NaN, and what does not fit, fails
        node.replace(cast_of(exp.Anonymous(this="trunc", expressions=[node.this.copy()]), wanted))
        return wanted
    if given in INTEGERS:
        node.replace(cast_of(node.this.copy(), wanted))  # fails where Spark keeps the low-order bits
        return wanted
    if wanted != "bigint" or not given.startswith("decimal"):
        raise Unproven(f"a cast of {given} to {wanted}")
    if scale_of(given) == 0:
        # If the value does not fit, Spark keeps its low-order bits: this cast fails, while TRY_CAST returns NULL.
        node.replace(cast_of(node.this.copy(), wanted))
    else:
        raise Unproven(f"a cast of {given} to {wanted}")
    return wanted


def _with_few_digits(value: exp.Expr, double: exp.Expr, scale: int) -> exp.Expr:
    """The double of a decimal, failing for more digits than a double holds, which the engines round differently."""
    if scale > DOUBLE_DIGITS:
        raise Unproven("a double of a decimal with a long fraction")
    most = exp.Literal.number(10 ** (DOUBLE_DIGITS - scale))
    few = exp.LT(this=exp.Abs(this=value.copy()), expression=most)
    return only_where(few, value, double, "double")


def replace_by_value(node: exp.Expr, text: exp.Expr, wanted: str) -> str:
    """Replace a node by the value of a text; return the type. Raises Unproven."""
    if wanted.startswith("decimal"):
        digits, scale = decimal_digits(wanted)
        fraction = f"([.][0-9]{{1,{scale}}})?" if scale else ""
        meant, nothing = f"-?0*[0-9]{{1,{max(digits - scale, 1)}}}{fraction}", _NOTHING["decimal"]
        if digits == scale:
            meant = f"-?0+{fraction}"
    elif wanted in _MEANT:
        meant, nothing = _MEANT[wanted], _NOTHING[wanted]
    else:
        raise Unproven(f"a cast of string to {wanted}")
    value: exp.Expr = exp.TryCast(this=text.copy(), to=cast_of(exp.null(), wanted).args["to"])
    if wanted == "double":
        value = without_negative_zero(value)
    is_meant, is_nothing = (duck_template(f"regexp_full_match(x, '{pattern}')", x=text) for pattern in (meant, nothing))
    value = exp.Case().when(is_nothing, cast_of(exp.null(), wanted)).else_(value)
    node.replace(exp.Paren(this=only_where(exp.or_(is_nothing.copy(), is_meant), text, value, wanted)))
    return wanted


def _spark_type(type_: exp.DataType) -> str:
    if isinstance(type_.this, exp.DType) and not any(value for name, value in type_.args.items() if name != "this"):
        return _name_of(type_.this)
    text = _text_of(type_)
    if type_.args.get("nested"):  # sqlglot loses fields whose names are keywords
        raise Unproven(f"a cast to {text}")
    return text


@cache
def _name_of(kind: exp.DType) -> str:
    return _text_of(exp.DataType(this=kind))


def _text_of(type_: exp.DataType) -> str:
    text = type_.sql(SPARK).lower().replace(", ", ",")
    return {"integer": "int", "long": "bigint", "text": "string", "timestamp_ntz": "timestamp_ntz"}.get(text, text)


FORMS: dict[type[exp.Expr], Form] = {exp.Cast: Form(_cast), exp.TryCast: Form(_cast)}
