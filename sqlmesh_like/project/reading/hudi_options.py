"""Options of Hudi's writer under `hudi:`. Owns which are not the user's: with these, rows would be lost or change.

A table equals its SELECT because of its record keys, because the last commit of a key wins, and because each commit
carries its record. Options of files, sizes, indexes, services, locks, catalogs and parallelism are the user's. Sources:
`DataSourceOptions`, `HoodieWriteConfig`, `HoodieTableConfig` and `HoodieIndexConfig` of Hudi 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.project.reading.yaml_node import YamlNode

_RESERVED = (
    (
        r"""datasource\.write\.(recordkey\.field | keygenerator\..+ | partitionpath\..+ | hive_style_partitioning
            | slash\..+ | drop\.partition\.columns | operation | table\.(name | type))
            | index\.class | bucket\.index\.(hash\.field | partition\..+) | datasource\.overwrite\.mode
            | static\.overwrite\..+ | populate\.meta\.fields | table\.(?!services\.).+""",
        "layout and keys of a table are the project's: see `unique_key`, `partition_by` and `table_type`",
    ),
    (
        r"""record\.merge\..+ | write\.record\.merge\..+ | datasource\.write\.(record\.merger?\..+
            | precombine\.field | payload\..+ | insert\.drop\.duplicates) | datasource\.insert\..+
            | combine\.before\..+ | merge\.allow\.duplicate\.on\.inserts | write\.merge\.handle\..+ | merge\.handle\..+
            | write\.partial\.update\..+ | payload\..+ | compaction\.(payload | record\.merger)\..+""",
        "of two rows of a key the last one written is right: see `order_by` of an ingested table",
    ),
    (
        r"""datasource\.write\.(commitmeta\..+ | reconcile\.schema) | write\.set\.null\.for\.missing\.columns
            | avro\.schema | write\.schema | internal\.schema | parquet\.outputtimestamptype""",
        "values and records of a commit are the project's",
    ),
)  # fmt: skip
"""Names behind `hoodie.` (verbose patterns), and whose they are."""
_INDEXES = ("BUCKET", "SIMPLE", "BLOOM")
"""Those that find a key within its partition, in files. A row that moves to another partition is a delete and an insert
of one key in one commit, of which a global index loses one; an index in memory ends with its process."""


@dataclass(frozen=True)
class ReservedOption:
    """An option that is not the user's, and what to do instead."""

    name: str
    hint: str


def reserved_option(options: Mapping[str, str]) -> ReservedOption | None:
    """The first option that is not the user's.

    >>> reserved_option({"hoodie.parquet.compression.codec": "snappy", "hoodie.index.type": "SIMPLE"})
    >>> reserved_option({"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}).name
    'hoodie.record.merge.mode'
    """
    for name, value in options.items():
        if name == "hoodie.index.type" and value.upper() not in _INDEXES:
            hint = f"leave it out, or write one of {', '.join(_INDEXES)}: with {value} rows would be lost or doubled"
            return ReservedOption(name, hint)
        for pattern, hint in _RESERVED:
            if re.fullmatch(rf"hoodie\.(?:{pattern})", name, re.VERBOSE):
                return ReservedOption(name, f"leave it out: {hint}")
    return None


def read_hudi_options(node: YamlNode | None) -> Mapping[str, str]:
    """The mapping below `hudi:` in YAML. Raises ProjectError at an option that is not the user's."""
    options = {} if node is None else node.settings("hudi")
    if node is not None and (found := reserved_option(options)):
        raise node.children[found.name].error(f"the option {found.name} of Hudi is not to be set", found.hint)
    return options


def options_of_defaults(text: str) -> dict[str, str]:
    """The options that Hudi takes from a `hudi-defaults.conf`: a name, white space or `=`, and a value in each line.

    >>> options_of_defaults("# for all\\nhoodie.record.merge.mode  EVENT_TIME_ORDERING\\na=b = c\\n")
    {'hoodie.record.merge.mode': 'EVENT_TIME_ORDERING', 'a': 'b = c'}
    """
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*=\s*|\s+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
