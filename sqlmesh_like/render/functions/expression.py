"""The expression of a function: what may stand in it, and where it names its arguments.

Every name must be an argument's, or the expression would read a column of whichever query calls it. So the names of the
text are checked against those that the tree has: sqlglot makes units of some names that Spark takes for columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, ProjectError, SqlError, nearest
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.render.functions.syntax import Sql, read_sql

Place = Callable[[int], Location]
"""Where an offset of a text is in its file."""
SELECT = "select "
"""Before an expression, so that it is read as one of a query."""
_UNITS = frozenset(
    "year years quarter quarters month months week weeks day days hour hours minute minutes second seconds "
    "millisecond milliseconds microsecond microseconds dayofweek dow dayofyear doy yearofweek to".split()
)
_OF_UNITS = frozenset("extract timestampadd timestampdiff dateadd date_add datediff date_diff timediff".split())
"""Functions whose first argument is a unit in Spark's grammar."""
_WORDS = frozenset("leading trailing both".split())
_FORBIDDEN: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Query, exp.Subquery), "a subquery"),
    (exp.Window, "a window"),
    (exp.AggFunc, "an aggregate"),
    ((exp.Star, exp.Explode, exp.UDTF), "what gives several values"),
    ((exp.Parameter, exp.Placeholder, exp.SessionParameter), "a parameter of a statement"),
)


@dataclass(frozen=True)
class ArgumentName:
    """An argument's name in an expression: its position among the arguments and the end of the name.

    `bound`: lower-case names of the variables of lambdas around it.
    """

    parameter: int
    end: int
    bound: frozenset[str]


@dataclass(frozen=True)
class Expression:
    """A function's expression: its text from `start` to `end`, and the names of arguments by their offsets."""

    sql: Sql
    start: int
    end: int
    names: Mapping[int, ArgumentName]


def read_expression(text: str, functions: Collection[str], place: Place, function: FunctionFile) -> Expression:
    """The expression in a text that starts with `SELECT`. Raises SqlError with its location in the function's file."""
    name = function.name
    _refuse_query(text, place, name)
    try:
        sql = read_sql(text, functions)
    except ParseError as error:
        raise SqlError(_parse_error_message(name, error), location=place(_offset(text, error))) from None
    except (SqlglotError, RecursionError) as error:
        raise SqlError(f"function {name!r} is not an expression: {error}", location=place(len(SELECT))) from None
    first = sql.tokens[1]
    _require_one(sql, place, name)
    tree = sql.trees[0].expressions[0]
    for kinds, what in _FORBIDDEN:
        if (part := tree.find(*(kinds if isinstance(kinds, tuple) else (kinds,)))) is not None:
            starts = [node.meta["start"] for node in part.walk() if "start" in node.meta]
            hint = "an expression over the arguments of one row is allowed"
            place_of = place(min(starts, default=first.start))
            raise SqlError(f"function {name!r} contains {what}", location=place_of, hint=hint)
    names = dict(_names(tree, function, place))
    _require_known_names(sql, tree, names, function, place)
    return Expression(sql, first.start, sql.tokens[-1].end + 1, names)


def require_constant(text: str, place: Location) -> None:
    """Raise ProjectError unless a default is a value without names, such as `0` or `'EUR'`."""
    try:
        trees = read_sql(SELECT + text, ()).trees
    except (SqlglotError, RecursionError):
        trees = []
    tree = trees[0] if len(trees) == 1 else None
    is_one = isinstance(tree, exp.Select) and len(tree.expressions) == 1 and not _clauses(tree)
    if tree is None or not is_one or tree.find(exp.Column, exp.Subquery, exp.AggFunc, exp.Window, exp.Alias):
        hint = "a default is a value in SQL: 0, true, or a text with its own quotes: \"'EUR'\""
        raise ProjectError(f"default_value {text!r} is not a value", location=place, hint=hint)


def require_name(name: str, place: Location) -> None:
    """Raise ProjectError if an expression cannot name an argument so: `current_date` is a function there."""
    try:
        (tree,) = read_sql(SELECT + name, ()).trees
    except (SqlglotError, RecursionError, ValueError):
        tree = exp.Null()
    column = tree.expressions[0] if isinstance(tree, exp.Select) and len(tree.expressions) == 1 else None
    if not isinstance(column, exp.Column) or column.name != name or _clauses(tree):
        hint = "it has a meaning of its own in SQL: choose another name"
        raise ProjectError(f"{name!r} cannot be the name of an argument", location=place, hint=hint)


def require_type(type_: str, place: Location) -> None:
    """Raise ProjectError unless Spark's syntax has the type."""
    try:
        (tree,) = read_sql(f"{SELECT}cast(null as {type_})", ()).trees
    except (SqlglotError, RecursionError, ValueError):
        tree = exp.Null()
    casts = tree.expressions if isinstance(tree, exp.Select) and not _clauses(tree) else []
    if len(casts) != 1 or not isinstance(casts[0], exp.Cast):
        raise ProjectError(f"{type_!r} is not a type", location=place, hint="write it as in CAST(… AS type)")


_ONE = "write one expression over its arguments, without SELECT, alias and semicolon"


