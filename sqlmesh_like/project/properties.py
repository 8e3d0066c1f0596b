"""Properties YAML (`version: 2`). Owns reading `models:`, `seeds:` and `sources:` entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmesh_like import secrets
from sqlmesh_like.errors import Location, ProjectError, SqlError, as_sql_error
from sqlmesh_like.names import Column, NodeId
from sqlmesh_like.project.config import HOOKS, canonical, merge_config
from sqlmesh_like.project.doc_blocks import Descriptions, Docs, column_tags
from sqlmesh_like.project.exposures import parse_exposures, parse_groups
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.column_keys import COLUMN
from sqlmesh_like.project.keys.property_keys import COLUMN_RULE, DATA_TEST, MACRO, NODES, PROPERTIES, VERSION
from sqlmesh_like.project.nodes import ColumnDoc, Exposure, MacroDoc, ModelGroup, Source, SourceTable, TestFile
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import ValueRenderer, YamlWords
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.semantic.declarations import SemanticLayer
from sqlmesh_like.project.semantic.layer import KEYS, parse_semantic_layer
from sqlmesh_like.project.semantic.time_spines import time_spine
from sqlmesh_like.project.settings import check_setting_at, refuse_hooks_twice
from sqlmesh_like.project.sources import parse_columns, parse_source, required_text
from sqlmesh_like.project.testing.data_test_config import check_test_setting_at
from sqlmesh_like.project.testing.generic_tests import Tested, generic_test
from sqlmesh_like.project.versions import Version, expand_versions


@dataclass(frozen=True)
class NodeProperties:
    """The properties of one model or seed; `config` is checked. With an `error` only its name and location are set."""

    name: str
    description: str
    config: Mapping[str, object]
    columns: tuple[Column, ...]
    declared_at: Location
    node: YamlNode
    column_docs: Mapping[str, ColumnDoc]
    time_spine: Mapping[str, object] | None = None
    version: Version | None = None
    error: SqlError | None = None

    @property
    def config_places(self) -> Mapping[str, Location]:
        """Where `config:` sets each of its keys."""
        config = self.node.get("config")
        return {} if config is None else {canonical(key): child.key_location for key, child in config.items()}

    @property
    def column_places(self) -> Mapping[str, Location]:
        """Where each column has its type, or else its name; by lower-case name."""
        named = ((one.get("name"), one.get("data_type")) for one in self.node.elements_of("columns"))
        return {str(name.value).lower(): (kind or name).location for name, kind in named if name is not None}


@dataclass(frozen=True)
class Properties:
    """All properties files of a project as one. Models, seeds and snapshots by name."""

    models: Mapping[str, NodeProperties]
    seeds: Mapping[str, NodeProperties]
    snapshots: Mapping[str, NodeProperties]
    sources: tuple[Source, ...]
    source_tests: tuple[TestFile, ...]
    unit_tests: tuple[YamlNode, ...]
    analyses: Mapping[str, NodeProperties]
    macro_docs: Mapping[str, MacroDoc]
    exposures: tuple[Exposure, ...]
    groups: tuple[ModelGroup, ...]
    semantic: SemanticLayer
    singular_tests: Mapping[str, SingularProperties]
    functions: tuple[YamlNode, ...] = ()


@dataclass(frozen=True)
class SingularProperties:
    """The properties, under `data_tests:`, of a test that is a file of its own; `config` is checked."""

    description: str
    config: Mapping[str, object]
    declared_at: Location


def parse_properties(
    files: tuple[YamlNode, ...], project: str, words: YamlWords, docs: Docs, tests: FolderConfig
) -> Properties:
    """All properties files as one. Raises ProjectError for wrong keys and values and for a name described twice."""
    for file in files:
        PROPERTIES.check(file)
        version = file.get("version")
        if version is not None and str(version.value) not in ("1", "2", "2.0"):
            raise version.error(
                f"version {version.value!r} of the format of properties files is not known", "write version: 2"
            )
    values = words.values()
    descriptions = Descriptions(words, docs)
    rendered = (_enabled_tables(_render_source(node, words), tests) for node in _entries(files, "sources"))
    nodes = tuple(node for node in rendered if node is not None)
    sources = tuple(_with_fqn(parse_source(node, project, descriptions), tests) for node in nodes)
    # As in dbt several files may add tables to one source; a stream is declared once.
    _refuse_twice([(f"ingestion of source {source.name!r}", source.declared_at) for source in sources if source.ingest])
    tables = [table for source in sources for table in source.tables]
    _refuse_twice([(f"table {table.name!r} of source {table.source_name!r}", table.declared_at) for table in tables])
    _refuse_case_twins(tables)
    exposures = parse_exposures(_entries(files, "exposures"), values, descriptions, tests)
    exposures = tuple(one for one in exposures if not tests.is_off("exposures", one.declared_at.path, one.name))
    groups = parse_groups(_entries(files, "groups"), project, descriptions)
    _refuse_twice([(f"exposure {exposure.name!r}", exposure.declared_at) for exposure in exposures])
    _refuse_twice([(f"group {group.name!r}", group.declared_at) for group in groups])
    return Properties(
        models=_by_name("model", _entries(files, "models"), values, descriptions),  # versions by their own names
        seeds=_by_name("seed", _entries(files, "seeds"), values, descriptions),
        sources=sources,
        source_tests=tuple(test for node in nodes for test in _source_tests(node, project, tests)),
        unit_tests=_entries(files, "unit_tests"),
        snapshots=_by_name("snapshot", _entries(files, "snapshots"), values, descriptions),
        analyses=_by_name("analysis", _entries(files, "analyses"), values, descriptions),
        macro_docs=dict(_macro_doc(node, project, descriptions) for node in _entries(files, "macros")),
        exposures=exposures,
        groups=groups,
        semantic=parse_semantic_layer({key: _entries(files, key) for key in KEYS}, words.values(docs), tests),
        singular_tests=_singular_tests(_entries(files, "data_tests"), values, descriptions),
        functions=_entries(files, "functions"),
    )


def _singular_tests(
    nodes: tuple[YamlNode, ...], values: ValueRenderer, descriptions: Descriptions
) -> dict[str, SingularProperties]:
    properties: dict[str, SingularProperties] = {}
    for node in nodes:
        DATA_TEST.check(node)
        name, settings = required_text(node, "name", "a data test"), node.mapping_of("config").children
        meta = {"meta": node.children["meta"]} if node.get("meta") is not None else {}
        if name in properties:
            first = f"the first time in {properties[name].declared_at}"
            raise node.error(f"data test {name!r} is described twice", first)
        checked_config = {key: check_test_setting_at(key, child, values) for key, child in {**meta, **settings}.items()}
        properties[name] = SingularProperties(descriptions.of(node), checked_config, node.location)
    return properties


def _entries(files: tuple[YamlNode, ...], key: str) -> tuple[YamlNode, ...]:
    entries = (file.get(key) for file in files)
    return tuple(entry for node in entries if node is not None for entry in node.sequence(key))


def _render_source(node: YamlNode, words: YamlWords) -> YamlNode:
    """Render a source's entry. Only `ingest:` may use secrets: nothing of it is ever written to an artifact."""
    keep = frozenset({"description", "tests", "data_tests", "columns", "ingest"})
    node = words.values().render(node, skip=keep)
    ingest = node.children.get("ingest")
    if ingest is None:
        return node
    rendered = words.values(secrets=True).render(ingest).private()
    secrets.learn_settings(rendered.value)
    children = {**node.children, "ingest": rendered}
    value = {key: child.value for key, child in children.items()}
    return YamlNode(value, node.location, node.key_location, children)


