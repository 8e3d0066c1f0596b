"""What a project declares, as frozen values. Owns the shape only; `loader` and `profile` read files into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.names import Column, NodeId, TableName
from sqlmesh_like.project.freshness import Freshness
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.project.publishing import Destination, Publish
from sqlmesh_like.project.reading.store_settings import StoreSettings
from sqlmesh_like.project.semantic.declarations import SemanticLayer
from sqlmesh_like.project.snapshots import SnapshotConfig
from sqlmesh_like.project.testing.unit_test_spec import UnitTestFile
from sqlmesh_like.project.versions import Version

Materialized = Literal["incremental", "table", "view", "ephemeral", "snapshot"]
Refresh = Literal["auto", "incremental", "strict", "full"]
TableType = Literal["cow", "mor"]
BuildBy = Literal["day", "month", "year", "partition"]
AuthorStrategy = Literal["append", "merge", "delete+insert", "insert_overwrite"]
Microbatch = Literal["microbatch"]
"""dbt's strategy of batches by time. Here its query is maintained as a whole, so it is not an author strategy."""
DatabaseKind = Literal["mysql", "postgresql"]
"""`mysql` is MariaDB, too."""
ZeroDates = Literal["dead_letter", "null"]
"""What a date `0000-00-00` of MySQL becomes."""
CdcFormat = Literal["debezium", "debezium_flat", "flink_cdc", "canal", "maxwell", "dms", "ogg", "rows"]
TimeUnit = Literal["days", "seconds", "millis", "micros", "nanos"]
"""What a number counts, from the start of 1970 in UTC, or from midnight for a time of day."""


@dataclass(frozen=True)
class PartitionBy:
    """Partition of an ODS table, derived from a column. `format`: a date pattern (`yyyyMM`), None: the value itself."""

    column: str
    format: str | None
    field: str  # name of the partition column, `as:` in YAML


