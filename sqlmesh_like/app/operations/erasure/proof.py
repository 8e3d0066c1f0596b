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
from sqlmesh_like.hudi.erasure.byte_search import Finding, Needles, files_below, find_rows, find_texts
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.storage import local_path
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, RECORD_KEY
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.publish.freed_space import local_file, local_files
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
    """Search the warehouse, destinations on this machine and the target folder. The caller holds the lake's locks."""
    files = sorted({path for place in _places(erasure) for path in files_below(place)} | set(artifacts(erasure)))
    needles = searched_texts(erasure)
    warehouse = local_path(erasure.loaded.target.warehouse)
    databases = [each for each in erasure.destinations if each.kind != "parquet"]
    of_databases = {path for each in databases for path in local_files(each)}
    findings = [*find_texts((path for path in files if path not in of_databases), needles, warehouse)]
    findings += find_texts((path for path in files if path in of_databases), needles, warehouse, are_binary=True)
    for each in databases:
        findings += texts_in_database(each, needles)
    findings += [*_rows_left(erasure), *_rows_published(erasure)]
    return Proof(len(files), tuple(dict.fromkeys(findings)), tuple(_without_key(erasure)), tuple(_beyond(erasure)))


def searched_texts(erasure: Erasure) -> Needles:
    """The texts to search; those of keys do not count where they are a part of another row's longer key."""
    longer = dict[str, set[str]]()
    columns = {name.lower() for name in (*erasure.own_match.columns, KEY, RECORD_KEY)}
    for path in _newest_files(erasure.place) if erasure.key_texts else ():
        with pq.ParquetFile(path) as file:
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
    tables = _places(erasure)
    return [path for path in files_below(target) if not any(path.is_relative_to(each) for each in tables)]


def _places(erasure: Erasure) -> list[Path]:
    """The warehouse, tables outside of it, and the destinations on this machine."""
    places = [erasure.loaded.target.warehouse, *erasure.uris]
    return [*map(local_path, places), *(path for each in erasure.destinations for path in local_files(each))]


def is_left_in(erasure: Erasure, place: TablePlace, needles: Needles) -> bool:
    """Whether the newest commit of a model's table still has the rows or one of the texts."""
    paths, root = _newest_files(place), local_path(place.uri)
    rows = (each for match in erasure.matches.get(place.unique_id, ()) for each in find_rows(paths, match))
    return next(rows, None) is not None or next(find_texts(paths, needles, root), None) is not None


def _newest_files(place: TablePlace) -> list[Path]:
    """The data files of a table's newest commit; none of a table without commits."""
    timeline = Timeline(place.uri)
    slices = timeline.slices(timeline.commit_instants[-1].frontier) if timeline.commit_instants else {}
    return [local_path(place.uri) / each.path for each in slices.values()]


def names_partition(place: TablePlace, needles: Needles) -> bool:
    """Whether commits of a model's table name a partition after one of the texts, be it empty by now."""
    root = local_path(place.uri)
    commits = files_below(root / ".hoodie" / "timeline")
    return next(find_texts(commits, needles, root), None) is not None


def _rows_left(erasure: Erasure) -> Iterator[Finding]:
    """Files of any version with rows of the key, in the tables in which lineage says where the key is."""
    tombstones, dead_letters = (files_below(local_path(uri)) for uri in erasure.side_tables)
    own, keys = files_below(local_path(erasure.place.uri)), [(key,) for key in erasure.record_keys]
    for column in (KEY, RECORD_KEY):
        yield from find_rows([*own, *tombstones], RowMatch((column,), keys))
    yield from find_rows(own, erasure.own_match)
    named = [(erasure.table.name, key) for key in erasure.record_keys]
    yield from find_rows(dead_letters, RowMatch(("table_name", "row_key"), named))
    for place in (*erasure.models, *erasure.snapshots):
        for match in erasure.matches.get(place.unique_id, ()):
            yield from find_rows(files_below(local_path(place.uri)), match)


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
    paths, warehouse = set(map(local_path, known)), local_path(erasure.loaded.target.warehouse)
    for table in sorted(each.parent for each in warehouse.glob("*/*/.hoodie")):
        if table not in paths and table.parent.name != "_sml":
            yield f"{table.parent.name}.{table.name}, which no node of the project has"


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
    for each in erasure.destinations:
        if local_file(each) is None:
            yield f"free pages, logs and backups of the destination {each.name}: its rows were deleted or replaced"
    yield "the project's own files, such as seeds, its repository, and pages that `sml report` wrote elsewhere"
