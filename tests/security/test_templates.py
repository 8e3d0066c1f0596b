"""What a template can reach: what it is handed, and nothing that leads from there to the machine."""

from __future__ import annotations

import datetime
import io
import time
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from types import ModuleType

import pytest
from jinja2 import Undefined
from jinja2.sandbox import SandboxedEnvironment

from sqlmesh_like.errors import NodeError, ProjectError, SmlError
from sqlmesh_like.names import Column, Schema, TableName
from sqlmesh_like.project.config import check_setting
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import MacroFile, Target
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml
from sqlmesh_like.render.adapter_functions import QueryResult
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.jinja.environment import environment
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.macros import Macros
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.renderer import render_project
from sqlmesh_like.run.lake_query import LakeQuery

TARGET = Target("lake", "local", "spark", schema="dws", warehouse="/warehouse")
OURS = ("sqlmesh_like.render.", "sqlmesh_like.project.reading.")
"""Where the classes of objects that templates are handed may come from."""
FOREIGN = ("pyspark", "py4j", "duckdb", "subprocess", "os", "sys", "posix", "pathlib", "shutil", "socket", "importlib")


class Session:
    """Stands for Spark: a template that gets here has left the sandbox."""


class Engine:
    def session(self) -> Session:
        return Session()


class Lake:
    """Answers as a run's lake does, with the way to its engine."""

    def __init__(self) -> None:
        self.engine = Engine()

    def columns(self, table: TableName) -> Schema | None:
        return (Column("id", "int"),)

    def query(self, sql: str) -> QueryResult:
        return QueryResult(("id",), ((1,),))

    def relations(self, *, there: bool = False) -> Mapping[TableName, str]:
        return {TableName("dws", "m"): "table"}

    def drop(self, table: TableName) -> None: ...


def scope_of(templates: Templates, lake: Lake | None = None) -> dict[str, object]:
    own = MacroFile("macros/own.sql", "{% macro own(a=1) %}{{ a }}{% endmacro %}")
    stranger = MacroFile("dbt_packages/kit/macros/kit.sql", "{% macro kit_macro() %}1{% endmacro %}", "kit")
    macros = Macros("shop", (own, stranger), templates)
    around = RenderEnvironment(
        "shop", TARGET, {"day": ["d1"]}, macros, templates, datetime.datetime(2024, 1, 1), lake=lake
    )
    trace = RenderTrace()
    node = {"unique_id": "model.shop.m", "name": "m", "config": {"tags": []}}
    call = ConfigCall({"tags": []}, trace, check_setting)
    return build_scope(around, RelationRegistry("shop", {}, {}, {}), node, TableName("dws", "m"), call, trace)


