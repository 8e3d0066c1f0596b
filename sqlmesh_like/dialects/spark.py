"""Spark's dialect as sqlglot knows it, corrected where a text would get another meaning in its tree or from it.

Nodes remember the name that their author used (`ORIGINAL_NAME_META_KEY`), and patterns their text: sqlglot has one
class for several functions of Spark's, and translates patterns to Python's. `tests/spark/sql/test_written_texts.py`
compares what Spark makes of a text and of what is written from its tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import DialectType, rename_func
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.time import format_time

from sqlmesh_like.dialects.generators import Write, generate_again
from sqlmesh_like.dialects.node_notes import copy_notes, with_flat_notes
from sqlmesh_like.dialects.predicates import with_whole_comparisons
from sqlmesh_like.dialects.tokens import EXPLICIT_CROSS, TYPES_OF_SUFFIXES, WITH_SUFFIX, readable

_NAME, _PATTERN, _COMMA, _UNIT = "written_name", "written_pattern", "written_comma", "written_unit"
_SUFFIX = "written_suffix"
_FIRST_WORD = re.compile(r"\w+\s*\(\s*(\w+)")
_FORMATTED = (exp.TimeToStr, exp.StrToTime, exp.StrToUnix, exp.UnixToStr, exp.TsOrDsToDate)
"""What functions with a pattern are read as."""
_DAY_OF_WEEK = re.compile("E{1,3}")
"""Patterns of one meaning. Source: https://spark.apache.org/docs/3.5.0/sql-ref-datetime-pattern.html"""


