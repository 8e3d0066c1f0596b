"""Types of nested values: structs, items, maps, and functions with a lambda. Pure, over the types of operands."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.coercion import INTEGERS, TIMES, VOID, wider
from sqlmesh_like.analyze.spark_types.nested_types import element_of, entry_of, fields_of, type_of_schema
from sqlmesh_like.analyze.spark_types.refusal import Refusal

TypeOf = Callable[[exp.Expr], str | None]
MEMBERSHIPS = (
    exp.ArrayAppend,
    exp.ArrayPrepend,
    exp.ArrayInsert,
    exp.ArrayRemove,
    exp.ArrayContains,
    exp.MapContainsKey,
)
_NUMBERS = (*INTEGERS, "float", "double")


def parameter_type(name: exp.Identifier, of: TypeOf) -> str | None:
    """Type of a lambda's parameter, by what the function that it is given to reads."""
    function = name.find_ancestor(exp.Lambda)
    while function is not None and name.name not in [parameter.name for parameter in function.expressions]:
        function = function.find_ancestor(exp.Lambda)
    if function is None or function.parent is None:
        return None
    position = [parameter.name for parameter in function.expressions].index(name.name)
    types = _parameters(function.parent, of)
    return types[position] if position < len(types) else None


def _parameters(caller: exp.Expr, of: TypeOf) -> list[str | None]:
    match caller:
        case exp.Transform() | exp.ArrayFilter() | exp.Exists():
            return [element_of(of(caller.this)), "int"]
        case exp.Reduce():
            return [of(caller.args["initial"]), element_of(of(caller.this))]
        case exp.Anonymous():
            read = [of(argument) for argument in caller.expressions if not isinstance(argument, exp.Lambda)]
            entry = entry_of(read[0]) if read else None
            match caller.name.lower():
                case "forall" | "zip_with":
                    return [element_of(type_) for type_ in read]
                case "map_filter" | "transform_keys" | "transform_values":
                    return list(entry or ())
    return []


def applied_type(node: exp.Expr, of: TypeOf) -> str | None:
    """TRANSFORM, and AGGREGATE, which has the type of its start or that of what is made of the end."""
    if isinstance(node, exp.Transform):
        body = _body(node.expression, of)
        return f"array<{body}>" if body else None
    initial, finish = of(node.args["initial"]), node.args.get("finish")
    if initial is None or _body(node.args["merge"], of) != initial:
        return None
    return initial if finish is None else _body(finish, of)


def mapped_type(name: str, arguments: tuple[exp.Expr, ...], of: TypeOf) -> str | None:
    """Functions with a lambda for which sqlglot has no class."""
    body, entry = _body(arguments[-1], of), entry_of(of(arguments[0]))
    if body is None:
        return None
    if name == "zip_with":
        return f"array<{body}>"
    if entry is None:
        return None
    return f"map<{body},{entry[1]}>" if name == "transform_keys" else f"map<{entry[0]},{body}>"


def _body(function: exp.Expr, of: TypeOf) -> str | None:
    type_ = of(function.this) if isinstance(function, exp.Lambda) else None
    return None if type_ == VOID else type_


def membership_type(node: exp.Expr, of: TypeOf) -> str | Refusal | None:
    """Functions of a collection and a value that must be of one type with its elements or keys."""
    value = node.args.get("key") or node.expression
    whole, one = of(node.this), of(value) if isinstance(value, exp.Expr) else None
    is_asked = isinstance(node, exp.ArrayContains | exp.MapContainsKey)
    entry = entry_of(whole)
    element = entry[0] if isinstance(node, exp.MapContainsKey) and entry else element_of(whole)
    if whole is None or one is None:
        return "boolean" if is_asked else None
    if element is None and whole != VOID:
        kind = "a map" if isinstance(node, exp.MapContainsKey) else "an array"
        return Refusal(f"{node.key.upper()} takes {kind}, not {whole}")
    if element is not None and wider(element, one, text_wins=False) is None:
        return Refusal(f"{whole} cannot hold {one}")
    if is_asked:
        return "boolean"
    if element is None or one in (element, VOID):
        return whole
    return f"array<{wider(element, one)}>" if element in _NUMBERS and one in _NUMBERS else None


def map_type(node: exp.VarMap, of: TypeOf) -> str | None:
    entry = [element_of(of(node.args[part])) for part in ("keys", "values")]
    return f"map<{entry[0]},{entry[1]}>" if all(entry) and VOID not in entry else None


def flat_type(type_: str | None) -> str | Refusal | None:
    element = element_of(type_)
    if type_ is None or (element and element.startswith("array<")):
        return element
    return Refusal(f"FLATTEN takes an array of arrays, not {type_}")


def struct_type(node: exp.Struct, of: TypeOf) -> str | None:
    fields = []
    for field in node.expressions:
        type_ = of(field.expression) if isinstance(field, exp.PropertyEQ) else None
        if type_ in (None, VOID) or not isinstance(field.this, exp.Identifier):
            return None
        fields.append(f"{field.this.name}:{type_}")
    return f"struct<{','.join(fields)}>" if fields else None


def item_type(bracket: exp.Bracket, of: TypeOf) -> str | None:
    """A struct's field, an array's element or a map's value."""
    type_, (index, *more) = of(bracket.this), bracket.expressions
    if more or type_ is None:
        return None
    if isinstance(index, exp.Literal) and index.is_string and type_.startswith("struct<"):
        fields = {name.lower(): field_type for name, field_type in fields_of(type_).items()}
        return fields.get(index.name.lower())
    entry = entry_of(type_)
    return entry[1] if entry else element_of(type_)


def parsed_type(node: exp.FromJson) -> str | None:
    """FROM_JSON with a schema that is written out."""
    schema = node.expression
    return type_of_schema(schema.name) if isinstance(schema, exp.Literal) and schema.is_string else None


def sequence_type(node: exp.GenerateSeries, of: TypeOf) -> str | None:
    ends = {of(end) for part in ("start", "end") if (end := node.args.get(part)) is not None}
    type_ = ends.pop() if len(ends) == 1 else None
    return f"array<{type_}>" if type_ in (*INTEGERS, "date", *TIMES) else None
