"""What an erasure concerns: the keys in their types, and every table that can have their rows. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import pyarrow as pa

from sqlmesh_like.app.lakes.lake import HudiLake, open_lake
from sqlmesh_like.app.loading.destinations import destinations
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.app.loading.source_discovery import with_discovered_tables
from sqlmesh_like.app.operations.erasure.existing_tables import existing_tables
from sqlmesh_like.app.operations.erasure.reach import require_no_versions, require_reachable
from sqlmesh_like.app.operations.recovery.rollback import source_of
from sqlmesh_like.cdc.schema.record_key import record_keys
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import NodeError, RetryableError, SmlError, UsageError
from sqlmesh_like.hudi.erasure.byte_search import SHORTEST
from sqlmesh_like.hudi.erasure.delete_rows import undeletable_reason
from sqlmesh_like.hudi.erasure.old_versions import unremovable_reason
from sqlmesh_like.hudi.erasure.row_match import RowMatch, typed_value
from sqlmesh_like.hudi.erasure.tables_to_rebuild import tables_to_rebuild
from sqlmesh_like.hudi.history import record_of
from sqlmesh_like.hudi.recovery.table_removal import tables_set_aside
from sqlmesh_like.hudi.recovery.table_swap import remains
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.names import NodeId, is_local
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.graph import Node
from sqlmesh_like.plan.lineage import Lineage, TracedColumn
from sqlmesh_like.plan.side_by_side import side_by_side
from sqlmesh_like.plan.slices.sliced_build import beside
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.project.publishing import Destination

_BETWEEN = "|"
_LONG_KEY = 6
"""Characters from which on a key that is not a number is searched as a text in all files."""


@dataclass(frozen=True)
class ErasureRequest:
    """The rows to forget: of the source's table `name`, with these keys (each as `sml forget` takes it).

    `texts`: further texts that must be in no file afterwards.
    """

    name: str
    keys: tuple[str, ...]
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Erasure:
    """What an erasure concerns. `keys`: values of the primary key as texts; `record_keys`: as tables spell them.

    `texts`: what must be in no file, `key_texts` the ones among them that are there because of a key alone.
    `models`, `snapshots`: built tables downstream that exist. `matches`: by unique id, the rows of these tables in
    which lineage finds the key. `failures`: tables of stored test failures downstream.
    """

    loaded: Loaded
    lake: HudiLake
    place: TablePlace
    source: Source
    table: SourceTable
    keys: tuple[tuple[str, ...], ...]
    record_keys: frozenset[str]
    texts: tuple[str, ...]
    key_texts: frozenset[str]
    models: tuple[TablePlace, ...]
    snapshots: tuple[TablePlace, ...]
    failures: tuple[TablePlace, ...]
    matches: Mapping[str, tuple[RowMatch, ...]]
    destinations: tuple[Destination, ...]

    @property
    def paths(self) -> SourcePaths:
        return SourcePaths(self.loaded.target, self.source)

    @property
    def own_match(self) -> RowMatch:
        assert self.table.ingest is not None
        return RowMatch(self.table.ingest.primary_key, self.keys)

    @property
    def side_tables(self) -> tuple[str, ...]:
        """The tables that ingestion keeps beside the source's: remembered deletes, and dead letters."""
        return self.paths.tombstones_uri(self.table), self.paths.dead_letters_uri

    def may_rebuild(self, place: TablePlace) -> bool:
        """Whether a model's author permits full refreshes."""
        [model] = [each for each in self.loaded.rendered.models if each.unique_id == place.unique_id]
        return model.config.full_refresh is not False

    @property
    def changed(self) -> tuple[str, ...]:
        """All tables whose earlier versions are removed, if they exist."""
        return (self.place.uri, *self.side_tables, *(place.uri for place in (*self.snapshots, *self.models)))

    @cached_property
    def uris(self) -> tuple[str, ...]:
        """Those that existed when they were first asked about: each step under locks has a copy of its own."""
        return existing_tables(self.changed)


def plan_erasure(loaded: Loaded, request: ErasureRequest) -> Erasure:
    """Return what forgetting these rows concerns.

    Raises UsageError for a table or key that cannot be forgotten as requested, NodeError where a table downstream does
    not permit it; nothing is changed then.
    """
    loaded = with_discovered_tables(loaded)
    require_reachable(loaded.target)
    if loaded.invocation.defer:
        hint = "leave it out: tables of another warehouse are never written"
        raise UsageError("--defer has no meaning for sml forget", hint=hint)
    lake = open_lake(loaded)
    place, source, table = _source_table(loaded, lake, request.name)
    require_no_versions(loaded.target, place.uri)
    keys = _parse_keys(place, table, request.keys)
    names = table.ingest.primary_key if table.ingest else ()
    models, snapshots, failures = _downstream(loaded, lake, place)
    stored_keys = [record_keys(names, key) for key in keys]
    searched = [*_searched_keys(keys), *(text for text, _ in stored_keys if _is_telling(text))]
    texts = tuple(dict.fromkeys([*_check_texts(request.texts), *searched]))
    parts = tuple(_key_parts(request.keys, len(names)))
    erasure = Erasure(
        loaded, lake, place, source, table, parts,
        frozenset(each for spelt in stored_keys for each in spelt), texts, frozenset(texts).difference(request.texts),
        models, snapshots, failures, _matches(loaded, place, names, parts, (*models, *snapshots)),
        _destinations(loaded, models),
    )  # fmt: skip
    require_erasable(erasure)
    return erasure


