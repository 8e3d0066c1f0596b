"""Texts in files, whatever their encoding. Owns decoding them: Parquet pages, Avro records, gzip, zip archives.

All bytes of a file are searched, and what it has in compressed form. A short text would be found in compressed bytes by
chance, so there it is searched in decoded values and the uncompressed rest only. A text that is only a part of another
row's longer key (`customer-1` in `customer-12`) does not count: each place is compared with the longer ones. These must
stand alone, since `customer-12024` may also be `customer-1` and a year. Bytes that are not text do not show that.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.hudi.commits import NOT_METADATA, NOT_SCHEMA
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.erasure.searched_files import Finding, SearchedFile, Source, local_file, open_source

SHORTEST = 4
"""Bytes of the shortest text that is searched: shorter ones are in any file."""
_BY_CHANCE = 8
"""Bytes below which a text may be in compressed bytes by chance."""
_PIECE = 8 * 1024**2
_BINARY = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def spellings(text: str) -> tuple[bytes, ...]:
    """The bytes of a text in UTF-8, in JSON and in the names of files and partitions.

    >>> spellings("Zoë B")
    (b'Zo\\xc3\\xab B', b'Zo\\\\u00eb B', b'Zo%C3%AB%20B', b'5A6FC3AB2042', b'Zo__B')
    """
    partition_names = (text.encode().hex().upper(), re.sub("[^A-Za-z0-9_.-]", "_", text))
    quoted = (json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], quote(text, safe=""))
    texts = (text, *quoted, *partition_names)
    return tuple(dict.fromkeys(each.encode() for each in texts))


@dataclass(frozen=True)
class Piece:
    """Bytes to search. Texts that begin from `start` to `end` (excluded) count; the rest shows what is around these.

    `is_binary`: what is beside a text may be something else, such as the length of the next value.
    """

    data: bytes
    start: int = 0
    end: int | None = None
    is_compressed: bool = False
    is_binary: bool = False


@dataclass(frozen=True)
class _Needle:
    """One spelling of a text. `longer`: spellings of longer texts, by where in them it begins and their length."""

    spelt: bytes
    longer: Mapping[tuple[int, int], frozenset[bytes]]

    @property
    def margin(self) -> int:
        """Bytes around a place that decide whether it counts."""
        return max([len(self.spelt), *(length for _, length in self.longer)]) + 1

    def is_in(self, piece: Piece) -> bool:
        """Whether a piece has it, other than as a part of a longer text."""
        last = len(piece.data) if piece.end is None else piece.end
        at = piece.data.find(self.spelt, piece.start)
        while 0 <= at < last:
            if not self._is_part(piece, at):
                return True
            at = piece.data.find(self.spelt, at + 1)
        return False

    def _is_part(self, piece: Piece, at: int) -> bool:
        places = ((at - by, at - by + length, texts) for (by, length), texts in self.longer.items() if by <= at)
        return any(
            piece.data[start:end] in texts and (piece.is_binary or _stands_alone(piece.data, start, end))
            for start, end, texts in places
        )


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether no letter or digit is beside a text; bytes of other scripts count as letters.

    >>> [_stands_alone(text, 1, 3) for text in (b"-ab.", b"-abc", b"2ab.", "-abß".encode())]
    [True, False, False, False]
    """
    return not any(each.isalnum() or each >= b"\x80" for each in (data[max(0, start - 1) : start], data[end : end + 1]))


class Needles:
    """Texts to search. `longer`: for some of them, others' texts that contain them, as a part of which they may stay.

    >>> needles = Needles(["ann@x.io"], {"ann@x.io": ["joann@x.io"]})
    >>> [list(needles.texts_in(Piece(data))) for data in (b"joann@x.io, ann@x.iou", b"joann@x.io", b"jjoann@x.io")]
    [['ann@x.io'], [], ['ann@x.io']]
    """

    def __init__(self, texts: Iterable[str], longer: Mapping[str, Collection[str]] | None = None) -> None:
        self._needles = {text: _needles(text, (longer or {}).get(text, ())) for text in texts}
        self.margin = max([each.margin for needles in self._needles.values() for each in needles], default=0)

    def __len__(self) -> int:
        return len(self._needles)

    @property
    def spelt(self) -> list[bytes]:
        return [each.spelt for needles in self._needles.values() for each in needles]

    def texts_in(self, piece: Piece) -> Iterator[str]:
        """The texts of which a piece has a spelling."""
        for text, needles in self._needles.items():
            is_too_short = piece.is_compressed and len(text.encode()) < _BY_CHANCE
            if not is_too_short and any(each.is_in(piece) for each in needles):
                yield text


def _needles(text: str, longer: Collection[str]) -> list[_Needle]:
    around = [spelt for each in longer for spelt in spellings(each)]
    result = []
    for spelt in spellings(text):
        by_place: dict[tuple[int, int], set[bytes]] = {}
        for each in around:
            by = each.find(spelt)
            while by >= 0 and each != spelt:
                by_place.setdefault((by, len(each)), set()).add(each)
                by = each.find(spelt, by + 1)
        result.append(_Needle(spelt, {place: frozenset(texts) for place, texts in by_place.items()}))
    return result


