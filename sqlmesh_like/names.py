"""Frozen values for names. Owns how a table or column is written in SQL and on disk; knows nothing of engines."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, Self

from sqlmesh_like.sql_text import spark_identifier

_PYTHON_CALL = re.compile(r"(?P<name>\w+)__py(?P<undecided>_any)?_[0-9a-f]{12}", re.IGNORECASE)
_SAFE_PATH_PART = re.compile(r"\w[\w.-]*")
_LETTERS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo"))
_HIGHEST = "\uffff"
"""Java's Avro looks at units of 16 bits: no letter beyond is one to it."""

LONGEST_COLUMN = 767
"""Characters of a column's name: Hive's metastore has room for no more (COLUMNS_V2.COLUMN_NAME)."""

HIDDEN_PREFIXES = ("_sml_", "_hoodie_")
KEY = "_sml_key"
"""Record key of a derived table, and the row key that every input relation of a delta program carries."""
WEIGHT = "_sml_weight"
"""Weight of a row in a change: -1 for a row as it was, +1 for a row as it is."""
PARTITION = "_sml_partition"
"""Path-safe partition value of a derived table."""
LONGEST_PARTITION = 255 - len(f"{PARTITION}=")
"""Longest partition value: file systems allow names of 255 bytes."""
ROWS = "_sml_rows"
"""Hidden count of the input rows behind a group."""
COMMIT_TIME, SEQUENCE, RECORD_KEY = "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"
PARTITION_PATH, FILE_NAME = "_hoodie_partition_path", "_hoodie_file_name"
HUDI_COLUMNS = (COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""Columns that Hudi adds before a table's own, in their order."""
IS_DELETED = "_hoodie_is_deleted"
"""Hudi's marker column: an upsert deletes rows in which it is true, in the same commit."""
STORE_SCHEMES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **{s: s for s in ("gs", "abfs", "abfss")},
    "wasbs": "abfss",
    "hdfs": "hdfs",
}
"""Hadoop's schemes of places with conditional writes, and those by which `hudi/stores` reaches each."""


def is_local(uri: str) -> bool:
    """Whether a path or Hadoop URI is of this machine; its file system need not be installed.

    >>> is_local("/lake"), is_local("file:///lake"), is_local("s3a://lake")
    (True, True, False)
    """
    return "://" not in uri or uri.startswith("file:")


def is_store(uri: str) -> bool:
    """Whether a path or Hadoop URI is of an object store or HDFS.

    >>> is_store("s3a://lake/w"), is_store("hdfs://n/w"), is_store("/lake")
    (True, True, False)
    """
    return "://" in uri and uri.partition("://")[0] in STORE_SCHEMES


def is_s3(uri: str) -> bool:
    """Whether a path or Hadoop URI is of a store that speaks S3.

    >>> is_s3("s3a://lake/w"), is_s3("gs://lake/w")
    (True, False)
    """
    return is_store(uri) and STORE_SCHEMES[uri.partition("://")[0]] == "s3"


def is_hdfs(uri: str) -> bool:
    """
    >>> is_hdfs("hdfs://name:8020/w"), is_hdfs("s3a://lake/w")
    (True, False)
    """
    return uri.startswith("hdfs://")


def is_tried_store(uri: str) -> bool:
    """Whether a path or Hadoop URI is of a store on which commits without Spark are tried.

    >>> is_tried_store("s3a://lake/w"), is_tried_store("hdfs://n/w"), is_tried_store("gs://lake/w")
    (True, True, False)
    """
    return is_s3(uri) or is_hdfs(uri)


def is_in_reach(uri: str) -> bool:
    """Whether this process reads and writes the files of a place, without a JVM.

    >>> is_in_reach("/lake"), is_in_reach("s3a://lake"), is_in_reach("hdfs://n/w"), is_in_reach("oss://b/w")
    (True, True, True, False)
    """
    return is_local(uri) or is_store(uri)


def is_hidden(column: str) -> bool:
    """Whether a column is internal: `ref()`, `show` and catalog views hide it.

    >>> is_hidden("_sml_key"), is_hidden("_hoodie_commit_time"), is_hidden("id")
    (True, True, False)
    """
    return column.lower().startswith(HIDDEN_PREFIXES)


def storable_name(name: str, *, ascii_only: bool = False) -> str:
    """The name under which a Hudi table can have a column: of letters and digits of any alphabet and `_`.

    Avro's Java library accepts these (and no digit at the start); what it does not accept is replaced: by `_` if it is
    ASCII, else by its number as SQL/XML writes it, so that names which differ stay different. A name that is too long
    ends with a hash. `ascii_only`: the rule of earlier versions, by which all letters beyond ASCII became `_`.

    >>> storable_name("a-b"), storable_name("1x"), storable_name("total")
    ('a_b', '_1x', 'total')
    >>> storable_name("姓名"), storable_name("größe"), storable_name("дата 1"), storable_name("जन")
    ('姓名', 'größe', 'дата_1', 'जन')
    >>> storable_name("नाम"), storable_name("价格（元）"), storable_name("größe", ascii_only=True)
    ('न_x093E_म', '价格_xFF08_元_xFF09_', 'gr__e')
    >>> len(storable_name("a" * 900)), storable_name("a" * 900) == storable_name("a" * 901)
    (767, False)
    """
    safe = "".join(
        sign if _is_storable(sign, ascii_only=ascii_only) else _escape_sign(sign, ascii_only) for sign in name
    )
    safe = f"_{safe}" if not safe or unicodedata.category(safe[0]) == "Nd" else safe
    return shorten_name(safe, LONGEST_COLUMN, name)


