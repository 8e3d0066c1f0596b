"""What is left after an erasure. Owns which files are searched for what; `hudi.erasure.byte_search` searches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.app.loading.destinations import destinations
from sqlmesh_like.app.operations.erasure.plan import Erasure
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.erasure.byte_search import Needles, rows_in, texts_in
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.erasure.searched_files import (
    Finding,
    SearchedFile,
    files_below,
    local_file,
    searched_files,
    start_of,
)
from sqlmesh_like.hudi.storage import folder, local_path
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.names import KEY, RECORD_KEY, is_local, is_store
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.publish.freed_space import local_file as file_of
from sqlmesh_like.publish.freed_space import local_files
from sqlmesh_like.publish.published_rows import published_rows, texts_in_database
from sqlmesh_like.publish.publisher import published_name


@dataclass(frozen=True)
class Proof:
    """The search: the number of files, what was found in them, and what no search can reach, in words.

    `by_text`: tables without a column that, by lineage, is a copy of the key. They were searched for texts only.
    """

    files: int
    findings: tuple[Finding, ...]
    by_text: tuple[str, ...]
    beyond: tuple[str, ...]


def prove(erasure: Erasure) -> Proof:
    """Search the warehouse, destinations and the target folder, each file once. The caller holds the lake's locks."""
    needles, wanted = searched_texts(erasure), [(start_of(uri), match) for uri, match in _rows(erasure)]
    databases = [each for each in erasure.destinations if each.kind != "parquet"]
    of_databases = {path for each in databases for path in local_files(each)}
    texts, rows, files = list[Finding](), list[Finding](), 0
    for file in _files(erasure):
        files += 1
        texts += texts_in(file, needles, is_binary=file.path in of_databases)
        matches = (match for start, match in wanted if str(file.path).startswith(start))
        rows += (finding for match in matches for finding in rows_in(file, match))
    for each in databases:
        texts += texts_in_database(each, needles)
    findings = tuple(dict.fromkeys((*texts, *rows, *_rows_published(erasure))))
    return Proof(files, findings, tuple(_without_key(erasure)), tuple(_beyond(erasure)))


def searched_texts(erasure: Erasure) -> Needles:
    """The texts to search; those of keys do not count where they are a part of another row's longer key."""
    longer = dict[str, set[str]]()
    columns = {name.lower() for name in (*erasure.own_match.columns, KEY, RECORD_KEY)}
    table = folder(erasure.place.uri)
    for path in _newest_files(erasure.place) if erasure.key_texts else ():
        with pq.ParquetFile(table.parquet_source(path)) as file:
            texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
            names = [name for name in texts if name.lower() in columns]
            for column in file.read(columns=names).columns:
                values = column.unique()
                for text in erasure.key_texts:
                    others = values.filter(pc.match_substring(values, text)).to_pylist()
                    longer.setdefault(text, set()).update(other for other in others if other != text)
    return Needles(erasure.texts, longer)


def artifacts(erasure: Erasure) -> list[Path]:
    """The files that commands wrote into the target folder, without tables that are kept there."""
    root, target = erasure.loaded.project.root, erasure.loaded.target_folder
    if root.is_relative_to(target):
        return []
    tables = _local_places(erasure)
    return [path for path in files_below(target) if not any(path.is_relative_to(each) for each in tables)]


def _places(erasure: Erasure) -> list[str]:
    """The warehouse, and tables outside of it."""
    return [erasure.loaded.target.warehouse, *erasure.uris]


def _local_places(erasure: Erasure) -> list[Path]:
    """Those on this machine, and the destinations there."""
    places = [local_path(uri) for uri in _places(erasure) if is_local(uri)]
    return [*places, *(path for each in erasure.destinations for path in local_files(each))]


def _files(erasure: Erasure) -> Iterator[SearchedFile]:
    """All files to search, each once; on this machine, names of folders above the warehouse do not count."""
    warehouse = erasure.loaded.target.warehouse
    paths = sorted({path for place in _local_places(erasure) for path in files_below(place)} | set(artifacts(erasure)))
    root = local_path(warehouse) if is_local(warehouse) else Path("/")
    yield from (local_file(path, root) for path in paths)
    searched = list[str]()
    for uri in filter(is_store, _places(erasure)):
        if not any(f"{uri.rstrip('/')}/".startswith(f"{each}/") for each in searched):
            yield from searched_files(uri)
            searched.append(uri.rstrip("/"))


