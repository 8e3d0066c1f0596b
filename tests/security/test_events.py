"""Names and texts of events: data for whoever reads them, however they were chosen."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from sqlmesh_like.cdc.schema.limits import MAX_EVENT, is_short
from sqlmesh_like.cdc.sources.discover import discover
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import Location
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import IngestSource, Source, Target
from sqlmesh_like.project.reading.session_settings import FIXED
from sqlmesh_like.sql_text import spark_identifier, spark_literal, standard_identifier, standard_literal
from tests.security.hostile_messages import PAYLOADS, mixed

CODE = Path(__file__).parents[2] / "sqlmesh_like"
PLACE = Location("models/s.yml", 1, 1)

NAMES = (
    "a[b", "a(b", "*", "+", "?", "(a|a)*$", "(a+)+$", ".*", "orders.*", "ord.rs", "[a-z]+", "\\", "\\d", "a\\", "^a$",
    "a|b", "(?i)a", "(?P<x>a)", "{", "{x}", "${env:PATH}", "'", '"', "`", "a`b", "a b", " ", "a\nb", "a\tb", "\0",
    "../../x", "/etc/passwd", "..", ".", "a/b", "con", "😀", "é", "é", "shop__dead_letters", "SHOP__dead_letters",
    "x" * 300, "y" * 5000, "select", "--", "/*", ";", "a;drop table b", "%2e%2e", "a.b.c", "_sml", "_hoodie_x",
    "-", "#", "\u202e", "\ud7ff", "<script>", "{{ 1 }}", "{% x %}", "*a*",
)  # fmt: skip


def lake(root: Path) -> SourcePaths:
    ingest = IngestSource("debezium", files="landing/*.jsonl", discover=True)
    return SourcePaths(Target("p", "t", "spark", warehouse=str(root)), Source("shop", "ods", ingest, (), "", PLACE))


@pytest.mark.parametrize("name", NAMES)
def test_a_discovered_table_takes_its_own_events_and_no_others(name: str, tmp_path: Path) -> None:
    discovered = discover(lake(tmp_path), {("db", None, name): ("id",), ("db", None, "orders_secret"): ("id",)})
    mine, other = route(discovered.source, "db", None, name), route(discovered.source, "db", None, "orders_secret")
    assert mine is not None and other is not None and mine.name != other.name
    for stranger in ("a", "b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "orders", name + "x", name.upper() + "y"):
        assert route(discovered.source, "db", None, stranger) is None
    assert route(discovered.source, "other", None, name) is None
    assert TableName(mine.table.schema, mine.table.identifier).is_path_safe()
    assert len(mine.table.identifier) <= 210
    assert mine.table.identifier.lower() != discovered.dead_letters.identifier.lower()


def test_all_of_them_at_once_have_tables_of_their_own(tmp_path: Path) -> None:
    discovered = discover(lake(tmp_path), {("db", None, name): ("id",) for name in NAMES})
    tables = [route(discovered.source, "db", None, name) for name in dict.fromkeys(NAMES)]
    names = [table.table.identifier.lower() for table in tables if table is not None]
    assert len(names) == len(set(names)) == len(set(NAMES))


@pytest.mark.parametrize("text", ["${env:A}", "${system:b}", "{x}", "{{x}}", "$", "{", "}", "a'b", "a\\", "\\'", "'"])
def test_a_literal_has_nothing_that_is_put_in_place_of_something(text: str) -> None:
    literal = spark_literal(text)
    assert not re.search(r"\$\{|\{\w+\}", literal)
    inner = literal[1:-1]
    assert not re.search(r"(?<!\\)(?:\\\\)*'", inner), "a quote that ends the text"
    assert re.sub(r"\\(u00(..)|.)", lambda m: chr(int(m[2], 16)) if m[2] else m[1], inner) == text
    assert standard_literal(text)[1:-1].replace("''", "'") == text


@pytest.mark.parametrize("name", ["a", "a`b", "`", 'a"b', '"'])
def test_an_identifier_ends_where_it_ends(name: str) -> None:
    assert spark_identifier(name)[1:-1].replace("``", "`") == name
    assert standard_identifier(name)[1:-1].replace('""', '"') == name


def test_spark_puts_no_variables_into_texts() -> None:
    assert FIXED["spark.sql.variable.substitute"] == "false"


def test_no_text_is_formatted_on_its_way_to_spark() -> None:
    """pyspark's `sql(text, name=frame)` and `sql(text, args)` look into the text."""
    calls = [
        f"{path.relative_to(CODE)}: {call[0]}"
        for path in CODE.rglob("*.py")
        for call in re.finditer(r"(?:spark|session|sparkSession)(?:\(\))?\.sql\([^()]*,[^()]*\w+=", path.read_text())
    ]
    assert calls == []


def test_quotes_are_made_in_one_place() -> None:
    made = [
        str(path.relative_to(CODE))
        for path in CODE.rglob("*.py")
        if re.search(r"replace\(\"['`]\", \"(''|``)\"\)|replace\('\"', '\"\"'\)", path.read_text())
    ]
    assert made == ["sql_text.py"]


def test_messages_of_the_fuzz_are_many_and_are_lines() -> None:
    """`tests/spark/cdc/test_event_fuzz.py` ingests them."""
    assert len(set(PAYLOADS)) >= 60
    lines = mixed(random.Random(1), 500)
    assert len(lines) == 500 and len(set(lines)) > 400 and not any(set(line) & {"\n", "\r"} for line in lines)


@pytest.mark.parametrize("text", ["value", "log_key"])
def test_long_texts_are_not_read(text: str) -> None:
    assert is_short(text) == f"coalesce(octet_length({text}) <= {MAX_EVENT}, true)"
