"""Models after Jinja. Owns the value that analysis starts from; `renderer` creates it."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlmesh_like.errors import Location, SqlError, as_sql_error
from sqlmesh_like.names import NodeId, Schema, TableName
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.project.nodes import AuthorStrategy, ColumnDoc, Exposure, ModelConfig, TestMetadata
from sqlmesh_like.project.semantic.declarations import Metric, SavedQuery, SemanticModel
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.project.versions import Version

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
"""The clock of templates that are rendered for no particular time."""


@dataclass(frozen=True)
class RefCall:
    """The arguments that a template passed to `ref`."""

    name: str
    package: str | None = None
    version: object = None


@dataclass(frozen=True)
class InputRef:
    """An input of a model: a source table, another model or a seed, under the name its compiled SQL uses."""

    unique_id: NodeId
    table: TableName
    kind: Literal["source", "model", "seed"]
    declared: Schema = ()
    asked: RefCall | None = field(default=None, compare=False)


@dataclass(frozen=True)
class RepeatedArgument:
    """An argument of a call that the function's expression has more than once: `sql` stands there several times.

    `line` and `column` are those of the call in the model's own file, 1-based.
    """

    function: str
    sql: str
    line: int
    column: int


@dataclass(frozen=True)
class SourceMap:
    """Maps offsets of the compiled SQL back to the model's own file.

    `anchors` are (compiled offset, raw offset, is_template) in ascending compiled order: text between two anchors was
    copied verbatim from the raw file (raw offset advances with it) or, where `is_template`, was produced by a template
    tag that starts at the raw offset (raw offset stays). `repeated`: arguments that calls of functions gave once, and
    that the compiled SQL has several times.
    """

    raw: str
    compiled: str
    anchors: tuple[tuple[int, int, bool], ...] = ((0, 0, False),)
    repeated: tuple[RepeatedArgument, ...] = ()

    def locate(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) in the raw file of a 0-based offset of the compiled SQL.

        >>> SourceMap("select 1\\nfrom t", "select 1\\nfrom t").locate(9)
        (2, 1)
        """
        index = bisect_right([anchor[0] for anchor in self.anchors], offset) - 1
        start, raw_start, is_template = self.anchors[max(index, 0)]
        raw = raw_start if is_template else raw_start + offset - start
        raw = max(0, min(raw, len(self.raw)))
        line_start = self.raw.rfind("\n", 0, raw) + 1
        return self.raw.count("\n", 0, raw) + 1, raw - line_start + 1


@dataclass(frozen=True)
class PythonCode:
    """What is known of a Python model without running it; its text is the model's `sql`.

    `references`: unique ids of inputs by how the text names them, see `reference_key`. `settings`: the values of
    `dbt.config.get` by key, and of `dbt.config.meta_get` as `meta.<key>`. `is_allowed`: its code may be run.
    """

    references: Mapping[tuple[str, ...], str]
    settings: Mapping[str, object]
    function: Location
    is_allowed: bool


