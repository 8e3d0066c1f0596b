"""Data tests declared in YAML. Owns how `data_tests:` entries become calls of test macros."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.names import NodeId
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.config_keys import TEST_SETTINGS
from sqlmesh_like.project.nodes import TestFile, TestMetadata
from sqlmesh_like.project.reading.values import ValueRenderer, has_jinja
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.testing.data_test_config import check_test_setting_at, merge_settings

_EXPRESSION = re.compile(r"\s*(?:env_var|ref|var|source|doc)\s*\(.+\)\s*", re.DOTALL)
_WHOLE = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.DOTALL)
_PART = re.compile(r"\{\{-?((?:(?!\}\}).)*?)-?\}\}", re.DOTALL)
_OWN_KEYS = frozenset({"name", "test_name", "description", "config", *TEST_SETTINGS})


@dataclass(frozen=True)
class Tested:
    """What a test is attached to: a node, how a template names it, and one of its columns or None."""

    project: str
    unique_id: NodeId
    name: str
    relation: str  # Jinja expression: ref('x') or source('a', 'b')
    column: str | None
    tags: tuple[str, ...] = ()  # of the column, and of the source


def generic_test(node: YamlNode, tested: Tested, settings: FolderConfig) -> TestFile | None:
    """The test that one entry of `data_tests:` declares, or None if it is disabled.

    Raises ProjectError if the entry is neither a name nor a mapping, or a setting has a wrong value.
    """
    macro, body = _macro_and_body(node)
    body = _flat(body)
    config = _config(body, settings.values)
    arguments = {key: child.value for key, child in body.items() if key not in _OWN_KEYS}
    _check_built_in(macro, tested, body, node)
    given, metadata = _given_name(body), _metadata(macro, tested, arguments)
    name = given or _derived_name(metadata, tested)
    fqn = (tested.project, *settings.folders(node.location.path), name)
    weaker = merge_settings(settings.test_config(fqn), {"tags": tested.tags} if tested.tags else {})
    effective = {**weaker, **config}
    if effective.get("enabled") is False:
        return None
    description = body.get("description")
    return TestFile(
        unique_id=NodeId("test", tested.project, name, _identity(name, metadata)),
        name=name,
        path=node.location.path,
        raw_sql=_call(macro, tested, arguments, is_filtered=bool(effective.get("where"))),
        attached_to=tested.unique_id,
        declared_at=node.location,
        column_name=tested.column,
        test_type="generic",
        config=config,
        weaker=weaker,
        fqn=fqn,
        description="" if description is None else str(settings.descriptions.render(description).value),
        short_name=given or _short_name(name, metadata, tested),
        metadata=metadata,
    )


def _check_built_in(macro: str, tested: Tested, body: YamlNode, node: YamlNode) -> None:
    """Raise ProjectError for what dbt's own tests cannot work with, and its macros would take for something else."""
    if macro in _OF_A_COLUMN and tested.column is None and "column_name" not in body.children:
        raise node.error(f"{macro} needs a column", "write it below a column, or give it column_name: …")
    values = body.get("values") if macro == "accepted_values" else None
    if values is not None and not isinstance(values.value, list) and not has_jinja(values.value):
        raise values.error(f"values must be a list, not {values.value!r}", "write values: [a, b]")


def _macro_and_body(node: YamlNode) -> tuple[str, YamlNode]:
    empty = YamlNode({}, node.location, node.key_location)
    if isinstance(node.value, str):
        return node.value, empty
    body = node.mapping("a data test")
    if "test_name" in body.children:
        return body.children["test_name"].text("test_name"), body
    if len(body.children) != 1:
        hint = "write `- not_null` or `- accepted_values: {values: […]}`"
        raise node.error(f"a data test must have one name, not {', '.join(body.children) or 'none'}", hint)
    ((name, inner),) = body.items()
    return name, empty if inner.value is None else inner.mapping(f"the settings of data test {name!r}")


def _flat(body: YamlNode) -> YamlNode:
    """The body with keys under `arguments` moved up: as in dbt they mean the same there, even `config:`."""
    if "arguments" not in body.children:
        return body
    children = {key: child for key, child in body.items() if key != "arguments"}
    children |= body.mapping_of("arguments").children
    return YamlNode({key: child.value for key, child in children.items()}, body.location, body.key_location, children)


def _config(body: YamlNode, values: ValueRenderer) -> dict[str, object]:
    inner = body.mapping_of("config").children
    written = {**{key: child for key, child in body.items() if key in TEST_SETTINGS}, **inner}
    return {key: check_test_setting_at(key, child, values) for key, child in written.items()}


def _given_name(body: YamlNode) -> str | None:
    node = body.get("name")
    return None if node is None else node.text("the name of a data test")