def _source_table(loaded: Loaded, lake: HudiLake, name: str) -> tuple[TablePlace, Source, SourceTable]:
    place = lake.catalog.find(name)
    origin = source_of(loaded, place)
    if origin is None or origin[1].ingest is None:
        hint = "name a table of a source that is ingested, as SOURCE.TABLE: tables that are built follow it"
        raise UsageError(f"{place.table} is not a table that `sml ingest` fills", hint=hint)
    if not origin[1].ingest.primary_key:
        hint = "declare primary_key in its `ingest:` block"
        raise UsageError(f"{place.table} has no primary key", location=origin[1].declared_at, hint=hint)
    return place, *origin


def _parse_keys(place: TablePlace, table: SourceTable, keys: Sequence[str]) -> list[tuple[object, ...]]:
    """The keys in the types of their columns. Raises UsageError for a text that is not of the type."""
    assert table.ingest is not None
    timeline = Timeline(place.uri)
    avro = timeline.schema_json(timeline.frontier) if timeline.frontier else None
    if avro is None:
        raise NodeError(f"the table {place.table} does not exist yet", hint="run `sml ingest` first")
    names, stored = table.ingest.primary_key, {field.name.lower(): field.type for field in file_schema(avro)}
    result = []
    for key, parts in zip(keys, _key_parts(keys, len(names)), strict=True):
        if len(parts) != len(names):
            hint = f"write {_BETWEEN.join(name.upper() for name in names)}, and %7C for a {_BETWEEN} in a value"
            raise UsageError(f"the key {key!r} has {len(parts)} of {len(names)} parts", hint=hint)
        result.append(
            tuple(_parse_key_part(part, name, stored[name.lower()]) for part, name in zip(parts, names, strict=True))
        )
    return result


def _key_parts(keys: Sequence[str], parts: int) -> list[tuple[str, ...]]:
    """The parts of each key. A key of one column is taken literally.

    >>> _key_parts(["a|b"], 1), _key_parts(["a%7Cb|7"], 2)
    ([('a|b',)], [('a|b', '7')])
    """
    if parts == 1:
        return [(key,) for key in keys]
    return [tuple(part.replace("%7C", _BETWEEN).replace("%25", "%") for part in key.split(_BETWEEN)) for key in keys]