def reference_key(asked: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[str, ...]:
    """The node that a call of `dbt.ref` or `dbt.source` names, however its arguments are spelt.

    >>> reference_key("ref", ("m",), {"version": 2}) == reference_key("ref", ("m",), {"v": 2})
    True
    """
    version = kwargs.get("v") if kwargs.get("v") is not None else kwargs.get("version")
    return (asked, *map(str, args), *(() if version is None else (f"v={version}",)))


@dataclass(frozen=True)
class RenderedModel:
    """A model whose template has been rendered: plain Spark SQL, effective config, and what it reads.

    `sql` of a Python model is its Python text, which is never parsed as SQL.
    """

    unique_id: NodeId
    name: str
    path: str
    raw_sql: str
    sql: str
    config: ModelConfig
    table: TableName
    inputs: tuple[InputRef, ...]
    source_map: SourceMap
    declared: Schema = ()
    description: str = ""
    is_handwritten_incremental: bool = False
    macros: tuple[str, ...] = field(default=())  # unique ids of the macros it called
    functions: tuple[str, ...] = ()  # unique ids of the functions it called
    incremental_sql: str | None = None  # hand-written incremental SQL with is_incremental() true
    fqn: tuple[str, ...] = ()  # project, folders below the model path, name
    column_docs: Mapping[str, ColumnDoc] = field(default_factory=dict)
    described_in: str | None = None  # path of the properties YAML that describes it
    asks_lake: bool = False  # its text may differ once a lake answers: it is rendered again when it runs
    incremental_map: SourceMap | None = None  # of `incremental_sql`
    version: Version | None = None
    python: PythonCode | None = None  # of a Python model
    templates: Mapping[str, str] = field(default_factory=dict)  # settings by folder, as written before rendering
    settings: Mapping[str, object] = field(default_factory=dict)  # those without effect here, and hooks as written
    error: SqlError | None = None  # why its template could not be rendered; then `sql` is empty
    config_places: Mapping[str, Location] = field(default_factory=dict)  # of the keys that properties YAML sets
    column_places: Mapping[str, Location] = field(default_factory=dict)  # of its columns there, by lower-case name
    session: Mapping[str, str] = field(default_factory=dict)  # settings of the target that may change its values

    @property
    def language(self) -> Literal["sql", "python"]:
        return "sql" if self.python is None else "python"

    @property
    def has_contract(self) -> bool:
        """Whether its columns must be those declared in YAML."""
        return self.config.contract.get("enforced") in (True, "true")

    @property
    def author_strategy(self) -> AuthorStrategy | None:
        """How rows of the author's own incremental SQL are written to the table; None if the plan is derived."""
        is_own = self.incremental_sql is not None and self.config.materialized == "incremental"
        strategy = self.config.incremental_strategy
        return strategy if is_own and strategy != "microbatch" else None

    @property
    def is_microbatch(self) -> bool:
        """Whether dbt would build it batch by batch."""
        return self.config.materialized == "incremental" and self.config.incremental_strategy == "microbatch"

    def place_of(self, word: str) -> Location:
        """Where its file first has a word; the file alone if a macro has it."""
        before, occurrence, _ = self.raw_sql.partition(word)
        if not occurrence:
            return Location(self.path)
        return Location(self.path, before.count("\n") + 1, len(before) - before.rfind("\n"))

    @property
    def branch(self) -> RenderedModel | None:
        """Hand-written incremental SQL as a model of its own that reads the existing table; None if there is none."""
        if self.incremental_sql is None or self.incremental_map is None:
            return None
        this = InputRef(self.unique_id, self.table, "model")
        inputs = (*(ref for ref in self.inputs if ref.unique_id != self.unique_id), this)
        return replace(self, sql=self.incremental_sql, source_map=self.incremental_map, inputs=inputs)


@dataclass(frozen=True)
class RenderedTest:
    """A data test as plain Spark SQL; the rows its query returns are the failures."""

    unique_id: NodeId
    name: str
    path: str
    sql: str
    severity: Literal["error", "warn"]
    inputs: tuple[InputRef, ...]
    attached_to: NodeId | None = None
    raw_sql: str = ""
    source_map: SourceMap = SourceMap("", "")
    tags: tuple[str, ...] = ()
    column_name: str | None = None
    test_type: Literal["generic", "singular"] = "singular"
    config: Mapping[str, object] = field(default_factory=dict)
    macros: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    asks_lake: bool = False
    declared_at: Location | None = None
    table: TableName | None = None  # where its failures are stored; None: nowhere
    schema: str = ""  # of that table, whether or not there is one
    fqn: tuple[str, ...] = ()
    description: str = ""
    short_name: str = ""  # of its compiled file and its table; empty: its name
    metadata: TestMetadata | None = None  # of a generic test
    described_in: str | None = None  # of a singular test: path of the properties YAML that describes it
    entry: Mapping[str, object] = field(default_factory=dict)  # the settings in its YAML entry
    error: SqlError | None = None  # why its template could not be rendered; then `sql` is empty


@dataclass(frozen=True)
class GivenRows:
    """Rows of one input of a unit test, as written."""

    ref: InputRef
    fixture: Fixture
    location: Location


@dataclass(frozen=True)
class ChangedRows:
    """What a unit test does to one input after the first build; `key` empty: it follows from the project."""

    ref: InputRef
    upsert: Fixture
    delete: Fixture
    key: tuple[str, ...]
    location: Location


@dataclass(frozen=True)
class RenderedUnitTest:
    """A unit test with its model rendered under its overrides.

    `inputs` are the tables and views that get rows, `views` those that get none, so that their own query is run.
    """

    unique_id: NodeId
    name: str
    path: str
    description: str
    model: RenderedModel
    views: tuple[RenderedModel, ...]
    inputs: tuple[InputRef, ...]
    given: tuple[GivenRows, ...]
    changes: tuple[ChangedRows, ...]
    expect: Fixture
    declared_at: Location
    overrides: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    now: datetime.datetime | None = None
    tags: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RenderedSeed:
    """A CSV file and the table it becomes."""

    unique_id: NodeId
    name: str
    path: str
    table: TableName
    column_types: Mapping[str, str]
    config: Mapping[str, object]
    declared_types: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    description: str = ""
    fqn: tuple[str, ...] = ()
    column_docs: Mapping[str, ColumnDoc] = field(default_factory=dict)
    described_in: str | None = None  # path of the properties YAML that describes it
    error: SqlError | None = None  # of its entry in properties YAML


@dataclass(frozen=True)
class RenderedExposure:
    """An exposure and the models, seeds, source tables and metrics that it reads."""

    exposure: Exposure
    inputs: tuple[InputRef, ...]
    metrics: Mapping[tuple[str, ...], str] = field(default_factory=dict)  # what metric() was given → unique id

    @property
    def unique_id(self) -> NodeId:
        return self.exposure.unique_id

    @property
    def name(self) -> str:
        return self.exposure.name

    @property
    def path(self) -> str:
        return self.exposure.declared_at.path


@dataclass(frozen=True)
class RenderedSemantic:
    """A semantic model, metric or saved query; `reads`: unique ids of its parents. `inputs`: the table of a semantic
    model.

    `measures` of a metric: all that it is based on, directly or not, as in manifest.json.
    """

    declared: SemanticModel | Metric | SavedQuery
    reads: tuple[str, ...]
    inputs: tuple[InputRef, ...] = ()
    measures: tuple[Mapping[str, object], ...] = ()

    @property
    def unique_id(self) -> NodeId:
        return self.declared.unique_id

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def path(self) -> str:
        return self.declared.path


@dataclass(frozen=True)
class RenderedFunction:
    """A function and `query`: its result for each row of a table `arguments` of its arguments, as plain Spark SQL.

    `calls`: unique ids of the functions that its own text calls.
    """

    function: FunctionFile
    query: SourceMap
    calls: tuple[str, ...] = ()

    @property
    def unique_id(self) -> NodeId:
        return self.function.unique_id


@dataclass(frozen=True)
class RenderedProject:
    """All rendered nodes of a project, by unique id, in file order."""

    name: str
    models: tuple[RenderedModel, ...]
    tests: tuple[RenderedTest, ...] = ()
    seeds: tuple[RenderedSeed, ...] = ()
    disabled: tuple[str, ...] = ()  # unique ids
    unit_tests: tuple[RenderedUnitTest, ...] = ()
    exposures: tuple[RenderedExposure, ...] = ()
    semantic: tuple[RenderedSemantic, ...] = ()
    analyses: tuple[RenderedModel, ...] = ()  # queries that nothing runs
    macros: tuple[tuple[NodeId, Location], ...] = ()  # those that the root project can call, with locations
    functions: tuple[RenderedFunction, ...] = ()
    broken_macros: Mapping[str, SqlError] = field(default_factory=dict)  # errors of macro files, by path

    @property
    def errors(self) -> dict[str, SqlError]:
        """Errors of templates and of YAML entries: those of nodes by unique id, those of macro files by path."""
        nodes: tuple[RenderedModel | RenderedSeed | RenderedTest, ...] = (
            *self.models, *self.seeds, *self.tests, *self.analyses
        )  # fmt: skip
        errors = dict(self.broken_macros)
        errors |= {node.unique_id: node.error for node in nodes if node.error is not None}
        return {name: as_sql_error(error) for name, error in errors.items()}

    def model(self, unique_id: str) -> RenderedModel:
        """The model with this id. Raises KeyError."""
        for model in self.models:
            if model.unique_id == unique_id:
                return model
        raise KeyError(unique_id)