_OF_A_COLUMN = frozenset({"unique", "not_null", "accepted_values", "relationships"})
_CLEAN = re.compile(r"[^0-9a-zA-Z_]+")


def _metadata(macro: str, tested: Tested, arguments: Mapping[str, object]) -> TestMetadata:
    """The metadata as dbt writes it; `model` is the relation that the test's `where` filters."""
    namespace, _, name = macro.rpartition(".")
    column = {"column_name": tested.column} if tested.column else {}
    relation = f"{{{{ get_where_subquery({tested.relation}) }}}}"
    return TestMetadata(namespace or None, name, {**column, **arguments, "model": relation})


def _derived_name(metadata: TestMetadata, tested: Tested) -> str:
    """dbt's name: test, node, column and arguments by their names, joined.

    >>> tested = Tested("p", NodeId("model", "p", "m"), "m", "ref('m')", "id")
    >>> _derived_name(_metadata("not_null", tested, {}), tested)
    'not_null_m_id'
    """
    values = [value for key, value in sorted(metadata.kwargs.items()) if key != "model"]
    words = [_CLEAN.sub("_", word) for value in values for word in _words(value)]
    return f"{_start(metadata, tested)}_{'__'.join(words)}"


def _start(metadata: TestMetadata, tested: Tested) -> str:
    kind = "source_" if tested.unique_id.kind == "source" else ""
    package = "" if metadata.namespace is None else f"{metadata.namespace}_"
    return f"{package}{kind}{metadata.name}_{tested.name}".replace(".", "_")


def _short_name(name: str, metadata: TestMetadata, tested: Tested) -> str:
    """dbt's name of the compiled file and the table: a long one is cut and ends in its hash."""
    return name if len(name) < 64 else f"{_start(metadata, tested)[:30]}_{_md5(name)}"


def _identity(name: str, metadata: TestMetadata) -> str:
    """The last part of a generic test's unique id, computed as by dbt: a manifest of dbt can be our `--state`.

    >>> customers = NodeId("model", "jaffle_shop", "customers")
    >>> tested = Tested("jaffle_shop", customers, "customers", "ref('customers')", "customer_id")
    >>> _identity("unique_customers_customer_id", _metadata("unique", tested, {}))
    'c5af1ff4b1'
    """
    return _md5(f"{name}{_texts_in_order(vars(metadata))!r}")[-10:]


def _texts_in_order(value: object) -> object:
    if isinstance(value, dict):
        return {key: _texts_in_order(value[key]) for key in sorted(value)}
    return [_texts_in_order(part) for part in value] if isinstance(value, list) else str(value)


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _words(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(part) for part in value]
    if isinstance(value, dict):
        return [str(part) for part in value.values()]
    return [str(value)]


def _call(macro: str, tested: Tested, arguments: Mapping[str, object], *, is_filtered: bool) -> str:
    """The call of the test's macro. `get_where_subquery`, which a project may override, reads the test's config."""
    *package, name = macro.split(".")
    function = ".".join([*package, f"test_{name}"])
    relation = f"get_where_subquery({tested.relation})" if is_filtered else tested.relation
    column = [] if tested.column is None else [f"column_name={jinja_literal(tested.column)}"]
    given = [f"{key}={jinja_literal(value)}" for key, value in arguments.items()]
    return "{{ " + f"{function}({', '.join([f'model={relation}', *column, *given])})" + " }}"


def jinja_literal(value: object) -> str:
    """A YAML value as a Jinja expression; text that calls `ref` and the like, or is one `{{ … }}`, stays code.

    >>> jinja_literal(["a'b", 1, None]), jinja_literal("ref('x')")
    ('["a\\'b", 1, none]', "ref('x')")
    >>> jinja_literal("v > {{ var('least') }}")
    "('v > ' ~ (var('least')))"
    """
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(jinja_literal(part) for part in value)}]"
        case dict():
            return "{" + ", ".join(f"{key!r}: {jinja_literal(part)}" for key, part in value.items()) + "}"
        case _:
            text = str(value)
            whole = _WHOLE.fullmatch(text)
            if whole or _EXPRESSION.fullmatch(text):
                return whole[1].strip() if whole else text
            return _concatenation(text) if _PART.search(text) else repr(text)


def _concatenation(text: str) -> str:
    """Text that contains templates, as an expression that joins its parts when the test is rendered."""
    parts: list[str] = []
    position = 0
    for match in _PART.finditer(text):
        parts += [repr(text[position : match.start()])] if match.start() > position else []
        parts.append(f"({match[1].strip()})")
        position = match.end()
    parts += [repr(text[position:])] if position < len(text) else []
    return f"({' ~ '.join(parts)})"