def _with_fqn(source: Source, settings: FolderConfig) -> Source:
    folders = (settings.settings.name, *settings.folders(source.declared_at.path), source.name)
    return replace(source, tables=tuple(replace(table, fqn=(*folders, table.name)) for table in source.tables))


def _enabled_tables(node: YamlNode, settings: FolderConfig) -> YamlNode | None:
    """The source with its enabled tables; None if the source itself is disabled."""
    tables = node.get("tables")
    says = _says_enabled(node)
    if says is False:
        return None
    if tables is None:
        return node
    source = str(node.children["name"].value) if "name" in node.children else ""

    def is_on(table: YamlNode) -> bool:
        said = _says_enabled(table) if isinstance(table.value, dict) else None
        name = str(table.children["name"].value) if "name" in table.children else ""
        if said is not None or says is not None:
            return said is not False
        return not settings.is_off("sources", node.location.path, source, name)

    kept = tuple(filter(is_on, tables.sequence("tables")))
    listed = YamlNode([table.value for table in kept], tables.location, tables.key_location, elements=kept)
    children = {**node.children, "tables": listed}
    return YamlNode({key: child.value for key, child in children.items()}, node.location, node.key_location, children)


def _says_enabled(node: YamlNode) -> bool | None:
    config = node.get("config") if isinstance(node.value, dict) else None
    child = None if config is None else config.mapping("config").get("enabled")
    return None if child is None else child.flag("enabled")