@dataclass(frozen=True)
class IngestTable:
    """How the events of one source table become one ODS table (grain: one row per primary key).

    Without a primary key every insert is a row of its own. `origin` names a column that holds which source table
    (`database.table`) a row came from. `updates: partial`: columns that an update lacks are unchanged. `unit`: what
    numbers in its timestamp columns count, where neither the events nor the column say it. `time_zone`: of local times
    without a zone; None: UTC.
    """

    database: str | None
    table: str
    primary_key: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    partition_by: PartitionBy | None = None
    table_type: TableType = "cow"
    deletes: Literal["hard", "soft", "retention"] = "hard"
    updates: Literal["full", "partial"] = "full"
    zero_dates: ZeroDates = "dead_letter"
    origin: str | None = None
    hudi: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit | None = None
    time_zone: str | None = None


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files are written. `header`: their first record names the columns; `null`: what stands for NULL."""

    header: bool = False
    null: str = "NULL"
    delimiter: str = ","
    encoding: str = "utf-8"


@dataclass(frozen=True)
class RegistrySettings:
    """The schema registry of a source. `authorities`, `certificate`, `key`: files; `timeout`: seconds to wait.

    `ids`: what the numbers in messages are, of Apicurio's own interface. `region`: of AWS Glue's registry; None: it is
    another.
    """

    urls: tuple[str, ...] = field(repr=False)  # may hold passwords
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: int = 60
    ids: Literal["globalId", "contentId"] | None = None
    region: str | None = None
    declared_at: Location | None = None


@dataclass(frozen=True)
class ComparisonSchedule:
    """When `sml watch` compares the tables of a database with the lake. `every`: seconds; `share`: of the rows, to 1.

    `rows_per_second`: most that are read of the database.
    """

    every: float
    share: float = 1.0
    rows_per_second: int | None = None


@dataclass(frozen=True)
class DatabaseSettings:
    """A database whose tables and log are read. `tables`: patterns; None: those that the source declares.

    `keep_days`: how long events that are in tables are kept. `rows_per_query`: how many rows of a table are read at a
    time. `options`: settings of Debezium's connector.
    """

    kind: DatabaseKind
    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    tables: tuple[str, ...] | None = field(default=None, repr=False)
    keep_days: int = field(default=7, repr=False)
    rows_per_query: int = field(default=2_000_000, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords
    declared_at: Location | None = field(default=None, repr=False)
    verify: ComparisonSchedule | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Its address without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.kind}://{self.user}@{host}:{self.port}/{self.database}"


@dataclass(frozen=True)
class IngestSource:
    """Where the events of a source come from. Exactly one of `files`, `kafka` and `database` is set."""

    format: CdcFormat
    files: str | None = None  # glob, relative to the project root or absolute
    max_files_per_batch: int | None = None
    csv: CsvFormat = CsvFormat()
    kafka: Mapping[str, object] | None = field(default=None, repr=False)  # may hold passwords
    database: DatabaseSettings | None = None
    registry: RegistrySettings | None = None
    trigger: str = "60 seconds"
    max_events_per_batch: int | None = None
    concurrency: int = 4
    on_schema_change: Literal["evolve", "lenient", "ignore", "fail"] = "evolve"
    on_bad_record: Literal["dead_letter", "fail"] = "dead_letter"
    discover: bool = False
    unavailable_value_placeholder: str = "__debezium_unavailable_value"  # Debezium's default
    zero_dates: ZeroDates = "dead_letter"
    time_zone: str | None = None
    declared_at: Location | None = None  # of its files, or its brokers

    @property
    def log_name(self) -> str:
        """What its events are read from, for messages."""
        return self.files or (self.database.address if self.database else "Kafka")


@dataclass(frozen=True)
class ColumnDoc:
    """The documentation of a column in properties YAML."""

    description: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    granularity: str | None = None  # of a column of times
    constraints: tuple[Mapping[str, object], ...] = ()
    quote: bool | None = None


@dataclass(frozen=True)
class DocBlock:
    """A named piece of Markdown; `unique_id` is `doc.<project>.<name>`."""

    unique_id: NodeId
    name: str
    text: str
    declared_at: Location


@dataclass(frozen=True)
class SourceTable:
    """One table of a source; `unique_id` is `source.<project>.<source>.<name>`."""

    unique_id: NodeId
    source_name: str
    name: str
    table: TableName
    location: str | None  # explicit path of an existing table
    format: str  # hudi | parquet | csv | json | delta
    ingest: IngestTable | None
    columns: tuple[Column, ...]
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    declared_at: Location
    column_docs: Mapping[str, ColumnDoc] = field(default_factory=dict)  # by name as declared
    freshness: Freshness = field(default_factory=Freshness)
    renamed: Mapping[str, str] = field(default_factory=dict)  # column → its former name in the source
    units: Mapping[str, TimeUnit] = field(default_factory=dict)  # column → what numbers in its events count
    time_zones: Mapping[str, str] = field(default_factory=dict)  # column → the zone of its local times
    loader: str = ""  # the tool that loads its rows
    event_time: str | None = None  # the column to which a microbatch model's `begin` applies
    fqn: tuple[str, ...] = ()  # package, folders of its file, source, name

    @property
    def shown(self) -> tuple[Column, ...]:
        """The declared columns as queries see them: with the partition column that ingestion derives."""
        by = self.ingest.partition_by if self.ingest else None
        if by is None or not self.columns or by.field.lower() in (column.name.lower() for column in self.columns):
            return self.columns
        return (*self.columns, Column(by.field, "string"))


@dataclass(frozen=True)
class Source:
    """A named group of source tables and, if it is ingested, its event stream."""

    name: str
    schema: str
    ingest: IngestSource | None
    tables: tuple[SourceTable, ...]
    description: str
    declared_at: Location


@dataclass(frozen=True)
class ModelConfig:
    """Effective settings of a model after precedence: in-file `config()` > properties YAML > project settings."""

    materialized: Materialized = "incremental"
    unique_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    frozen_before: str | None = None  # rows whose first partition column is below it stay as they are
    build_by: BuildBy | None = None  # a build is done in slices, one for each such period of the first partition column
    build_visible: bool = False  # readers see the slices that are built so far
    table_type: TableType = "cow"
    refresh: Refresh = "auto"
    floating: float | None = None  # relative tolerance of merged sums of doubles; None: they are recomputed
    tags: tuple[str, ...] = ()
    schema: str | None = None
    alias: str | None = None
    enabled: bool = True
    full_refresh: bool | None = None
    incremental_strategy: AuthorStrategy | Microbatch | None = None
    merge_update_columns: tuple[str, ...] = ()
    merge_exclude_columns: tuple[str, ...] = ()
    incremental_predicates: tuple[str, ...] = ()
    on_schema_change: str = "ignore"
    pre_hook: tuple[str, ...] = ()
    post_hook: tuple[str, ...] = ()
    publish: Publish | None = None
    hudi: Mapping[str, str] = field(default_factory=dict)
    contract: Mapping[str, object] = field(default_factory=dict)
    meta: Mapping[str, object] = field(default_factory=dict)
    group: str | None = None
    access: Literal["private", "protected", "public"] = "protected"
    docs: Mapping[str, object] = field(default_factory=dict)
    persist_docs: Mapping[str, object] = field(default_factory=dict)  # of dbt; here it decides what `state:` compares
    snapshot: SnapshotConfig | None = None  # of a snapshot: how versions are kept


@dataclass(frozen=True)
class ModelFile:
    """A model as its file and properties declare it, before Jinja; `unique_id` is `model.<project>.<name>`.

    `yaml_config` holds the config of properties YAML merged over the project settings, by key; in-file `config()` calls
    are only known after rendering and win over it.
    """

    unique_id: NodeId
    name: str
    path: str  # relative to the project root
    raw_sql: str
    yaml_config: Mapping[str, object]
    columns: tuple[Column, ...]
    description: str
    declared_at: Location
    fqn: tuple[str, ...] = ()  # project, folders below the model path, name
    root_config: Mapping[str, object] = field(default_factory=dict)  # of a package's model: the root project's settings
    column_docs: Mapping[str, ColumnDoc] = field(default_factory=dict)
    described_in: str | None = None  # path of the properties YAML that describes it
    version: Version | None = None
    templates: Mapping[str, str] = field(default_factory=dict)  # settings of the project, as written before rendering
    config_places: Mapping[str, Location] = field(default_factory=dict)  # of the keys that properties YAML sets
    column_places: Mapping[str, Location] = field(default_factory=dict)  # of its columns there, by lower-case name
    time_spine: Mapping[str, object] | None = None  # as in manifest.json
    error: SqlError | None = None  # of its entry in properties YAML

    @property
    def is_python(self) -> bool:
        return self.path.lower().endswith(".py")

    @property
    def package(self) -> str:
        """The name of the project or package that contains the file."""
        return self.unique_id.package


@dataclass(frozen=True)
class SeedFile:
    """A CSV file that becomes a table; `unique_id` is `seed.<project>.<name>`."""

    unique_id: NodeId
    name: str
    path: str
    config: Mapping[str, object]
    column_types: Mapping[str, str]
    description: str
    declared_types: Mapping[str, str] = field(default_factory=dict)  # those that its columns have in properties YAML
    fqn: tuple[str, ...] = ()
    column_docs: Mapping[str, ColumnDoc] = field(default_factory=dict)
    described_in: str | None = None  # path of the properties YAML that describes it
    error: SqlError | None = None  # of its entry in properties YAML


@dataclass(frozen=True)
class TestMetadata:
    """The call of a generic test: `namespace.name(**kwargs)`, as declared in YAML."""

    __test__ = False

    namespace: str | None
    name: str
    kwargs: Mapping[str, object]


@dataclass(frozen=True)
class TestFile:
    """A data test before Jinja: rows that its SELECT returns are failures.

    `unique_id` is `test.<project>.<name>`, of a generic test with a hash of what it calls. Generic tests are already
    spelt out as a call of their macro (`{{ test_not_null(model=…, column_name=…) }}`).
    """

    __test__ = False

    unique_id: NodeId
    name: str
    path: str
    raw_sql: str
    attached_to: NodeId | None
    declared_at: Location
    column_name: str | None = None
    test_type: Literal["generic", "singular"] = "singular"
    config: Mapping[str, object] = field(default_factory=dict)  # where, store_failures, limit …, from its entry
    weaker: Mapping[str, object] = field(default_factory=dict)  # from the project's settings
    fqn: tuple[str, ...] = ()  # project, folders of its file, name
    description: str = ""
    short_name: str = ""  # of its compiled file and its table; empty: its name
    metadata: TestMetadata | None = None
    described_in: str | None = None  # of a singular test: path of the properties YAML that describes it


@dataclass(frozen=True)
class MacroFile:
    """One macro file; its text is loaded whole into the sandboxed environment. `package` None: the project's own."""

    path: str
    raw: str
    package: str | None = None