def find_texts(paths: Iterable[Path], needles: Needles, root: Path, *, are_binary: bool = False) -> Iterator[Finding]:
    """Search files for texts, in their names and those of folders below `root` too; each file and text once.

    `are_binary`: whether values are side by side in these files, so that only a search of the values shows where one
    ends (that of a database file is the caller's).
    """
    for path in paths:
        yield from texts_in(local_file(path, root), needles, is_binary=are_binary)


def texts_in(file: SearchedFile, needles: Needles, *, is_binary: bool = False) -> Iterator[Finding]:
    """The texts in a file and its name, each once."""
    for text in _texts_of_file(file, needles, is_binary) if needles else ():
        yield Finding(file.path, text)


def find_rows(paths: Iterable[Path], match: RowMatch) -> Iterator[Finding]:
    """The Parquet files that have a row of these values."""
    for path in paths:
        yield from rows_in(local_file(path, path.parent), match)


def rows_in(file: SearchedFile, match: RowMatch) -> Iterator[Finding]:
    """The first row of these values in a file, if it is a Parquet file and has one."""
    rows = match.rows_of(file.source, ()) if _is_parquet(file.source) else None
    if rows is not None and rows.num_rows:
        values = ", ".join(f"{name}={value}" for name, value in rows.slice(0, 1).to_pylist()[0].items())
        yield Finding(file.path, values)


def _texts_of_file(file: SearchedFile, needles: Needles, is_binary: bool) -> list[str]:
    result = set(needles.texts_in(Piece(file.below.encode(errors="surrogateescape"))))
    try:
        for piece in _contents(file.source, needles, is_binary):
            result |= set(needles.texts_in(piece))
            if len(result) == len(needles):
                break
    except FileNotFoundError:  # another process has replaced it since it was listed
        pass
    return sorted(result)


def _contents(source: Source, needles: Needles, is_binary: bool) -> Iterator[Piece]:
    """A file's content, decoded where it can be, then its bytes."""
    with open_source(source) as file:
        start = file.read(4)
    if _is_parquet(source):
        yield from map(Piece, _parquet_values(source, needles))
        yield Piece(_behind_pages(source), is_binary=True)
    elif start[:3] == b"Obj":
        yield from map(Piece, _avro_values(source))
    elif start[:2] == b"\x1f\x8b":
        yield from map(Piece, _decompress(source))
    elif start == b"PK\x03\x04":
        yield from map(Piece, _members(source))
    is_compressed = start[:3] == b"Obj" or start[:2] in (b"\x1f\x8b", b"PK") or start == b"PAR1"
    for data, begin, end in _raw(source, needles.margin):
        yield Piece(data, begin, end, is_compressed=is_compressed, is_binary=is_binary or is_compressed)


def _raw(source: Source, margin: int) -> Iterator[tuple[bytes, int, int]]:
    """Bytes of a file, and which of them are new: they overlap, so that each text is seen with what is around it."""
    with open_source(source) as file:
        data, start = file.read(_PIECE), 0
        while data:
            more = file.read(_PIECE)
            end = max(start, len(data) - margin) if more else len(data)
            yield data, start, end
            kept = data[max(0, end - margin) :] if more else b""
            data, start = kept + more, min(end, margin)


def _is_parquet(source: Source) -> bool:
    try:
        with open_source(source) as file:
            return file.read(4) == b"PAR1" and pq.read_metadata(source) is not None
    except (OSError, pa.ArrowInvalid):
        return False


def _parquet_values(source: Source, needles: Needles) -> Iterator[bytes]:
    """Values of a Parquet file that have a text; the texts are searched in whole columns."""
    with pq.ParquetFile(source) as file:
        for batch in file.iter_batches(batch_size=65_536):
            for column in batch.columns:
                for leaf in _leaves(column):
                    for each in needles.spelt:
                        matching = leaf.filter(pc.match_substring(leaf, each.decode()))
                        yield from (value.as_buffer().to_pybytes() for value in matching.unique())


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


def _behind_pages(source: Source) -> bytes:
    """What a Parquet file has behind its pages, which is not compressed: indexes, statistics, key ranges, metadata."""
    metadata, end = pq.read_metadata(source), 4
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            # A column without rows has no page.
            starts = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at]
            end = max([end, *(at + chunk.total_compressed_size for at in starts[:1])])
    with open_source(source) as file:
        file.seek(end)
        return file.read()


def _avro_values(source: Source) -> Iterator[bytes]:
    """The records of an Avro file as JSON; of one that is broken, those before the damage."""
    try:
        with open_source(source) as file:
            for record in fastavro.reader(file):
                yield json.dumps(record, ensure_ascii=False, default=_plain).encode(errors="surrogatepass")
    except (*NOT_METADATA, *NOT_SCHEMA):
        return


def _plain(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _decompress(source: Source) -> Iterator[bytes]:
    try:
        yield gzip.decompress(_whole(source))
    except (OSError, EOFError, zlib.error):
        return


def _whole(source: Source) -> bytes:
    with open_source(source) as file:
        return file.read()


def _members(source: Source) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(_whole(source))) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield archive.read(name)
    except (zipfile.BadZipFile, RuntimeError, zlib.error, NotImplementedError):
        return
