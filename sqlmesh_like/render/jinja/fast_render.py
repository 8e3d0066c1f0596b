"""Templates that only call `ref`, `source`, `config`, `var` and the like with constants. Owns rendering these fast.

Most models and all generic tests are such templates, and compiling each with Jinja takes most of the time of reading a
project. Whatever may differ between Python and Jinja is left to Jinja, and so is every error: Jinja knows its position.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlmesh_like.render.jinja.source_map import CLOSE, OPEN
from sqlmesh_like.render.rendered import SourceMap

_TAG = re.compile(r"\{\{(?![-+])(.*?)(?<![-+])\}\}", re.DOTALL)
_ELSEWHERE = re.compile(r"\{[%#]|\r|\{\{[-+]|[" + OPEN + CLOSE + "]")
_STRANGE = re.compile(r"[\\#]")  # escapes and comments: Python's differ from Jinja's
_CALLED = frozenset({"ref", "source", "config", "var", "env_var", "get_where_subquery"})
_WORDS: Mapping[str, object] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class _Text:
    text: str
    start: int


@dataclass(frozen=True)
class _Tag:
    call: ast.Call
    start: int


def render_plain(raw: str, scope: Mapping[str, object]) -> SourceMap | None:
    """The rendered text with its source map; None if Jinja must render the template.

    >>> render_plain("select * from {{ ref('a') }}", {"ref": str.upper}).compiled
    'select * from A'
    >>> render_plain("{{ ref('a') | lower }}", {"ref": str.upper}) is None
    True
    """
    parts = _parts(raw)
    if parts is None:
        return None
    texts: list[str] = []
    anchors: dict[int, tuple[int, int, bool]] = {}
    length = 0
    for part in parts:
        if isinstance(part, _Text):
            anchors[length] = (length, part.start, False)
            texts.append(part.text)
            length += len(part.text)
            anchors[length] = (length, part.start + len(part.text), True)
        else:
            anchors[length] = (length, part.start, True)
            texts.append(str(_value(part.call, scope)))
            length += len(texts[-1])
    return SourceMap(raw, "".join(texts), tuple(anchors.values()) or ((0, 0, True),))


@lru_cache(maxsize=4096)
def _parts(raw: str) -> tuple[_Text | _Tag, ...] | None:
    if _ELSEWHERE.search(raw):
        return None
    shown = raw.removesuffix("\n")  # as Jinja does, once
    parts: list[_Text | _Tag] = []
    position = 0
    for tag in _TAG.finditer(shown):
        call = _call(tag[1])
        if call is None:
            return None
        parts += [_Text(shown[position : tag.start()], position)] if tag.start() > position else []
        parts.append(_Tag(call, tag.start()))
        position = tag.end()
    parts += [_Text(shown[position:], position)] if position < len(shown) else []
    is_whole = shown.count("{{") == sum(isinstance(part, _Tag) for part in parts)
    return tuple(parts) if is_whole else None


def _call(expression: str) -> ast.Call | None:
    if _STRANGE.search(expression) or not expression.isascii():
        return None
    text = expression.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.Call) and _is_plain(tree, text.splitlines()) else None


def _is_plain(node: ast.expr, lines: list[str]) -> bool:
    """Whether a value means the same in both languages. A string with a prefix does not: only Python has prefixes."""
    match node:
        case ast.Constant(value=str()):
            return lines[node.lineno - 1][node.col_offset] in "'\""
        case ast.Constant(value=bool() | int() | float() | None):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return not isinstance(number, bool)
        case ast.Name(id=name):
            return name in _WORDS
        case ast.List(elts=items):
            return all(_is_plain(item, lines) for item in items)
        case ast.Dict(keys=keys, values=values):
            return all(item is not None and _is_plain(item, lines) for item in (*keys, *values))
        case ast.Call(func=function, args=args, keywords=keywords):
            is_known = _is_known(function)
            named = [word.value for word in keywords if word.arg is not None]
            return is_known and len(named) == len(keywords) and all(_is_plain(item, lines) for item in (*args, *named))
    return False


def _is_known(function: ast.expr) -> bool:
    """Whether calls of this function are rendered here: `ref`, `test_unique`, `tools.test_range`."""
    match function:
        case ast.Name(id=name):
            return name in _CALLED or name.startswith("test_")
        case ast.Attribute(value=ast.Name(), attr=name):
            return name.startswith("test_")
    return False


def _value(node: ast.expr, scope: Mapping[str, object]) -> object:
    """Evaluate a node: lists and mappings are new ones each time, since templates may change them."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _WORDS[name]
        case ast.List(elts=items):
            return [_value(item, scope) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_value(key, scope): _value(value, scope) for key, value in pairs if key is not None}
        case ast.UnaryOp(operand=operand):
            number = _value(operand, scope)
            assert isinstance(number, int | float)
            return -number
        case ast.Call(func=called, args=args, keywords=keywords):
            function = _function(called, scope)
            assert callable(function)
            named = {word.arg: _value(word.value, scope) for word in keywords if word.arg is not None}
            return function(*[_value(arg, scope) for arg in args], **named)
    raise AssertionError(ast.dump(node))


def _function(called: ast.expr, scope: Mapping[str, object]) -> object:
    """The function that is called. Raises LookupError or AssertionError if only Jinja may be able to resolve it."""
    if isinstance(called, ast.Name):
        return scope[called.id]
    assert isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
    package = scope[called.value.id]
    assert isinstance(package, Mapping) and not hasattr(package, called.attr)  # which Jinja would take first
    return package[called.attr]