@dataclass(frozen=True)
class MacroDoc:
    """The documentation of a macro in properties YAML; arguments are (name, type, description), empty if not given."""

    description: str
    arguments: tuple[tuple[str, str, str], ...] = ()
    described_in: str | None = None  # path of the properties YAML that describes it


@dataclass(frozen=True)
class Exposure:
    """A use of the project from outside. `depends_on`: calls of ref() and source(), each with line and column.

    `unique_id` is `exposure.<project>.<name>`.
    """

    unique_id: NodeId
    name: str
    type: str  # dashboard | notebook | analysis | ml | application
    owner: Mapping[str, object]
    depends_on: tuple[tuple[str, int | None, int | None], ...]
    description: str
    label: str | None
    maturity: str | None
    url: str | None
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    fqn: tuple[str, ...]
    declared_at: Location


@dataclass(frozen=True)
class ModelGroup:
    """Models of one owner; only the group itself may read a private one. `unique_id` is `group.<project>.<name>`."""

    unique_id: NodeId
    name: str
    owner: Mapping[str, object]
    description: str
    declared_at: Location


@dataclass(frozen=True)
class ProjectFlags:
    """`flags:` of the settings that have an effect here. `strict_undefined`: an undefined name is an error instead of
    an empty text. `python_model_packages`: packages whose Python models and functions may be run. `behavior`:
    names of flags that are on, for `adapter.behavior` of templates."""

    strict_undefined: bool = False
    python_model_packages: tuple[str, ...] = ()
    behavior: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ParsedProject:
    """Everything the files of a project declare. Names are unique among enabled models and seeds; only `render` knows
    which are enabled."""

    name: str
    root: Path
    settings_file: str
    profile_name: str | None
    target_path: str
    clean_targets: tuple[str, ...]
    vars: Mapping[str, object]
    models: tuple[ModelFile, ...]
    seeds: tuple[SeedFile, ...]
    sources: tuple[Source, ...]
    tests: tuple[TestFile, ...]
    macros: tuple[MacroFile, ...]
    unit_tests: tuple[UnitTestFile, ...] = ()
    docs: tuple[DocBlock, ...] = ()
    macro_docs: Mapping[str, MacroDoc] = field(default_factory=dict)  # by `macro.<package>.<name>`
    exposures: tuple[Exposure, ...] = ()
    groups: tuple[ModelGroup, ...] = ()
    semantic: SemanticLayer = field(default_factory=SemanticLayer)
    analyses: tuple[ModelFile, ...] = ()  # `unique_id` is `analysis.<project>.<name>`: rendered, never run
    functions: tuple[FunctionFile, ...] = ()
    warnings: tuple[str, ...] = ()
    package_vars: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # of each package, by its name
    packages_path: str = "dbt_packages"  # the folder of packages, relative to the project root
    dispatch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # namespace → packages to search
    on_run_start: tuple[str, ...] = ()
    on_run_end: tuple[str, ...] = ()
    flags: ProjectFlags = field(default_factory=ProjectFlags)
    versions: Mapping[str, str | None] = field(default_factory=dict)  # of the project and its packages, by name
    release: ReleaseMode | None = None  # when a run makes a release; None: never

    @property
    def ingested(self) -> frozenset[str]:
        """Source tables (by unique id) that ingestion writes."""
        return frozenset(t.unique_id for source in self.sources if source.ingest for t in source.tables if t.ingest)


