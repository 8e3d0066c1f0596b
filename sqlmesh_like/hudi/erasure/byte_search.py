"""Texts in files, whatever their encoding. Owns decoding them: Parquet pages, Avro records, gzip, zip archives.

All bytes of a file are searched, and what it has in compressed form. A short text would be found in compressed bytes by
chance, so there it is searched in decoded values and the uncompressed rest only.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.hudi.commits import NOT_METADATA, NOT_SCHEMA
from sqlmesh_like.hudi.erasure.row_match import RowMatch

SHORTEST = 4
"""Bytes of the shortest text that is searched: shorter ones are in any file."""
_BY_CHANCE = 8
"""Bytes below which a text may be in compressed bytes by chance."""
_PIECE = 8 * 1024**2
_BINARY = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True)
class Finding:
    """A file that still has a text, or a value of a key (`text`); `path` is absolute."""

    path: Path
    text: str


def spellings(text: str) -> tuple[bytes, ...]:
    """The bytes of a text in UTF-8, in JSON and in the names of files and partitions.

    >>> spellings("Zoë B")
    (b'Zo\\xc3\\xab B', b'Zo\\\\u00eb B', b'Zo%C3%AB%20B', b'5A6FC3AB2042', b'Zo__B')
    """
    partition_names = (text.encode().hex().upper(), re.sub("[^A-Za-z0-9_.-]", "_", text))
    quoted = (json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], quote(text, safe=""))
    texts = (text, *quoted, *partition_names)
    return tuple(dict.fromkeys(each.encode() for each in texts))


def find_texts(paths: Iterable[Path], texts: Iterable[str], root: Path) -> Iterator[Finding]:
    """Search files for texts, in their names and those of folders below `root` too; each file and text once."""
    needles = {text: spellings(text) for text in texts}
    for path in paths if needles else ():
        for text in _texts_of_file(path, needles, root):
            yield Finding(path, text)


def find_rows(paths: Iterable[Path], match: RowMatch) -> Iterator[Finding]:
    """The Parquet files that have a row of these values."""
    for path in paths:
        rows = match.rows_of(str(path), ()) if _is_parquet(path) else None
        if rows is not None and rows.num_rows:
            values = ", ".join(f"{name}={value}" for name, value in rows.slice(0, 1).to_pylist()[0].items())
            yield Finding(path, values)


def files_below(root: Path) -> list[Path]:
    """All files below a folder, sorted; a file itself. None where nothing is there."""
    if root.is_file():
        return [root]
    return sorted(path for path in root.rglob("*") if path.is_file())


def _texts_of_file(path: Path, needles: Mapping[str, tuple[bytes, ...]], root: Path) -> list[str]:
    below = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
    named = below.encode(errors="surrogateescape")
    result = {text for text, spelt in needles.items() if any(each in named for each in spelt)}
    try:
        for chunk, is_compressed in _contents(path, needles):
            for text, spelt in needles.items():
                if text not in result and not (is_compressed and len(spelt[0]) < _BY_CHANCE):
                    result |= {text for each in spelt if each in chunk}
            if len(result) == len(needles):
                break
    except FileNotFoundError:  # another process has replaced it since it was listed
        pass
    return sorted(result)


def _contents(path: Path, needles: Mapping[str, tuple[bytes, ...]]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of a file's content, and whether they are compressed."""
    with path.open("rb") as file:
        start = file.read(4)
    if _is_parquet(path):
        yield from ((piece, False) for piece in _parquet_values(path, needles))
        yield _behind_pages(path), False
    elif start[:3] == b"Obj":
        yield from ((piece, False) for piece in _avro_values(path))
    elif start[:2] == b"\x1f\x8b":
        yield from ((piece, False) for piece in _unzipped(path))
    elif start == b"PK\x03\x04":
        yield from ((piece, False) for piece in _members(path))
    is_compressed = start[:3] == b"Obj" or start[:2] in (b"\x1f\x8b", b"PK") or start == b"PAR1"
    longest = max(len(each) for spelt in needles.values() for each in spelt)
    yield from ((piece, is_compressed) for piece in _raw(path, longest))


def _raw(path: Path, overlap: int) -> Iterator[bytes]:
    """Pieces of a file that overlap, so that no text is cut."""
    with path.open("rb") as file:
        before = b""
        while piece := file.read(_PIECE):
            yield before + piece
            before = piece[-overlap:]


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1" and pq.read_metadata(path) is not None
    except (OSError, pa.ArrowInvalid):
        return False


def _parquet_values(path: Path, needles: Mapping[str, tuple[bytes, ...]]) -> Iterator[bytes]:
    """Values of a Parquet file that have a text; the texts are searched in whole columns."""
    wanted = [each for spelt in needles.values() for each in spelt]
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=65_536):
            for column in batch.columns:
                for leaf in _leaves(column):
                    for each in wanted:
                        if pc.any(pc.match_substring(leaf, each.decode())).as_py():
                            yield each


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The arrays of text and bytes in an array of any type."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        yield from _leaves(array.dictionary_decode())
    elif pa.types.is_struct(type_):
        for child in array.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(type_):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from _leaves(array.flatten())
    elif any(check(type_) for check in _BINARY):
        yield array


def _behind_pages(path: Path) -> bytes:
    """What a Parquet file has behind its pages, which is not compressed: indexes, statistics, key ranges, metadata."""
    metadata, end = pq.read_metadata(path), 4
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            # A column without rows has no page.
            starts = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at]
            end = max([end, *(at + chunk.total_compressed_size for at in starts[:1])])
    with path.open("rb") as file:
        file.seek(end)
        return file.read()


def _avro_values(path: Path) -> Iterator[bytes]:
    """The records of an Avro file as JSON; of one that is broken, those before the damage."""
    try:
        with path.open("rb") as file:
            for record in fastavro.reader(file):
                yield json.dumps(record, ensure_ascii=False, default=_plain).encode(errors="surrogatepass")
    except (*NOT_METADATA, *NOT_SCHEMA):
        return


def _plain(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _unzipped(path: Path) -> Iterator[bytes]:
    try:
        yield gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        return


def _members(path: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield archive.read(name)
    except (zipfile.BadZipFile, RuntimeError, zlib.error, NotImplementedError):
        return
