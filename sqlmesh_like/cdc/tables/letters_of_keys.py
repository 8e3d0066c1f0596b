"""The dead letters that are about certain rows. Owns recognizing them, also where an event could not be read at all."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

import pyarrow.parquet as pq

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY
from sqlmesh_like.project.nodes import SourceTable

OPEN = "open"
"""Key in the metadata of the table's commits: whether it still has letters."""


def letters_of_keys(
    uri: str,
    table: SourceTable,
    keys: Sequence[Sequence[str]],
    record_keys: Collection[str],
    texts: Collection[str],
) -> list[str]:
    """`KEY` of the letters that name one of these rows or contain one of the texts. Needs no JVM.

    `keys`: values of the primary key as texts. A letter of an unknown table counts where it names this one. Of the
    texts, those that are keys count as whole values only: letters of other rows, whose keys they begin, stay.
    """
    timeline = Timeline(uri)
    if timeline.frontier is None or table.ingest is None:
        return []
    # Of each key the values of its columns in JSON, which may itself be a text in JSON.
    names = table.ingest.primary_key
    patterns = [[_member(name, value) for name, value in zip(names, key, strict=True)] for key in keys]
    values = {*record_keys, *(part for key in keys for part in key)}
    searched = [_key_pattern(text, is_value=text in values) for text in texts]
    result = []
    for each in timeline.slices(timeline.frontier).values():
        columns = [KEY, "table_name", "row_key", "text", "raw"]
        rows = pq.read_table(timeline.folder.parquet_source(each.path), columns=columns, partitioning=None)
        for row in rows.to_pylist():
            text = f"{row['text'] or ''}\n{(row['raw'] or b'').decode(errors='replace')}"
            is_ours = row["table_name"] == table.name or (row["table_name"] is None and table.ingest.table in text)
            is_named = is_ours and (
                row["row_key"] in record_keys or any(all(value.search(text) for value in key) for key in patterns)
            )
            if is_named or any(each.search(text) for each in searched):
                result.append(row[KEY])
    return result


def _key_pattern(text: str, *, is_value: bool) -> re.Pattern[str]:
    """A text, plainly or in JSON.

    >>> [bool(_key_pattern("C-1", is_value=is_value).search("C-10")) for is_value in (True, False)]
    [False, True]
    """
    spelt = "|".join(re.escape(each) for each in (text, json.dumps(text)[1:-1]))
    return re.compile(rf"(?<![\w.@+-])(?:{spelt})(?![\w.@+-])" if is_value else spelt)


def _member(name: str, value: str) -> re.Pattern[str]:
    """
    >>> bool(_member("id", "7").search('{"id": 7, "n": 70}')), bool(_member("id", "7").search('{"id": 70}'))
    (True, False)
    """
    spelt = re.escape(json.dumps(value, ensure_ascii=False)[1:-1])
    return re.compile(rf'\\*"(?i:{_in_events(name)})\\*"\s*:\s*\\*"?{spelt}\\*"?(?=\s*[,}}\]])')


def _in_events(column: str) -> str:
    """A pattern of the names that events may have for a column: `storable_name` in the other direction.

    >>> [bool(re.fullmatch(_in_events("a_b"), name)) for name in ("a_b", "a-b", "ab")]
    [True, True, False]
    >>> bool(re.fullmatch(_in_events("न_x093E_म"), "नाम")), bool(re.fullmatch(_in_events("_1x"), "1x"))
    (True, True)
    """
    parts = re.split(r"_x([0-9A-F]{4,6})_", column)
    texts = [re.escape(chr(int(part, 16)) if index % 2 else part) for index, part in enumerate(parts)]
    texts[::2] = [text.replace("_", '[^"a-zA-Z0-9]') for text in texts[::2]]
    own = re.sub(r'^(\[\^"a-zA-Z0-9\])(?=\d)', r"\1?", "".join(texts))
    in_ascii = re.escape(json.dumps(column)[1:-1])
    return f"{own}|{re.escape(column)}|{in_ascii}"
