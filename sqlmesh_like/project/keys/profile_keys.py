"""The keys of `profiles.yml`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from sqlmesh_like.project.keys.shape import Form, JsonSchema, Key, Shape
from sqlmesh_like.project.keys.value_types import by_name, choice, custom, entry, flag, settings, text
from sqlmesh_like.project.nodes import DEFAULT_DRIVER_MAX_BYTES, DEFAULT_RETENTION_DAYS, DeltaEngine, OnUnproven
from sqlmesh_like.project.publishing import DESTINATION
from sqlmesh_like.project.reading.store_settings import LEASE_SECONDS, SparkJars
from sqlmesh_like.project.reading.yaml_node import YamlNode


def _count(minimum: int) -> Form:
    """A whole number of at least this, or its text, which `env_var` returns."""

    def read_count(node: YamlNode, key: str) -> int:
        if isinstance(node.value, str) and node.value.strip().isdigit():
            node = replace(node, value=int(node.value))
        return node.integer(key, minimum)

    texts = {"type": "string", "pattern": r"^\s*\d+\s*$"}
    schema = {"anyOf": [{"type": "integer", "minimum": minimum}, texts]}
    return Form(read_count, f"whole number of at least {minimum}", schema, example=minimum)


_COUNT = _count(1)


class OutputShape(Shape):
    """Keys of an output. Those of other adapters are accepted, unless they are almost one of ours: that is a typo."""

    def check_keys(self, node: YamlNode) -> None:
        for key, child in node.mapping(self.what).items():
            close = [] if key in self.keys else difflib.get_close_matches(key, self.keys, n=1, cutoff=0.8)
            if close:
                shown = key.partition(":")[0]  # `password:word` is one key
                raise child.error(f"unknown key {shown!r} in {self.what}", f"did you mean {close[0]!r}?")

    def schema(self) -> JsonSchema:
        slips = "|".join(dict.fromkeys(pattern for name in self.keys for pattern in _slips(name)))
        known = "|".join(self.keys)
        return {**super().schema(), "patternProperties": {f"^(?!(?:{known})$)(?:{slips})$": False}}


def _slips(name: str) -> Iterator[str]:
    """Patterns of the name with one letter too many, too few or replaced, or with two letters swapped.

    For a short name, only those that are certainly typos.

    >>> list(_slips("ab"))
    ['a', '.ab', 'a.b', 'ab.']
    """
    characters = [re.escape(letter) for letter in name]
    for place in range(len(name)):
        before, after = "".join(characters[:place]), "".join(characters[place + 1 :])
        if place:
            yield before + after
        if len(name) >= 5:
            yield f"{before}.{after}"
            yield "".join((*characters[:place], *reversed(characters[place : place + 2]), *characters[place + 2 :]))
    yield from ("".join((*characters[:place], ".", *characters[place:])) for place in range(len(name) + 1))


CATALOGS = ("none", "hive", "glue")
CATALOG = Shape("catalog", {
    name: Key(custom("mapping", {"type": "object"}), help=f"Settings of {name}.", example={}) for name in CATALOGS
})  # fmt: skip
STORE = Shape("store", {
    "endpoint": Key(text, help="Address of an S3-compatible store. Default: AWS.", example="http://127.0.0.1:9000"),
    "region": Key(text, help="Region of the bucket. Default: of the environment.", example="eu-central-1"),
    "path_style": Key(flag, False, help="Whether buckets are named in the path, as most stores other than AWS want."),
    "single_writer": Key(flag, False, help="Take no locks, because you see to it that one call writes at a time: for a"
                                           " store without conditional writes."),
    "lease_seconds": Key(_count(30), LEASE_SECONDS, example=300,
                         help="Seconds after which another call takes over the locks of one that was killed."),
    "spark_jars": Key(choice(*get_args(SparkJars)), "pinned", example="site",
                      help="pinned: Spark gets hadoop-aws from `sml deps`; site: Spark's installation has it."),
    "versions_expire": Key(flag, False, help="A lifecycle rule of the bucket removes noncurrent versions of objects:"
                                             " `sml forget` relies on it where the bucket keeps versions."),
})  # fmt: skip
OUTPUT = OutputShape("an output", {
    "type": Key(choice("spark", "duckdb"), is_required=True, help="The engine.", example="spark"),
    "schema": Key(text, "default", help="Schema of models that do not set one.", example="dws"),
    "warehouse": Key(text, "warehouse", help="Folder of the tables, relative to the project, or a URI.",
                     example="s3://lake/warehouse"),
    "master": Key(text, "local[*]", help="Spark's master.", example="yarn"),
    "threads": Key(_COUNT, 1, help="Number of models that are computed in parallel.", example=4),
    "catalog": Key(custom("`none` | `hive` | `glue`, or one with its settings", {"enum": list(CATALOGS)}, CATALOG),
                   "none", help="Where tables are registered.", example="hive"),
    "store": Key(entry(STORE), help="How the object store of the warehouse is reached, by Spark and by `sml` itself."),
    "spark": Key(
        settings, help="Settings of the Spark session; those that may change values leave all rows to Spark.",
        example={"spark.executor.memory": "4g"},
    ),
    "hudi": Key(settings, help="Options of Hudi's writer for all tables.",
                example={"hoodie.parquet.compression.codec": "zstd"}),
    "retention_days": Key(_COUNT, DEFAULT_RETENTION_DAYS, example=14,
                          help="Days for which history that a model has not read yet is kept. A model that is further"
                               " behind is rebuilt in full. The last ten commits are always kept."),
    "publish": Key(by_name(DESTINATION), help="Destinations that models publish to, by name.",
                   example={"bi": {"duckdb": "serving.duckdb"}}),
    "delta_engine": Key(choice(*get_args(DeltaEngine)), "auto",
                        help="auto: small changes are computed by DuckDB where it is proven to give Spark's rows.",
                        example="spark"),
    "driver_max_bytes": Key(_COUNT, DEFAULT_DRIVER_MAX_BYTES, example=8_000_000_000,
                            help="With the master of a cluster: bytes of tables that the change of a model may read,"
                                 " and rewrite, on the driver. Executors do what is larger."),
    "on_unproven": Key(choice(*get_args(OnUnproven)), "error",
                       help="For type duckdb: result of a query that DuckDB is not known to compute as Spark does.",
                       example="warn"),
}, others="take")  # fmt: skip
PROFILE = Shape("a profile", {
    "target": Key(text, help="The output that is used. Default: `default`, or the only one.", example="local"),
    "outputs": Key(by_name(OUTPUT), is_required=True, help="The outputs by name.",
                   example={"local": {"type": "spark", "schema": "dws"}}),
})  # fmt: skip


class ProfilesShape(Shape):
    """Profiles by name, and dbt's `config:`."""

    def schema(self) -> JsonSchema:
        return {"type": "object", "properties": {"config": {}}, "additionalProperties": {"anyOf": [PROFILE]}}


PROFILES = ProfilesShape("profiles.yml", {}, others="take")
