"""Errors of YAML's parser, in terms of the text that was written. Owns message and position.

Only punctuation and columns of the text are repeated: the rest may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import yaml

from sqlmesh_like.errors import Location

_ITEM = re.compile(r"\s*(?=-(?:\s|$))")
_KEY = re.compile(r"(?:\s*-\s)*\s*(?=[^\s#-])")


def yaml_fault(error: yaml.MarkedYAMLError, text: str, path: str) -> tuple[str, Location]:
    """The message and location of an error of the parser."""
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return _parsers_words(error), Location(path)
    problem, lines = str(error.problem or ""), text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "'\\t'" in problem:
        return "a tab where YAML allows spaces only", _at(mark, path)
    if character := re.match(r"found character '([%`@])'", problem):
        return f"a text that begins with {character[1]} needs quotes", _at(mark, path)
    if "end of stream" in problem and context is not None and "quoted" in str(error.context):
        return "this quote is never closed", _at(context, path)
    if "flow" in str(error.context) and context is not None and context.line != mark.line:
        return "this bracket is never closed", _at(context, path)
    if problem == "could not find expected ':'" and context is not None:
        sign = "-" if lines[context.line].lstrip().startswith("-") else ":"
        return f"a space is missing behind the {sign}", _at(context, path)
    if problem == "mapping values are not allowed here" and ": " in line[: mark.column]:
        return "a text that holds a colon and a space needs quotes", _at(mark, path)
    if "<block end>" in problem or "mapping values" in problem:
        is_item = "sequence" in problem or "'-'" in problem
        first = context.line if context is not None else 0
        starts = ((_ITEM if is_item else _KEY).match(line) for line in lines[first : mark.line])
        if indents := [start.end() for start in starts if start is not None]:
            here = len(line) - len(line.lstrip())
            block = min(reversed(indents), key=lambda indent: abs(indent - here))
            what = "list" if is_item else "mapping"
            return f"line {mark.line + 1} is indented {here}, its {what} {block}", Location(
                path, mark.line + 1, here + 1
            )
    return _parsers_words(error), _at(mark, path)


def split_types(mapping: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node]]:
    """Values in braces that were split at a comma of their own, as in `{data_type: decimal(12,2)}`, joined again."""
    if not mapping.flow_style:
        return
    for (_, value), (cut, _) in pairwise(mapping.value):
        is_cut = isinstance(value, yaml.ScalarNode) and isinstance(cut, yaml.ScalarNode)
        if is_cut and re.fullmatch(r"[a-z]+\(\d+", value.value) and re.fullmatch(r"\d+\)", cut.value):
            yield f"{value.value},{cut.value}", value


def _parsers_words(error: yaml.MarkedYAMLError) -> str:
    # The name of an alias or a tag is the text after * or !, which may be a password without its quotes.
    problem = re.sub(r"(?<=alias|. tag) ['\"].*", "", str(error.problem or "cannot be read"), flags=re.DOTALL)
    return problem if error.context is None else f"{problem} ({error.context})"


def _at(mark: yaml.Mark, path: str) -> Location:
    return Location(path, mark.line + 1, mark.column + 1)
