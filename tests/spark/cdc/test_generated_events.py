"""Events that a generator makes: JSON documents byte for byte in every format, and columns of names in any alphabet.

Only Spark can show it: the decoders are Spark SQL, and Hudi's writer has the last word on a name.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.names import is_hidden, storable_name
from tests.spark.ingest_lake import Lake, table

pytestmark = pytest.mark.release

DOCUMENTS, NAMES = 60, 150
_NUMBERS = (
    *("0", "-0", "1.0", "0.10", "-1.50", "1e3", "1E-7", "1E400", "12345678901234567.89", "98765432109876543210"),
    *("0.1e-999", "123456789012345678901234567890.123456789012345678901234567890", "true", "false", "null"),
)
_SIGNS = (
    "a",
    "ü",
    "漢",
    "😀",
    " ",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "'",
    "1.0",
    "\\",
    '"',
    "\t",
    "\u2028",
    "\u00a0",
    "null",
)
_AS_ESCAPES = ("\\u00e9", "\\/", "\\ud83d\\ude00", "\\ud800", "\\b", "\\n", "\\u0000")
_LINES = {
    "maxwell": '{"database":"db","table":"t","type":"insert","data": {"id":%d,"doc" : %s,"n":1}}',
    "canal": '{"database":"db","table":"t","type":"INSERT","old":null,"data":[{"id":%d, "doc":%s ,"n":1}]}',
    "dms": '{"data":{"id":%d,"doc":%s,"n":1},"metadata":{"operation":"insert","record-type":"data",'
    '"schema-name":"db","table-name":"t"}}',
    "ogg": '{"table":"db.t","op_type":"I","after":{"id":%d,"doc":%s,"n":1}}',
    "debezium": '{"op":"c","before":null,"after":{"id":%d,"doc":%s,"n":1},"source":{"db":"db","table":"t"}}',
    "debezium_flat": '{"id":%d,"doc":%s,"n":1,"__op":"c","__db":"db","__table":"t"}',
}
_COMPACT = ("debezium", "debezium_flat")
"""Kafka's converter writes no blanks: what these nest is not a document of the source but an encoded value."""


def document(dice: random.Random, depth: int = 3) -> str:
    """A JSON value as somebody may have written it."""
    kind = dice.choice(("object", "list", "text", "number") if depth else ("text", "number"))
    blank = dice.choice(("", "", " ", "\t "))
    if kind == "number":
        return dice.choice(_NUMBERS)
    if kind == "text":
        return text(dice)
    parts = [document(dice, depth - 1) for _ in range(dice.randint(0, 3))]
    if kind == "list":
        return f"[{blank}{f'{blank},'.join(parts)}{blank}]"
    return f"{{{blank}{f',{blank}'.join(f'{text(dice)}{blank}:{blank}{part}' for part in parts)}{blank}}}"


def text(dice: random.Random) -> str:
    signs = "".join(dice.choices(_SIGNS, k=dice.randint(0, 4)))
    escapes = "".join(dice.choices(_AS_ESCAPES, k=dice.randint(0, 2)))
    return f'"{json.dumps(signs, ensure_ascii=dice.random() < 0.3)[1:-1]}{escapes}"'


def means(written: str, *, is_compact: bool) -> str | None:
    """The value of a column of texts."""
    if written == "null":
        return None
    if not is_compact:
        return written
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda part: part[1] or "", written)


@pytest.mark.parametrize("form", _LINES)
def test_a_nested_value_is_the_text_that_was_written(spark: SparkSession, tmp_path: Path, form: str) -> None:
    dice = random.Random(f"38 {form}")
    documents: list[str] = []
    while len(documents) < DOCUMENTS:
        made = document(dice)
        if not made.startswith('"'):  # a text is not a document
            documents.append(made)
    lake = Lake(spark, tmp_path, (table(columns={"id": "int", "doc": "string", "n": "int"}),), {"format": form})
    lake.ingest(*(_LINES[form] % (number, written) for number, written in enumerate(documents)))
    stored = dict(lake.rows("t", "id", "doc"))
    expected = {number: means(written, is_compact=form in _COMPACT) for number, written in enumerate(documents)}
    differing = {documents[number]: stored.get(number) for number in expected if stored.get(number) != expected[number]}
    assert not differing, differing
    assert len(stored) == DOCUMENTS


_ALPHABETS = (
    "abcXYZ_09", "àéîõüßẞøŁžŞığİ", "αβγΩς", "имяЖё", "姓名价格（元）", "이름", "ชื่อ", "नाम", "اسم", "שם", "あア", "ªº½²",
    "-. /()%$#@!&+='`\"\\:;,?*<>|~^{}[]", "😀𝒳", "e\u0301\u200d\u00a0",
)  # fmt: skip
_RESERVED = (
    "select", "order", "from", "table", "group", "user", "timestamp", "date", "null", "true", "interval", "case",
    "after", "before", "op", "value", "position", "kind", "row", "reason", "item", "texts", "file", "line", "part",
)  # fmt: skip


def names(dice: random.Random) -> list[str]:
    """Names that are columns of their own: no two differ in case only, or in signs that no table can have."""
    named: dict[str, str] = {"id": "id"}
    for word in (*_RESERVED, "long" * 200, "long" * 201):
        named[storable_name(word).lower()] = word
    while len(named) < NAMES:
        alphabet = dice.choice(_ALPHABETS)
        name = "".join(dice.choice(alphabet if dice.random() < 0.8 else "ab") for _ in range(dice.randint(1, 6)))
        if not is_hidden(name):
            named.setdefault(storable_name(name).lower(), name)
    return list(named.values())


def test_columns_of_any_name_have_their_own_values(spark: SparkSession, tmp_path: Path) -> None:
    made = names(random.Random(38))
    lake = Lake(spark, tmp_path, (table(),), {"format": "maxwell"})
    for sign in "ab":
        row = {"id": 1, **{name: f"{sign}{number}" for number, name in enumerate(made) if name != "id"}}
        kind = "insert" if sign == "a" else "update"
        lake.ingest(json.dumps({"database": "db", "table": "t", "type": kind, "data": row, "old": {}}))
        stored = lake.rows("t", *(f"`{storable_name(name)}`" for name in made))
        assert [dict(zip(made, each, strict=True)) for each in stored] == [row]