def _correct_tree(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place, without nodes that stand for another function than the author's.

    A hint stays a text: what it names are neither functions nor tables, and no other part of the tree refers to it.
    """
    tree = with_whole_comparisons(tree)
    for hint in list(tree.find_all(exp.Hint)):
        hint.set("expressions", [exp.Var(this=", ".join(part.sql(FINGERPRINT) for part in hint.expressions))])
    for join in tree.find_all(exp.Join):
        if join.kind == EXPLICIT_CROSS:
            join.set("kind", "CROSS")
        elif join.kind == "CROSS":
            join.meta[_COMMA] = True
    for struct in tree.find_all(exp.Struct):
        struct.meta.pop(_NAME, None)  # `named_struct` has other arguments than `struct`, as which it is written
    for call in list(tree.find_all(exp.Anonymous)):
        if (meant := _meant_by(call)) is not None:
            tree = meant if call is tree else tree
            call.replace(meant)
    for node in list(tree.find_all(exp.ArraySize, exp.Levenshtein, exp.ToChar, *_FORMATTED)):
        name, arguments = _name(node), _unknown_arguments(node)
        if arguments is None or not name:
            continue
        made = exp.Anonymous(this=name, expressions=arguments)
        copy_notes(made, node)
        if node is tree:
            return made
        node.replace(made)
    return tree


def _meant_by(call: exp.Anonymous) -> exp.Expr | None:
    """What a call of ours stands for, which the tokens were given before they were a tree; None for any other call."""
    if call.name == _COUNTED:
        value, quantile, frequency = call.expressions
        return exp.Quantile(this=value, quantile=quantile, frequency=frequency)
    if call.name.startswith(_COMPUTED_UNIT):
        call.set("this", call.name.removeprefix(_COMPUTED_UNIT))
    elif call.name.startswith(WITH_SUFFIX):
        suffix = call.name.removeprefix(WITH_SUFFIX)
        number = exp.cast(call.expressions[0], TYPES_OF_SUFFIXES[suffix.upper()], dialect=SPARK)
        number.meta[_SUFFIX] = suffix
        return number
    return None


def _unknown_arguments(node: exp.Expr) -> list[exp.Expr] | None:
    """The arguments of a function that sqlglot has no class for, but takes for another one; None for all others."""
    match node:
        case exp.ArraySize():  # `size` of NULL is -1
            return [node.this] if _name(node) == "ARRAY_SIZE" else None
        case exp.Levenshtein():
            limit = node.args.get("ins_cost")
            return [node.this, node.expression, limit] if limit is not None else None
        case exp.ToChar():
            return [part for part in (node.this, node.args.get("format")) if part is not None]
    if _name(node) == "TO_UNIX_TIMESTAMP" and isinstance(node.args.get("format"), exp.Literal):
        node.set("format", SparkNames.format_time(node.args["format"]))
    pattern = _pattern(node)
    return None if pattern is None or _is_translatable(pattern.name) else [_formatted_value(node), pattern]


def _with_units(tree: exp.Expr, sql: str) -> exp.Expr:
    """The tree, whose functions of a unit remember how it was written: Spark's plans differ by its case."""
    for node in tree.find_all(exp.TimestampAdd, exp.TimestampDiff, exp.DateDiff):
        if word := _FIRST_WORD.match(sql, node.meta["start"]) if "start" in node.meta else None:
            _set_written_unit(node, word[1])
    return tree


def _with_truncated_units(tree: exp.Expr, tokens: Sequence[Token]) -> exp.Expr:
    """The tree, whose truncations of time remember how their unit was written: `date_trunc('month', at)`."""
    nodes = {node.meta.get("start"): node for node in tree.find_all(exp.TimestampTrunc, exp.DateTrunc)}
    for at, token in enumerate(tokens if nodes else ()):
        if (node := nodes.get(token.start)) is not None:
            _set_written_unit(node, _arguments(tokens, at + 1)[_unit_argument(node.key)][0].text)
    return tree


def _unit_argument(name: str) -> int:
    """Which argument of a truncation is the unit: the first one of DATE_TRUNC, the last one of TRUNC."""
    return -1 if name.lower() in ("trunc", exp.DateTrunc.key) else 0


def _set_written_unit(node: exp.Func, written: str) -> None:
    """Give a function the unit of its author's text: of `'q'` sqlglot makes QUARTER, of which Spark knows nothing."""
    unit, known = node.args.get("unit"), exp.TimeUnit.UNABBREVIATED_UNIT_NAME
    if unit is not None and unit.name.upper() in (written.upper(), known.get(written), known.get(written.upper())):
        unit.set("this", written.upper())
        node.meta[_UNIT] = written


def _arguments(tokens: Sequence[Token], opening: int) -> list[list[Token]]:
    """The tokens of each argument of a call."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[opening:]:
        depth += token.token_type == TokenType.L_PAREN
        if token.token_type == TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                break
        if token.token_type == TokenType.COMMA and depth == 1:
            arguments.append([])
        elif depth > 1 or token.token_type != TokenType.L_PAREN:
            arguments[-1].append(token)
    return arguments


def is_literal_with_suffix(node: exp.Expr) -> bool:
    """Whether a cast was written as a literal: `7L`, which beside a decimal has the precision of its digits."""
    return isinstance(node, exp.Cast) and _SUFFIX in node.meta


_COUNTED, _COMPUTED_UNIT = "_sml_percentile_of_counts", "_sml_computed_unit_of_"


def _with_calls_kept(tokens: Sequence[Token]) -> None:
    """Name calls of which sqlglot would leave out a part otherwise until they are a tree.

    PERCENTILE with the number of each value, and truncations of time to a unit that is no literal.
    """
    for at, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if name not in ("percentile", "date_trunc", "trunc") or tokens[at + 1].token_type != TokenType.L_PAREN:
            continue
        arguments = _arguments(tokens, at + 1)
        if name == "percentile":
            token.text = _COUNTED if len(arguments) == 3 else token.text
        elif len(arguments) != 2 or [word.token_type for word in arguments[_unit_argument(name)]] != [TokenType.STRING]:
            token.text = f"{_COMPUTED_UNIT}{token.text}"


def is_comma(join: exp.Join) -> bool:
    """Whether a comma stands for the join, which in Spark is made before the JOINs behind it."""
    return bool(join.meta.get(_COMMA))


def _name(node: exp.Expr) -> str:
    """The name of a function in its author's text, in upper case."""
    return str(node.meta.get(_NAME, "")).upper()


def _pattern(node: exp.Expr) -> exp.Literal | None:
    """The pattern of a function in its author's text."""
    written = node.args.get("format")
    pattern = written.meta.get(_PATTERN) if isinstance(written, exp.Literal) else None
    return exp.Literal.string(pattern) if isinstance(pattern, str) else None


def _formatted_value(node: exp.Expr) -> exp.Expr:
    value: exp.Expr = node.this
    return value.this if isinstance(value, exp.TimeStrToTime) else value


@cache
def _is_translatable(pattern: str) -> bool:
    there = format_time(pattern, Spark.TIME_MAPPING, Spark.TIME_TRIE)
    back = format_time(there, Spark.INVERSE_TIME_MAPPING, Spark.INVERSE_TIME_TRIE) if there else None
    return back is not None and _DAY_OF_WEEK.sub("EEE", back) == _DAY_OF_WEEK.sub("EEE", pattern)


def _usual(self: Generator, node: exp.Func) -> str:
    """What sqlglot writes for a node."""
    if write := SparkGenerator.TRANSFORMS.get(type(node)):
        return str(write(self, node))
    method = getattr(self, f"{node.key}_sql", None)
    return str(method(node)) if method else self.function_fallback_sql(node)


def _to_date_sql(self: Generator, node: exp.TsOrDsToDate) -> str:
    # Without a pattern Spark casts, which accepts texts that the default's own pattern does not.
    return self.func("TO_DATE", node.this, self.format_time(node)) if node.args.get("format") else _usual(self, node)


def _by_name(name: str, *parts: str) -> Callable[[Generator, exp.Func], str]:
    """Writes a function by this name, with these arguments, if its author did."""

    def write(self: Generator, node: exp.Func) -> str:
        return self.func(name, *map(node.args.get, parts)) if _name(node) == name else _usual(self, node)

    return write


def _with_author_pattern(usual: Write) -> Write:
    """Writes a function with its author's pattern."""

    def write(self: Generator, node: exp.Func) -> str:
        pattern, name = _pattern(node), _name(node)
        return usual(self, node) if pattern is None or not name else self.func(name, _formatted_value(node), pattern)

    return write


def _unit_sql(self: Generator, node: exp.Func) -> str:
    written, unit = _usual(self, node), node.meta.get(_UNIT)
    return written.replace(f"({node.text('unit').upper()},", f"({unit},", 1) if unit else written


def _date_trunc_sql(self: Generator, node: exp.Func) -> str:
    written, unit = _usual(self, node), node.meta.get(_UNIT)
    if unit is None:
        return written
    before, quoted, after = (written.partition if isinstance(node, exp.TimestampTrunc) else written.rpartition)(
        f"'{node.text('unit').upper()}'"
    )
    return f"{before}'{unit}'{after}" if quoted else written


def _join_sql(self: Generator, node: exp.Join) -> str:
    return f", {self.sql(node, 'this')}" if is_comma(node) else self.join_sql(node)


def _date_add_sql(self: Generator, node: exp.TsOrDsAdd) -> str:
    days = node.expression
    if _name(node) != "DATE_SUB" or not isinstance(days, exp.Mul):
        return _usual(self, node)
    return self.func("DATE_SUB", node.this, days.this.unnest())


def percentile_sql(self: Generator, node: exp.PercentileCont | exp.PercentileDisc) -> str:
    """A percentile by an order; one that `synonyms` has made a call of the value and the fraction."""
    name = "PERCENTILE_DISC" if isinstance(node, exp.PercentileDisc) else "PERCENTILE_CONT"
    if node.expression is None:
        return self.func(name, node.this)
    order = f"ORDER BY {self.sql(node, 'this')}{' DESC' if node.args.get('desc') else ''}"
    return f"{self.func(name, node.expression)} WITHIN GROUP ({order})"


def _within_group_sql(self: Generator, node: exp.WithinGroup) -> str:
    return f"{self.sql(node, 'this')} WITHIN GROUP ({self.sql(node, 'expression').strip()})"


def _log_sql(self: Generator, node: exp.Log) -> str:
    """LOG10 and LOG2 by their names: to Spark, LOG(10, x) is a quotient of two logarithms, and of 1000 less than 3."""
    named = _name(node) in ("LOG10", "LOG2")
    return self.func(_name(node), node.expression) if named else _usual(self, node)


def _cast_sql(self: Generator, node: exp.Cast) -> str:
    return f"{node.this.name}{node.meta[_SUFFIX]}" if is_literal_with_suffix(node) else self.cast_sql(node)


class SparkTexts(Spark):
    """Writes one text for all spellings of one meaning."""

    generate = generate_again
    writes: ClassVar[Mapping[type[exp.Expr], Write]] = {
        exp.Cast: _cast_sql,
        exp.CurrentCatalog: lambda *_: "CURRENT_CATALOG()",
        exp.Hint: lambda *_: "",
        exp.Localtimestamp: lambda *_: "LOCALTIMESTAMP()",
        exp.Log: _log_sql,
        exp.PercentileCont: percentile_sql,
        exp.PercentileDisc: percentile_sql,
        exp.Quantile: lambda self, node: self.func(
            "PERCENTILE", *(node.args.get(part) for part in ("this", "quantile", "frequency"))
        ),
        exp.TsOrDsToDate: _to_date_sql,
        exp.UnixDate: rename_func("UNIX_DATE"),
        exp.WithinGroup: _within_group_sql,
    }


class SparkNames(SparkTexts):
    """Reads the texts of authors; writes functions, patterns and WITH as they are there."""

    ORIGINAL_NAME_META_KEY = _NAME
    nests_ctes = True
    writes: ClassVar[Mapping[type[exp.Expr], Write]] = {
        **SparkTexts.writes,
        exp.DateDiff: _unit_sql,
        exp.DateTrunc: _date_trunc_sql,
        exp.TimestampTrunc: _date_trunc_sql,
        exp.TimestampAdd: _unit_sql,
        exp.TimestampDiff: _unit_sql,
        exp.Hint: lambda _, node: f" /*+ {node.expressions[0].name} */",
        exp.Join: _join_sql,
        exp.Ln: _by_name("LOG", "this"),
        exp.Space: rename_func("SPACE"),
        exp.StrPosition: _by_name("INSTR", "this", "substr"),
        exp.TsOrDsAdd: _date_add_sql,
        exp.StrToTime: _with_author_pattern(_usual),
        exp.StrToUnix: _with_author_pattern(_by_name("TO_UNIX_TIMESTAMP", "this", "format")),
        exp.TimeToStr: _with_author_pattern(_usual),
        exp.TsOrDsToDate: _with_author_pattern(_to_date_sql),
        exp.UnixToStr: _with_author_pattern(_usual),
    }

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        try:
            return super().tokenize(sql, dialect)
        except TokenError as error:  # the tokenizer wraps every exception, a want of memory too
            wrapped = error.__cause__ or error.__context__  # which it names only if it still has the memory for that
            if isinstance(wrapped, MemoryError):
                raise wrapped from None
            raise

    def parse(self, sql: str, **opts: Any) -> list[exp.Expr | None]:
        tokens = readable(self.tokenize(sql))
        _with_calls_kept(tokens)
        trees = self.parser(**opts).parse(tokens, sql)
        made = (None if tree is None else _with_units(_correct_tree(tree), sql) for tree in trees)
        return [None if tree is None else with_flat_notes(_with_truncated_units(tree, tokens)) for tree in made]

    @classmethod
    def format_time(cls, expression: str | exp.Expr | None) -> exp.Expr | None:
        made = super().format_time(expression)
        if isinstance(expression, exp.Literal) and isinstance(made, exp.Literal) and made is not expression:
            made.meta[_PATTERN] = expression.name
        return made


SPARK = SparkNames()
"""Reads the texts of authors, and writes those that Spark runs."""
FINGERPRINT = SparkTexts()
"""Writes the texts that fingerprints are made of."""
