"""Which text of the compiled SQL came from where. Owns marking a template's syntax tree and reading the marks back.

A mark is a piece of text between two Unicode noncharacters. It goes into the tree after Jinja has applied whitespace
control, so it changes nothing; and never into text that a template may look at (`{% set %}` blocks, macros, filters).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import Environment, nodes

from sqlmesh_like.render.rendered import SourceMap

OPEN, CLOSE = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{OPEN}([dt])([0-9]+){CLOSE}")
_OPAQUE = (nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock)


@dataclass(frozen=True)
class _Offsets:
    """Raw offsets of literal text (start, end) and of `{{` tags, both in file order."""

    data: tuple[tuple[int, int], ...]
    expressions: tuple[int, ...]


def mark(tree: nodes.Template, raw: str, environment: Environment) -> nodes.Template:
    """The tree, with marks in its outputs. Changes and returns `tree`."""
    offsets = _offsets(raw, environment)
    literals = list(tree.find_all(nodes.TemplateData))
    places = {id(node): place for node, place in zip(literals, offsets.data, strict=True)}
    expressions = [
        child
        for output in tree.find_all(nodes.Output)
        for child in output.nodes
        if not isinstance(child, nodes.TemplateData)
    ]
    # `{% print %}` is an output without `{{`: then tags cannot be paired, and only literal text is marked.
    if len(expressions) == len(offsets.expressions):
        starts = zip(expressions, offsets.expressions, strict=True)
        places.update({id(node): (start, start) for node, start in starts})
    for output in _open_outputs(tree):
        output.nodes = [marked for child in output.nodes for marked in _mark_node(child, places)]
    return tree


def _offsets(raw: str, environment: Environment) -> _Offsets:
    position, data, expressions = 0, [], []
    for _, kind, value in environment.lex(raw):
        # Whitespace that `{%-` removed is in no token: the next token is found after it.
        start = raw.find(value, position)
        position = start + len(value)
        if kind == "data":
            data.append((start, position))
        elif kind == "variable_begin":
            expressions.append(start)
    return _Offsets(tuple(data), tuple(expressions))


def _open_outputs(node: nodes.Node) -> Iterator[nodes.Output]:
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Output):
            yield child
        elif not isinstance(child, _OPAQUE):
            yield from _open_outputs(child)


def _mark_node(node: nodes.Expr, places: dict[int, tuple[int, int]]) -> list[nodes.Expr]:
    if id(node) not in places:
        return [node]
    start, end = places[id(node)]
    if isinstance(node, nodes.TemplateData):
        text = f"{OPEN}d{start}{CLOSE}{node.data}{OPEN}t{end}{CLOSE}"
        return [nodes.TemplateData(text, lineno=node.lineno)]
    return [nodes.TemplateData(f"{OPEN}t{start}{CLOSE}", lineno=node.lineno), node]


def read_marks(marked: str, raw: str) -> SourceMap:
    """The rendered text without its marks, and where each part of it came from.

    >>> read_marks("\\ufdd0d0\\ufdd1select \\ufdd0t7\\ufdd17", "select {{ x }}").compiled
    'select 7'
    """
    parts: list[str] = []
    anchors: dict[int, tuple[int, int, bool]] = {}
    length = position = 0
    for match in _MARK.finditer(marked):
        parts.append(marked[position : match.start()])
        length += match.start() - position
        position = match.end()
        anchors[length] = (length, int(match[2]), match[1] == "t")  # the last mark at an offset is the one that counts
    parts.append(marked[position:])
    return SourceMap(raw, "".join(parts), tuple(anchors.values()) or ((0, 0, True),))