def reachable(sandbox: SandboxedEnvironment, start: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Everything that a template can come to from these names without calling anything, with the way there."""
    waiting: list[tuple[str, object]] = list(start.items())
    kept: dict[int, object] = {}
    while waiting:
        way, value = waiting.pop()
        if id(value) in kept or way.count(".") > 8:
            continue
        kept[id(value)] = value  # held, so that no other object gets its number
        yield way, value
        if isinstance(value, str | bytes | int | float | bool | datetime.timedelta | None):
            continue
        if isinstance(value, Mapping):
            waiting += [(f"{way}.[{key!r}]", value[key]) for key in value.keys()]  # noqa: SIM118 (rows iterate values)
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += [(f"{way}.[{number}]", each) for number, each in enumerate(value)]
        for name in dir(value):
            member = sandbox.getattr(value, name)
            if not isinstance(member, Undefined):
                waiting.append((f"{way}.{name}", member))


def is_outside(value: object) -> bool:
    kind = value if isinstance(value, type) else type(value)
    module = kind.__module__
    if isinstance(value, ModuleType | PurePath | io.IOBase | Lake | Engine | Session):
        return True
    return module.split(".")[0] in FOREIGN or (module.startswith("sqlmesh_like") and not module.startswith(OURS))


@pytest.mark.parametrize("lake", [None, Lake()])
def test_nothing_within_reach_of_a_model_is_an_engine_a_session_a_path_or_a_module(lake: Lake | None) -> None:
    sandbox = environment(set())
    assert isinstance(sandbox, SandboxedEnvironment)
    scope = scope_of(Templates(), lake)
    answers = scope["run_query"]
    assert callable(answers)
    start = {**scope, "table": answers("select 1"), "missing": sandbox.undefined(name="x")}
    members = dict(reachable(sandbox, start))
    assert len(members) > 300
    assert [way for way, value in members.items() if is_outside(value)] == []


def test_nothing_within_reach_of_yaml_is_a_path_or_a_module() -> None:
    renderer = ValueRenderer({"day": "d1"}, secrets=True)
    sandbox = renderer._environment
    members = dict(reachable(sandbox, sandbox.globals))
    assert "var" in members and [way for way, value in members.items() if is_outside(value)] == []


def test_variables_are_the_same_for_every_template() -> None:
    templates = Templates()
    scope = scope_of(templates)
    with pytest.raises(SmlError, match=r"not allowed|has no attribute|undefined"):
        templates.render("a.sql", "{% do var._values.update(day='other') %}{{ var.values.clear() }}", scope)
    assert templates.render("b.sql", "{{ var('day')[0] }}", scope).compiled == "d1"


ESCAPES = (
    # A way that led from a question to Spark.
    "execute.functions.lake.engine.session()",
    "execute.asking.lake.engine.session()",
    "adapter.lake.engine.session()",
    "adapter._lake.engine.session()",
    "adapter['_lake'].engine",
    "(adapter|attr('_lake')).engine",
    "adapter._binding.macros",
    "execute._is_answered()",
    "run_query.__self__._lake.engine",
    "run_query.__func__.__globals__",
    "execute.__class__",
    "execute.lake.columns",
    "context._scope",
    "context['adapter']._lake.engine",
    "graph._entries",
    "graph.setdefault.__globals__",
    "model._entries.__globals__",
    "dbt_metadata_envs['X'].__class__",
    "run_query('select 1')._of.__globals__",
    "run_query('select 1').to_csv('x.csv')",
    "run_query('select 1').print_table.__globals__",
    "run_query('select 1').where(context.__class__)",
    "try_or_compiler_error('x', adapter._lake.engine.session)",
    "modules.re.compile('a').__class__",
    "adapter.execute('drop table t')",
    "adapter.add_query('drop table t')",
    "adapter.get_connection()",
    "adapter.connections",
    "adapter.config",
    # Jinja's own, and Python's.
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "().__class__.__base__",
    "[].__class__.__init__.__globals__",
    "config.__init__.__globals__['os'].environ",
    "config._weaker",
    "config._findings",
    "config._check.__globals__",
    "ref.__globals__",
    "ref.__closure__[0].cell_contents",
    "ref.__code__.co_consts",
    "source.__globals__['re']",
    "env_var.__globals__['os'].environ",
    "var.__class__.__init__.__globals__",
    "var.__call__.__func__",
    "cycler.__init__.__globals__.os",
    "joiner.__init__.__globals__.os",
    "namespace.__init__.__globals__",
    "dict.__base__",
    "dict.mro()",
    "range.__self__",
    "modules.datetime.sys",
    "modules.datetime.datetime.__subclasses__()",
    "modules.re.sre_compile",
    "modules.re.match.__globals__",
    "modules.itertools.__spec__",
    "modules.pytz.open_resource('x')",
    "modules.os.environ",
    "modules.pytz.timezone.__init__.__globals__",
    "api.Column.create.__init__.__globals__",
    "api.Relation.create.__globals__",
    "exceptions.warn.__globals__",
    "fromjson.__globals__",
    "fromyaml('!!python/object/apply:os.system [id]')",
    "fromyaml('!!python/name:os.environ')",
    "builtins.ref.__globals__",
    "this._table.__class__",
    "this.__init__.__globals__",
    "model.__class__",
    "target.__class__.__base__",
    "own.__class__",
    "own._binding.macros",
    "shop._binding",
    "kit._macros",
    "self.__init__.__globals__",
    "self._TemplateReference__context",
    "'{0.__class__}'.format(1)",
    "'{0.__init__.__globals__}'.format_map({'0': config})",
    "('{0.__class__.__mro__}'|format(1))~''.__class__",
    "(config|attr('__init__'))",
    "([config]|map(attribute='__init__')|list)[0].__globals__",
    "([config]|groupby('__class__')|list)[0]",
    "undefined_name.__class__",
    "undefined_name._assigned",
    "log.__globals__",
    "zip.__self__",
    "set.__base__",
    "return.__globals__",
    "env_var('DBT_ENV_SECRET_WORD')",
)


@pytest.mark.parametrize("expression", ESCAPES)
def test_a_way_out_of_a_template_is_refused_or_leads_nowhere(
    expression: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_WORD", "planted-word")
    monkeypatch.chdir(tmp_path)
    templates = Templates()
    scope = scope_of(templates, Lake())
    try:
        shown = templates.render("m.sql", f"{{{{ {expression} }}}}", scope).compiled
    except SmlError as error:
        shown = str(error)
    for planted in ("planted-word", "<class", "<module", "<function", "<built-in", "Session object", str(Path.cwd())):
        assert planted not in shown, shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "drop table ods.t",
        "select 1; drop table ods.t",
        "insert into ods.t select 1",
        "from ods.t insert overwrite table ods.u select *",
        "with a as (select 1) insert into ods.t select * from a",
        "cache table x select 1",
        "set spark.sql.ansi.enabled=true",
        "create table x as select 1",
        "truncate table ods.t",
        "add jar '/tmp/x.jar'",
        "merge into a using b on a.i = b.i when matched then delete",
        "call run_clean(table => 'x')",
        "refresh table x",
        "delete from ods.t",
        "update ods.t set a = 1",
        "explain select 1",
        "load data inpath '/x' into table t",
    ],
)
def test_while_a_model_is_rendered_only_a_select_is_answered(statement: str) -> None:
    lake = LakeQuery(planner=None, engine=None)  # type: ignore[arg-type] (neither may be asked)
    with pytest.raises(NodeError, match=r"run_query takes a SELECT here|run_query: invalid SQL"):
        lake.query(statement)


BOMBS = (
    "10 ** (10 ** 10)",
    "2 ** 100000000",
    "(2 ** 1000000) ** 1000",
    "'a' * 10 ** 12",
    "10 ** 12 * 'a'",
    "[0] * 10 ** 11",
    "(1, 2) * 10 ** 11",
    "'a' * 2 ** 40",
    "range(10 ** 12)",
    "range(10 ** 12) | list",
)


@pytest.mark.parametrize("expression", BOMBS)
def test_a_value_that_takes_all_memory_or_time_is_refused(expression: str) -> None:
    started = time.monotonic()
    templates = Templates()
    with pytest.raises(SmlError, match=r"m\.sql:1"):
        templates.render("m.sql", f"{{{{ {expression} }}}}", scope_of(templates))
    node = parse_yaml(f'a: "{{{{ {expression} }}}}"', "x.yml").children["a"]
    with pytest.raises(SmlError, match=r"x\.yml"):
        ValueRenderer({}, secrets=False).render(node)
    assert time.monotonic() - started < 120


def test_small_products_are_what_they_are() -> None:
    templates = Templates()
    shown = templates.render("m.sql", "{{ 3 * 4 }}{{ 'ab' * 2 }}{{ 2 ** 10 }}{{ 1.5 * 2 }}", scope_of(templates))
    assert shown.compiled == "12abab10243.0"


PACKAGE_MACROS = """
{% macro ref(name) %}stolen_ref{% endmacro %}
{% macro source(a, b) %}stolen_source{% endmacro %}
{% macro env_var(name, default='') %}stolen_env{% endmacro %}
{% macro var(name) %}stolen_var{% endmacro %}
{% macro config() %}stolen_config{% endmacro %}
{% macro run_query(q) %}stolen_query{% endmacro %}
{% macro generate_schema_name(custom, node) %}stolen_schema{% endmacro %}
{% macro generate_alias_name(custom, node) %}stolen_alias{% endmacro %}
{% macro own_name() %}of the package{% endmacro %}
"""
SQL = "{{ config(tags=['x']) }}select '{{ own_name() }}{{ var('day') }}{{ env_var('NONE', 'n') }}' from {{ ref('b') }}"


def project(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_macros_of_a_package_stand_in_place_of_no_function_and_of_no_choice_of_the_root_project(tmp_path: Path) -> None:
    root_macros = """
{% macro generate_schema_name(custom, node) %}root{% endmacro %}
{% macro own_name() %}of the root{% endmacro %}"""
    files = {
        "dbt_project.yml": "name: shop\nvars: {day: d1}\n",
        "macros/m.sql": root_macros,
        "models/b.sql": "select 1 as a",
        "models/mine.sql": SQL,
        "dbt_packages/kit/dbt_project.yml": "name: kit\n",
        "dbt_packages/kit/macros/m.sql": PACKAGE_MACROS,
        "dbt_packages/kit/models/theirs.sql": SQL,
    }
    rendered = render_project(load_project(project(tmp_path, files), {}), TARGET)
    theirs, mine = (rendered.model(f"model.{name}") for name in ("kit.theirs", "shop.mine"))
    assert mine.sql == "select 'of the rootd1n' from `root`.`b`"
    assert theirs.sql == "select 'of the packaged1n' from `root`.`b`"
    assert str(theirs.table) == "root.stolen_alias" and str(mine.table) == "root.mine"


@pytest.mark.parametrize("name", ["dbt", "adapter", "modules", "ref", "builtins", "env_var", "this", "exceptions"])
def test_a_package_named_like_what_templates_have_is_refused(name: str, tmp_path: Path) -> None:
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/a.sql": "select {{ 1 }} as a",
        f"dbt_packages/{name}/dbt_project.yml": f"name: {name}\n",
        f"dbt_packages/{name}/macros/m.sql": "{% macro type_string() %}stolen{% endmacro %}",
    }
    with pytest.raises(ProjectError, match="cannot be the name of a package"):
        render_project(load_project(project(tmp_path, files), {}), TARGET)


def test_yaml_values_are_text_to_the_end() -> None:
    node = parse_yaml("a: \"{{ ''.__class__ }}\"", "x.yml").children["a"]
    assert isinstance(node, YamlNode)
    with pytest.raises(SmlError, match=r"x\.yml"):
        ValueRenderer({}, secrets=True).render(node)