def _by_name(
    kind: str, nodes: tuple[YamlNode, ...], values: ValueRenderer, descriptions: Descriptions
) -> dict[str, NodeProperties]:
    parsed = [entry for node in nodes for entry in _entry(kind, node, values, descriptions)]
    _refuse_twice([(f"{kind} {entry.name!r}", entry.declared_at) for entry in parsed])
    return {entry.name: entry for entry in parsed}


def _entry(kind: str, node: YamlNode, values: ValueRenderer, descriptions: Descriptions) -> list[NodeProperties]:
    """Properties of an entry, or of each version. A broken entry fails only its node, if its name is certain."""
    try:
        return _versions(kind, node, values, descriptions)
    except ProjectError as broken:
        name = node.get("name") if isinstance(node.value, dict) else None
        if name is None or not isinstance(name.value, str) or node.get("versions") is not None:
            raise
        return [broken_entry(node, name.value, broken)]


def broken_entry(node: YamlNode, name: str, error: ProjectError) -> NodeProperties:
    """Properties of an entry of which only the error is known."""
    return NodeProperties(name, "", {}, (), node.location, node, {}, error=as_sql_error(error))


def _versions(kind: str, node: YamlNode, values: ValueRenderer, descriptions: Descriptions) -> list[NodeProperties]:
    """Properties of an entry, or of each version of a model."""
    entry = _node_properties(kind, node, values, descriptions)
    if kind != "model" or node.get("versions") is None:
        return [entry]
    for version in node.children["versions"].sequence("versions"):
        VERSION.check(version)
        for column in version.elements_of("columns"):
            if "include" in column.children or "exclude" in column.children:
                COLUMN_RULE.check(column)
    versions = [(_node_properties(kind, one, values, descriptions), version) for one, version in expand_versions(node)]
    return [replace(one, name=version.name, version=version) for one, version in versions]


def _node_properties(kind: str, node: YamlNode, values: ValueRenderer, descriptions: Descriptions) -> NodeProperties:
    NODES[kind].check(node)
    for column in node.elements_of("columns"):
        COLUMN.check(column)
    return NodeProperties(
        name=required_text(node, "name", f"a {kind}"),
        description=descriptions.of(node),
        config=_config(node, values),
        columns=_parse_distinct_columns(node),
        declared_at=node.location,
        node=node,
        column_docs=descriptions.columns(node),
        time_spine=time_spine(node),
    )