def _refuse_query(text: str, place: Place, name: str) -> None:
    """Raise SqlError for a text that is empty, starts as a query, or has a semicolon."""
    try:
        tokens = SPARK.tokenize(text)[1:]
    except SqlglotError:
        return
    if not tokens:
        raise SqlError(f"function {name!r} is empty", location=place(0), hint=_ONE)
    wrong = [token for token in tokens[:1] if token.token_type in (TokenType.SELECT, TokenType.WITH)]
    wrong += [token for token in tokens if token.token_type == TokenType.SEMICOLON]
    if wrong:
        raise SqlError(f"function {name!r} is not one expression", location=place(wrong[0].start), hint=_ONE)


def _require_one(sql: Sql, place: Place, name: str) -> None:
    tree = sql.trees[0] if len(sql.trees) == 1 else None
    is_one = isinstance(tree, exp.Select) and len(tree.expressions) == 1 and not _clauses(tree)
    if tree is None or not is_one or isinstance(tree.expressions[0], exp.Alias | exp.Star | exp.Query):
        raise SqlError(f"function {name!r} is not one expression", location=place(len(SELECT)), hint=_ONE)


def _clauses(tree: exp.Expr) -> bool:
    return any(value for key, value in tree.args.items() if key != "expressions")


def _names(tree: exp.Expr, function: FunctionFile, place: Place) -> Iterator[tuple[int, ArgumentName]]:
    positions = {argument.name.lower(): number for number, argument in enumerate(function.arguments)}
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        start, end = first.meta.get("start"), first.meta.get("end")
        if start is None or end is None:
            raise SqlError(f"{column.sql()} cannot be read in function {function.name!r}", location=place(len(SELECT)))
        if first.name.lower() not in positions:
            known = [argument.name for argument in function.arguments]
            hint = nearest(first.name, known) or (f"its arguments: {', '.join(known)}" if known else "it has none")
            message = f"function {function.name!r} has no argument {first.name!r}"
            raise SqlError(message, location=place(start), hint=hint)
        bound = frozenset(_variables(lambda_) for lambda_ in _lambdas_around(column))
        yield start, ArgumentName(positions[first.name.lower()], end + 1, frozenset().union(*bound))


def _lambdas_around(node: exp.Expr) -> Iterator[exp.Lambda]:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Lambda):
            yield node


def _variables(function: exp.Lambda) -> frozenset[str]:
    return frozenset(variable.name.lower() for variable in function.expressions)


def _require_known_names(
    sql: Sql, tree: exp.Expr, names: Collection[int], function: FunctionFile, place: Place
) -> None:
    """Raise SqlError for a name in the text that is not an argument in the tree, and might be a column in a query."""
    arguments = {argument.name.lower() for argument in function.arguments}
    variables = frozenset[str]().union(*map(_variables, tree.find_all(exp.Lambda)))
    if both := arguments & variables:
        hint = "rename the variable"
        message = f"a variable of a lambda in function {function.name!r} has the name of an argument: {min(both)}"
        raise SqlError(message, location=place(len(SELECT)), hint=hint)
    for number, token in enumerate(sql.tokens):
        word = token.text.lower()
        is_name = word in arguments or (token.token_type in (TokenType.VAR, TokenType.IDENTIFIER))
        is_value = token.token_type in (TokenType.STRING, TokenType.NUMBER)
        if not is_name or is_value or token.start in names or word in variables:
            continue
        if not _is_other_name(sql.tokens, number) and (word in arguments or not _is_unit(sql.tokens, number)):
            hint = "rename the argument" if word in arguments else "write a text in quotes, and an argument by its name"
            message = f"{token.text!r} is not read as an argument of function {function.name!r} here"
            raise SqlError(message, location=place(token.start), hint=hint)


def _is_other_name(tokens: Sequence[Token], number: int) -> bool:
    """Whether a name is a field, a function or an alias by its neighbours, or the type of a cast."""
    before = tokens[number - 1].token_type
    after = tokens[number + 1].token_type if number + 1 < len(tokens) else None
    return before in (TokenType.DOT, TokenType.ALIAS, TokenType.DCOLON) or after in (TokenType.L_PAREN, TokenType.COLON)


def _is_unit(tokens: Sequence[Token], number: int) -> bool:
    word, before = tokens[number].text.lower(), tokens[number - 1]
    if word in _WORDS:
        return before.token_type == TokenType.L_PAREN
    if word not in _UNITS:
        return False
    if before.token_type == TokenType.L_PAREN:
        return tokens[number - 2].text.lower() in _OF_UNITS
    is_after_unit = before.text.lower() in _UNITS
    return is_after_unit or before.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN)


def _parse_error_message(name: str, error: ParseError) -> str:
    described = error.errors[0].get("description", "") if error.errors else ""
    said = str(described).partition(". ")[0].rstrip(".")
    said = "a value is missing" if "<class" in said else said
    return f"function {name!r} is not an expression{f': {said}' if said else ''}"


def _offset(text: str, error: ParseError) -> int:
    """Where a text cannot be parsed: the parser gives the line and the last column of a token."""
    if not error.errors:
        return len(SELECT)
    line, column = error.errors[0].get("line") or 1, error.errors[0].get("col") or 1
    start = sum(len(part) for part in text.splitlines(keepends=True)[: line - 1])
    length = len(error.errors[0].get("highlight") or " ")
    return max(len(SELECT), min(start + column - length, len(text) - 1))