def shorten_name(text: str, limit: int, original: str | None = None) -> str:
    """A name of at most `limit` characters; a longer one becomes its beginning and a hash of the whole, or `original`.

    >>> shorten_name("orders", 10), shorten_name("x" * 30, 20)
    ('orders', 'xxx_666a596df2cf2181')
    """
    if len(text) <= limit:
        return text
    digest = hashlib.sha256((original or text).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: limit - 17]}_{digest}"


def _is_storable(sign: str, *, ascii_only: bool) -> bool:
    if sign.isascii():
        return sign.isalnum() or sign == "_"
    return not ascii_only and sign <= _HIGHEST and unicodedata.category(sign) in (*_LETTERS, "Nd")


def _escape_sign(sign: str, ascii_only: bool) -> str:
    return "_" if sign.isascii() or ascii_only else f"_x{ord(sign):04X}_"


def is_storable(name: str) -> bool:
    """Whether a Hudi table can have a column with this name.

    >>> is_storable("姓名"), is_storable("1x"), is_storable("_sml_key"), is_storable("a b")
    (True, False, False, False)
    """
    return storable_name(name) == name and not is_hidden(name)


NodeKind = Literal[
    "model", "seed", "snapshot", "source", "test", "unit_test", "analysis", "exposure", "semantic_model", "metric",
    "saved_query", "group", "macro", "doc",
    "operation", "fixture", "question", "function",
]  # fmt: skip
"""Kinds of nodes with a unique id: those of dbt, and `operation` (hooks), `fixture` and `question` (ad-hoc queries)."""


class NodeId(str):
    """The unique id of a node: kind, package and name, spelt as in dbt. It is a `str`, so an id that was read from an
    artifact or a commit equals it.

    The name may have parts: `shop.user` of a source's table, `orders.v2` of a version, a generic test's with a hash.

    >>> orders = NodeId("source", "lake", "shop", "orders")
    >>> orders, orders.kind, orders.package, orders.name, orders.parts
    ('source.lake.shop.orders', 'source', 'lake', 'shop.orders', ('shop', 'orders'))
    >>> {orders: 1}["source.lake.shop.orders"]
    1
    """

    __slots__ = ()

    def __new__(cls, kind: NodeKind, package: str, *name: str) -> Self:
        return super().__new__(cls, ".".join((kind, package, *name)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the id that an artifact or a commit contains as text.

        >>> NodeId.parse("model.shop.orders.v2").name
        'orders.v2'
        """
        return super().__new__(cls, text)

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.kind, self.package, self.name)

    @property
    def kind(self) -> str:
        return self.partition(".")[0]

    @property
    def package(self) -> str:
        return self.split(".", 2)[1]

    @property
    def name(self) -> str:
        return self.split(".", 2)[-1]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name."""
        return tuple(self.split(".")[2:])

    @property
    def short_name(self) -> str:
        """The last part: `user` of `source.lake.shop.user`."""
        return self.rpartition(".")[2]

    @property
    def qualified_name(self) -> str:
        """The last two parts: `shop.user` of `source.lake.shop.user`, package and name of a model."""
        return ".".join(self.split(".")[-2:])

    @property
    def noun(self) -> str:
        """The kind as it is written in messages: `unit test`."""
        return self.kind.replace("_", " ")


@dataclass(frozen=True, order=True)
class TableName:
    """Schema and identifier of a table in the warehouse; its path is `<warehouse>/<schema>/<identifier>`."""

    schema: str
    identifier: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"

    def sql(self) -> str:
        """Return the name in Spark SQL, always quoted (`user` is a reserved word in several dialects).

        >>> TableName("ods", "user").sql()
        '`ods`.`user`'
        """
        return ".".join(map(spark_identifier, (self.schema, self.identifier)))

    def is_path_safe(self) -> bool:
        """Whether both parts can be folder names on every file system and object store."""
        return all(_SAFE_PATH_PART.fullmatch(part) for part in (self.schema, self.identifier))


@dataclass(frozen=True)
class Column:
    """A column with its Spark type in Spark's own short spelling, e.g. `decimal(10,2)`; None where it is not known."""

    name: str
    type: str | None = None


Schema = tuple[Column, ...]


def visible(schema: Schema) -> Schema:
    """Return the columns that are not hidden.

    >>> [c.name for c in visible((Column("id"), Column("_sml_key")))]
    ['id']
    """
    return tuple(column for column in schema if not is_hidden(column.name))


def python_call_name(name: str, digest: str, *, is_decided: bool) -> str:
    """The name by which queries call a function of the project in Python.

    >>> python_call_name("score", "0123456789abcdef", is_decided=True)
    'score__py_0123456789ab'
    """
    return f"{name}__py{'' if is_decided else '_any'}_{digest[:12]}"


def python_function_of(call: str) -> tuple[str, bool] | None:
    """The project's function in Python that a name calls, and whether its arguments alone decide its result.

    >>> python_function_of("SCORE__PY_0123456789ab"), python_function_of("upper")
    (('SCORE', True), None)
    """
    match = _PYTHON_CALL.fullmatch(call)
    return (match["name"], not match["undecided"]) if match else None