def is_left_in(erasure: Erasure, place: TablePlace, needles: Needles) -> bool:
    """Whether the newest commit of a model's table still has the rows or one of the texts."""
    matches = erasure.matches.get(place.unique_id, ())
    return any(
        next(texts_in(file, needles), None) or any(next(rows_in(file, match), None) for match in matches)
        for file in searched_files(place.uri, _newest_files(place))
    )


def _newest_files(place: TablePlace) -> list[str]:
    """The data files of a table's newest commit, relative to it; none of a table without commits."""
    timeline = Timeline(place.uri)
    slices = timeline.slices(timeline.commit_instants[-1].frontier) if timeline.commit_instants else {}
    return [each.path for each in slices.values()]


def names_partition(place: TablePlace, needles: Needles) -> bool:
    """Whether commits of a model's table name a partition after one of the texts, be it empty by now."""
    names = folder(f"{place.uri}/{TIMELINE}").files()
    commits = searched_files(place.uri, [f"{TIMELINE}/{name}" for name in names])
    return any(next(texts_in(file, needles), None) for file in commits)


def _rows(erasure: Erasure) -> Iterator[tuple[str, RowMatch]]:
    """The rows of the key, in the tables in which lineage says where it is; their files of any version count."""
    tombstones, dead_letters = erasure.side_tables
    own, keys = erasure.place.uri, [(key,) for key in erasure.record_keys]
    for column in (KEY, RECORD_KEY):
        yield own, RowMatch((column,), keys)
        yield tombstones, RowMatch((column,), keys)
    yield own, erasure.own_match
    yield dead_letters, RowMatch(("table_name", "row_key"), [(erasure.table.name, key) for key in erasure.record_keys])
    for place in (*erasure.models, *erasure.snapshots):
        for match in erasure.matches.get(place.unique_id, ()):
            yield place.uri, match


def _rows_published(erasure: Erasure) -> Iterator[Finding]:
    """Rows of the key in destinations on this machine, in the tables in which lineage says where the key is."""
    wanted = {place.unique_id for place in erasure.models}
    for model in erasure.loaded.rendered.models:
        if model.unique_id in wanted and model.config.publish is not None:
            for to, match in product(destinations(model, erasure.loaded), erasure.matches.get(model.unique_id, ())):
                yield from published_rows(to, published_name(model), match)


def _without_key(erasure: Erasure) -> Iterator[str]:
    """Models downstream, and tables of the warehouse that no node of the project has."""
    for place in erasure.models:
        if not erasure.matches.get(place.unique_id):
            yield str(place.table)
    known = {*(place.uri for place in erasure.lake.catalog.places.values()), *erasure.uris}
    known |= {SourcePaths(erasure.loaded.target, each).dead_letters_uri for each in erasure.loaded.project.sources}
    warehouse = erasure.loaded.target.warehouse
    for schema, name in _stored_tables(warehouse):
        if folder(f"{warehouse}/{schema}/{name}").path not in {folder(uri).path for uri in known} and schema != "_sml":
            yield f"{schema}.{name}, which no node of the project has"


def _stored_tables(warehouse: str) -> list[tuple[str, str]]:
    """Schema and name of the folders of a warehouse that are tables."""
    if is_store(warehouse):
        parts = (path.split("/") for path in folder(warehouse).files() if path.endswith("/.hoodie/hoodie.properties"))
        return sorted((each[0], each[1]) for each in parts if len(each) == 4)
    return sorted((each.parent.parent.name, each.parent.name) for each in local_path(warehouse).glob("*/*/.hoodie"))


def _beyond(erasure: Erasure) -> Iterator[str]:
    ingest = erasure.source.ingest
    assert ingest is not None
    log = f"the files {ingest.files}" if ingest.files else "Kafka, the topics of its source"
    if ingest.database is not None:
        log = f"{ingest.database.address}, and _sml/database/{erasure.source.name} in the warehouse"
    yield (
        f"{log}: its events bring the rows back if they are read again, or are only read now (`sml ingest`, with --from"
        " too, `sml repair`, `sml rollback`): remove them there, or give this command again"
    )
    yield "backups, and copies of the warehouse and of published files"
    if is_store(erasure.loaded.target.warehouse):
        yield (
            "what the bucket keeps besides its objects: versions that a rule of it has to remove, replicas, and parts"
            " of uploads that were cut short (rule AbortIncompleteMultipartUpload)"
        )
    for each in erasure.destinations:
        if file_of(each) is None:
            yield f"free pages, logs and backups of the destination {each.name}: its rows were deleted or replaced"
    yield "the project's own files, such as seeds, its repository, and pages that `sml report` wrote elsewhere"