def _parse_distinct_columns(node: YamlNode) -> tuple[Column, ...]:
    """The declared columns; as in dbt, of two entries for one column the last one counts."""
    parsed = parse_columns(node)
    seen: set[str] = set()
    for column, entry in zip(parsed, node.children["columns"].elements if parsed else (), strict=True):
        if column.name.lower() in seen:
            warn(entry.location, f"column {column.name!r} is described twice")
        seen.add(column.name.lower())
    return parsed


def _macro_doc(node: YamlNode, project: str, descriptions: Descriptions) -> tuple[str, MacroDoc]:
    """Unique id and documentation of a macro. As in dbt, the entry of a generic test's macro may name the test."""
    MACRO.check(node)
    documented = tuple(
        (
            required_text(one.mapping("an argument"), "name", "an argument"),
            one.text_of("type") or "",
            descriptions.of(one),
        )
        for one in node.elements_of("arguments")
    )
    return NodeId("macro", project, required_text(node, "name", "a macro")), MacroDoc(
        descriptions.of(node), documented, node.location.path
    )


def _config(node: YamlNode, values: ValueRenderer) -> dict[str, object]:
    plain = {key: child for key, child in node.items() if key in {"meta", "docs", "access", "group"}}
    if (tags := node.get("tags")) is not None:
        warn(tags.key_location, "tags beside the name are ignored, as in dbt", "write config: {tags: […]}")
    nested = node.get("config")
    inner = {} if nested is None else nested.mapping("config").children
    if nested is not None:
        refuse_hooks_twice(nested)
    config: dict[str, object] = {}
    for level in (plain, inner):
        rendered = {key: child if key in HOOKS else values.render(child) for key, child in level.items()}
        config = merge_config(
            config, {canonical(key): check_setting_at(canonical(key), child) for key, child in rendered.items()}
        )
    return config


def _source_tests(source: YamlNode, project: str, settings: FolderConfig) -> list[TestFile]:
    tests: list[TestFile] = []
    for table in source.elements_of("tables"):
        name, of = required_text(table, "name", "a source table"), required_text(source, "name", "a source")
        tested = Tested(project, NodeId("source", project, of, name), f"{of}_{name}", f"source({of!r}, {name!r})", None)
        tested = replace(tested, tags=(*column_tags(source), *column_tags(table)))
        tests += node_tests(table, tested, settings)
    return tests


def node_tests(node: YamlNode, tested: Tested, settings: FolderConfig) -> list[TestFile]:
    """The data tests that an entry declares for itself and for its columns."""
    tests = [generic_test(entry, tested, settings) for entry in _test_entries(node)]
    for column in node.elements_of("columns"):
        name = required_text(column, "name", "a column")
        of_column = replace(tested, column=name, tags=(*tested.tags, *column_tags(column)))
        tests += [generic_test(entry, of_column, settings) for entry in _test_entries(column)]
    return [test for test in tests if test is not None]


def _test_entries(node: YamlNode) -> list[YamlNode]:
    lists = [node.get("data_tests"), node.get("tests")]
    return [entry for entries in lists if entries is not None for entry in entries.sequence("data_tests")]


def _refuse_case_twins(tables: list[SourceTable]) -> None:
    """Raise ProjectError if two tables of a source differ in case only: Spark takes them for one."""
    seen: dict[tuple[str, ...], SourceTable] = {}
    for table in tables:
        key = (table.source_name, table.name.lower(), str(table.table).lower())
        if key in seen:
            message = (
                f"table {table.name!r} of source {table.source_name!r} differs from {seen[key].name!r} in case only"
            )
            hint = f"leave one out; the first is described in {seen[key].declared_at}"
            raise ProjectError(message, location=table.declared_at, hint=hint)
        seen[key] = table


def _refuse_twice(named: list[tuple[str, Location]]) -> None:
    seen: dict[str, Location] = {}
    for name, place in named:
        if name in seen:
            raise ProjectError(f"{name} is described twice", location=place, hint=f"the first time in {seen[name]}")
        seen[name] = place