ReleaseMode = Literal["always", "tested", "manual"]
DeltaEngine = Literal["auto", "spark"]
OnUnproven = Literal["error", "warn"]
"""The result of a query, on a `duckdb` target, that DuckDB is not known to compute as Spark does."""


DEFAULT_RETENTION_DAYS = 7
"""Days for which history that a model has not read yet is kept."""
DEFAULT_DRIVER_MAX_BYTES = 2_000_000_000
"""Bytes that a change may read and rewrite on the driver of a cluster: what one machine does while Spark starts."""


@dataclass(frozen=True)
class Target:
    """One output of `profiles.yml`. `warehouse` is an absolute path or a URI of an object store.

    Fields that may hold a password are not part of its `repr`.
    """

    profile: str
    name: str
    type: Literal["spark", "duckdb"]
    schema: str = "default"
    warehouse: str = ""
    master: str = "local[*]"
    threads: int = 1
    catalog: str = "none"
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    hudi: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    publish: Mapping[str, Destination] = field(default_factory=dict, repr=False)
    delta_engine: DeltaEngine = "auto"
    on_unproven: OnUnproven = "error"
    retention_days: int = DEFAULT_RETENTION_DAYS
    driver_max_bytes: int = DEFAULT_DRIVER_MAX_BYTES
    store: StoreSettings = field(default_factory=StoreSettings)
