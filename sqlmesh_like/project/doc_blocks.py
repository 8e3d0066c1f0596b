"""Doc blocks: `{% docs name %} … {% enddocs %}` in Markdown files, and the descriptions that quote them by `doc()`.

Owns reading the blocks and the texts of `description` keys; `properties` decides which entries have one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import TemplateError

from sqlmesh_like.errors import JinjaError, Location, ProjectError, nearest
from sqlmesh_like.limits.record import note_place
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.nodes import ColumnDoc, DocBlock
from sqlmesh_like.project.reading.bounds import BoundedSandbox, TemplateLimit, enforce_limits
from sqlmesh_like.project.reading.files import files_under, read_text, relative
from sqlmesh_like.project.reading.values import YamlWords, has_jinja
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.semantic.time_spines import granularity

_TAG = re.compile(r"\{%[-+]?\s*(?P<end>end)?docs\b\s*(?P<name>[^%\s]*)\s*[-+]?%\}")
_NAME = re.compile(r"[A-Za-z_]\w*")


def read_doc_blocks(root: Path, folders: Iterable[str], project: str) -> tuple[DocBlock, ...]:
    """The blocks of all Markdown files under the folders, in file order.

    Raises ProjectError for a block that is not closed, or whose name is invalid or taken.
    """
    blocks: dict[str, DocBlock] = {}
    for path in files_under(root, dict.fromkeys(folders), (".md",)):
        for block in _blocks(read_text(path, root), relative(path, root), project):
            if block.name in blocks:
                hint = f"the first is declared at {blocks[block.name].declared_at}"
                raise ProjectError(f"doc block {block.name!r} is there twice", location=block.declared_at, hint=hint)
            blocks[block.name] = block
    return tuple(blocks.values())


def _blocks(text: str, path: str, project: str) -> Iterable[DocBlock]:
    opened: re.Match[str] | None = None
    lines = [0, *(newline.end() for newline in re.finditer("\n", text))]
    for tag in _TAG.finditer(text):
        place = _place(lines, tag.start(), path)
        if (opened is None) == bool(tag["end"]):
            message = "enddocs without docs before it" if tag["end"] else "docs inside docs: the first is not closed"
            raise ProjectError(message, location=place, hint="write {% docs name %} … {% enddocs %}")
        if opened is None:
            name = tag["name"]
            if not _NAME.fullmatch(name):
                hint = "write {% docs name %}, the name of letters, digits and underscores"
                raise ProjectError(
                    f"{name!r} is not a valid doc block name" if name else "docs needs a name",
                    location=place,
                    hint=hint,
                )
            opened = tag
            continue
        start = _place(lines, opened.start(), path)
        content = _render_block(text[opened.end() : tag.start()], start)
        yield DocBlock(NodeId("doc", project, opened["name"]), opened["name"], content, start)
        opened = None
    if opened is not None:
        place = _place(lines, opened.start(), path)
        raise ProjectError(f"doc block {opened['name']!r} is not closed", location=place, hint="add {% enddocs %}")


def _render_block(content: str, place: Location) -> str:
    """Render the Jinja of a block, which has no access to the project, as in dbt."""
    note_place(place)
    if not has_jinja(content) and "\r" not in content:  # Jinja would only make line ends alike
        return content.strip()
    try:
        with enforce_limits():
            return BoundedSandbox().from_string(content).render().strip()
    except TemplateError as error:
        raise JinjaError(f"invalid Jinja in a doc block: {error.message}", location=place) from error
    except TemplateLimit as error:
        raise JinjaError(f"this doc block is not rendered: {error.reason}", location=place) from None
    except (RecursionError, MemoryError) as error:
        raise JinjaError("this doc block is nested too deep", location=place) from error
    except Exception as error:  # whatever a template's code raises is the template's error
        raise JinjaError(f"cannot evaluate a doc block: {error}", location=place) from error


def _place(lines: Sequence[int], offset: int, path: str) -> Location:
    """The place of an offset in a file whose lines begin at these offsets."""
    line = bisect_right(lines, offset)
    return Location(path, line, offset - lines[line - 1] + 1)


@dataclass(frozen=True)
class Docs:
    """`doc()` of descriptions: `doc('name')` or `doc('package', 'name')`. `texts`: by package and name, the root first.

    As in dbt a name alone means a block of the own package, else of the root project, else of any other.
    """

    package: str
    texts: Mapping[str, Mapping[str, str]]

    def __call__(self, *names: str) -> str:
        """The text of a block. Raises JinjaError with the nearest name if there is no such block."""
        if not 1 <= len(names) <= 2:
            raise JinjaError("doc takes a name, or a package and a name")
        name = names[-1]
        if len(names) == 2 and names[0] not in self.texts:
            hint = nearest(names[0], self.texts) or f"this project is {self.package!r}"
            raise JinjaError(f"doc names package {names[0]!r}, which is not installed", hint=hint)
        searched = names[:1] if len(names) == 2 else (self.package, *self.texts)
        for package in searched:
            if name in self.texts.get(package, {}):
                return self.texts[package][name]
        known = [block for package in searched for block in self.texts.get(package, {})]
        hint = nearest(name, known) or "write {% docs name %} … {% enddocs %} in a .md file"
        raise JinjaError(f"no doc block is named {name!r}", hint=hint)


class Descriptions:
    """Reads the descriptions of YAML entries and their columns, with Jinja rendered, `doc()` included."""

    def __init__(self, words: YamlWords, docs: Docs) -> None:
        self._values = words.descriptions(docs)

    def of(self, node: YamlNode) -> str:
        """The description of an entry, empty if it has none. Raises ProjectError or JinjaError at its location."""
        child = node.get("description")
        if child is None:
            return ""
        return str(self._values.render(child).value) if has_jinja(child.value) else child.text("description")

    def columns(self, node: YamlNode) -> dict[str, ColumnDoc]:
        """The documentation of an entry's columns, by name."""
        return {str(column.children["name"].value): self._column(column) for column in node.elements_of("columns")}

    def _column(self, node: YamlNode) -> ColumnDoc:
        levels = [level for level in (node, node.get("config")) if level is not None]
        metas = [child.mapping("meta").items() for level in levels if (child := level.get("meta")) is not None]
        meta = {key: value.value for items in metas for key, value in items}
        constraints, quote = node.elements_of("constraints"), node.get("quote")
        return ColumnDoc(
            self.of(node), column_tags(node), meta, granularity(node),
            tuple(
                {key: value.value for key, value in self._values.render(one).mapping("a constraint").items()}
                for one in constraints
            ),
            None if quote is None else quote.flag("quote"),
        )  # fmt: skip


def column_tags(node: YamlNode) -> tuple[str, ...]:
    """The tags of a column; as in dbt its data tests have them too."""
    levels = [level for level in (node, node.get("config")) if level is not None]
    tags = [tag for level in levels if (child := level.get("tags")) is not None for tag in child.texts("tags")]
    return tuple(dict.fromkeys(tags))