def _parse_key_part(text: str, name: str, type_: pa.DataType) -> object:
    try:
        return typed_value(text, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UsageError(f"the key {text!r} is not a value of {name}, which is {type_}") from None


def _check_texts(texts: Sequence[str]) -> Sequence[str]:
    for text in texts:
        if len(text.encode()) < SHORTEST:
            hint = f"give at least {SHORTEST} bytes, for instance first and last name"
            raise UsageError(f"--text {text!r} is so short that it is in any file", hint=hint)
    return texts


def _searched_keys(keys: Sequence[tuple[object, ...]]) -> list[str]:
    """Keys that no file contains by chance."""
    return [each for key in keys for each in key if isinstance(each, str) and _is_telling(each)]


def _is_telling(text: str) -> bool:
    return len(text) >= _LONG_KEY and not text.replace(".", "").replace("-", "").isdecimal()


def _downstream(
    loaded: Loaded, lake: HudiLake, place: TablePlace
) -> tuple[tuple[TablePlace, ...], tuple[TablePlace, ...], tuple[TablePlace, ...]]:
    """Models and snapshots downstream that were built, in the order of the graph, and stored test failures."""
    below = loaded.graph.order(_readers(loaded, lake, place.unique_id))
    places = [lake.catalog.places[unique_id] for unique_id in below if unique_id in lake.catalog.places]
    # A call that died may have set a model's table aside and not have built it anew.
    dropped, there = tables_to_rebuild(loaded.target.warehouse), existing_tables(each.uri for each in places)
    begun = existing_tables(beside(each.uri) for each in places)
    # What a build has left that was cut short is gone on with by the run, or removed.
    left = {each.uri for each in places if beside(each.uri) in begun or (is_local(each.uri) and remains(each.uri))}
    built = [
        each
        for each in places
        if str(each.table) in dropped or each.uri in there or each.uri in left or tables_set_aside(each.uri)
    ]
    # Tests may have been run with --store-failures, which this call was not given.
    storing = open_lake(loaded.storing_failures()).catalog.places
    tests = [storing[unique_id] for unique_id in below if unique_id in storing and _node(loaded, unique_id) == "test"]
    stored = existing_tables((each.uri for each in tests), half_dropped=True)
    return (
        tuple(each for each in built if _node(loaded, each.unique_id) == "model"),
        tuple(each for each in built if _node(loaded, each.unique_id) == "snapshot"),
        tuple(each for each in tests if each.uri in stored),
    )


def _readers(loaded: Loaded, lake: HudiLake, source_id: NodeId) -> frozenset[str]:
    """Nodes downstream, and those whose table was built from one of these, by an earlier text of its query."""
    below = loaded.graph.descendants(source_id)
    others = [
        unique_id
        for unique_id, place in lake.catalog.places.items()
        if place.unique_id.kind in ("model", "snapshot") and unique_id not in below
    ]
    inputs = dict(zip(others, side_by_side(lambda each: _inputs_read(lake, each), others), strict=True))
    while earlier := {each for each in others if each not in below and inputs[each] & {source_id, *below}}:
        below = below.union(earlier, *map(loaded.graph.descendants, earlier))
    return below


def _inputs_read(lake: HudiLake, unique_id: str) -> set[str]:
    """The inputs that commits of a table record, and of its slices beside it, if there are any.

    Its newest commit may be of another query already, which this call or an earlier one has run. None where they cannot
    be read, whose files are searched too.
    """
    uri, inputs = lake.catalog.places[unique_id].uri, set[str]()
    for place in (uri, beside(uri)):
        with suppress(NodeError):
            records = map(record_of, Timeline(place).commits)
            inputs.update(*(record.frontier for record in records if record is not None))
    return inputs


def _node(loaded: Loaded, unique_id: str) -> str:
    node: Node = loaded.graph.nodes[unique_id]
    return node.resource_type


def _matches(
    loaded: Loaded,
    place: TablePlace,
    names: Sequence[str],
    keys: tuple[tuple[str, ...], ...],
    below: Sequence[TablePlace],
) -> dict[str, tuple[RowMatch, ...]]:
    """By unique id, the rows whose columns are copies of the key's columns."""
    lineage = Lineage(loaded.rendered, input_schemas(loaded, [each.unique_id for each in below]), is_lenient=True)
    wanted, result = {each.unique_id for each in below}, dict[str, tuple[RowMatch, ...]]()
    for model in loaded.rendered.models:
        if model.unique_id not in wanted:
            continue
        try:
            columns = lineage.columns(model)
        except SmlError:  # the run will say what is wrong with it
            continue
        copies = [[each.name for each in columns if _is_copy(each, place.unique_id, name)] for name in names]
        result[model.unique_id] = tuple(RowMatch(tuple(each), keys) for each in product(*copies))
    return result


def _is_copy(column: TracedColumn, source_id: str, name: str) -> bool:
    """Whether the column has only values of this column of the source, unchanged."""
    origins = {(end.input_id, end.column.lower()): how for end, how in column.sources.items()}
    return column.is_complete and origins == {(source_id, name.lower()): "copied"}


def _destinations(loaded: Loaded, models: Sequence[TablePlace]) -> tuple[Destination, ...]:
    """Where the models are published, each destination once."""
    wanted = {each.unique_id for each in models}
    published = [m for m in loaded.rendered.models if m.unique_id in wanted and m.config.publish is not None]
    return tuple({each.name: each for model in published for each in destinations(model, loaded)}.values())


def require_planned(erasure: Erasure, *, has_run: bool = False) -> None:
    """Raise RetryableError where tables downstream were built or dropped since, by calls that no lock kept out.

    `has_run`: models may have had slices of an earlier query, which read the source, and do not any more.
    """
    planned = (erasure.models, erasure.snapshots, erasure.failures)
    there = _downstream(erasure.loaded, erasure.lake, erasure.place)
    is_planned = there == planned
    if has_run:
        is_planned = all(set(now) <= set(before) for now, before in zip(there, planned, strict=True))
    if not is_planned:
        raise RetryableError(
            f"tables downstream of {erasure.place.table} were built or dropped meanwhile", hint="run this again"
        )


def require_erasable(erasure: Erasure) -> None:
    """Raise NodeError, before anything is changed, for a table in which rows cannot be deleted, or versions kept."""
    written = [erasure.place.uri, *erasure.side_tables, *(place.uri for place in erasure.snapshots)]
    for uri in erasure.uris:
        timeline = Timeline(uri)
        is_ours = uri in written and timeline.is_cow  # Spark deletes in tables that are merge-on-read
        reason = unremovable_reason(timeline) or (undeletable_reason(timeline) if is_ours else None)
        if reason is not None:
            raise NodeError(f"{uri} cannot be erased from: {reason}", hint="nothing was changed")
    for place in erasure.models:
        if erasure.loaded.rendered.model(place.unique_id).config.frozen_before is not None:
            hint = "take frozen_before out and build it anew (sml run --full-refresh), then forget; nothing was changed"
            raise NodeError(f"{place.table} has frozen partitions, in which no row is changed", hint=hint)
    for snapshot in erasure.snapshots:
        if not erasure.matches.get(snapshot.unique_id):
            hint = "add the key's columns to its SELECT and rebuild it, or drop its table; nothing was changed"
            message = f"{snapshot.table} keeps old versions of rows, and no column of it is a copy of the key"
            raise NodeError(message, hint=hint)
