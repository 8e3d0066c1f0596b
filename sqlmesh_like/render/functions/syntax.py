"""Calls of functions in a text of SQL. Owns finding them; texts are read as authors' queries are.

A call is found in the syntax tree, and its arguments in the tokens: the new query consists of the author's own text,
which no generator could have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.dialects.tokens import readable

_PREFIX = "_sml_function_"
MAX_BRACKETS = 200
"""Brackets that the parser is given; a text of more is refused when it is analyzed."""
_OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


@dataclass(frozen=True)
class Call:
    """A call of a function: offsets of its name, of the end of its brackets, and of each argument's text."""

    name: str
    start: int
    end: int
    arguments: tuple[tuple[int, int], ...]
    node: exp.Anonymous


@dataclass(frozen=True)
class Sql:
    """A text with its tokens and trees; calls of `names` are of functions of the project."""

    text: str
    tokens: Sequence[Token]
    trees: Sequence[exp.Expr]

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {token.start: number for number, token in enumerate(self.tokens)}

    def calls(self) -> Iterator[Call]:
        """The calls of functions of the project, in no order."""
        for tree in self.trees:
            for node in tree.find_all(exp.Anonymous):
                if node.name.startswith(_PREFIX) and (start := node.meta.get("start")) in self._positions:
                    yield self._call(node, self._positions[start])

    def _call(self, node: exp.Anonymous, at: int) -> Call:
        depth, begin, arguments = 0, at + 2, list[tuple[int, int]]()
        for number in range(at + 1, len(self.tokens)):
            kind = self.tokens[number].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
                if number > begin:
                    arguments.append((self.tokens[begin].start, self.tokens[number - 1].end + 1))
                begin = number + 1
            if depth == 0:
                break
        name = node.name.removeprefix(_PREFIX)
        return Call(name, self.tokens[at].start, self.tokens[number].end + 1, tuple(arguments), node)


def read_sql(text: str, names: Collection[str]) -> Sql:
    """A text read as a query, or several. Raises SqlglotError or RecursionError where that cannot be done.

    `names`, in lower case, are those of functions: they are read as calls even where sqlglot knows such a function, of
    another database.
    """
    tokens = SPARK.tokenize(text)
    if _depth(tokens) > MAX_BRACKETS:
        raise SqlglotError("nested too deep")
    marked = [
        _prefix_token(token) if _is_call(tokens, number) and token.text.lower() in names else token
        for number, token in enumerate(tokens)
    ]
    trees = SPARK.parser().parse(readable(marked), text)
    return Sql(text, tokens, [tree for tree in trees if tree is not None])


def _is_call(tokens: Sequence[Token], number: int) -> bool:
    """Whether a token is a name before a bracket, and no part of a longer name."""
    if tokens[number].token_type not in _NAMES or number + 1 == len(tokens):
        return False
    is_qualified = number > 0 and tokens[number - 1].token_type == TokenType.DOT
    return tokens[number + 1].token_type == TokenType.L_PAREN and not is_qualified


def _prefix_token(token: Token) -> Token:
    name = _PREFIX + token.text.lower()
    return Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)


def _depth(tokens: Sequence[Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        deepest = max(depth, deepest)
    return deepest


def words_of(text: str) -> frozenset[str]:
    """The names in a text, in lower case."""
    return frozenset(token.text.lower() for token in SPARK.tokenize(text) if token.token_type in _NAMES)
