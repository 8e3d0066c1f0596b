"""dbt's own cross-database macros beside ours: their arguments, and what dbt-duckdb's give on DuckDB."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

from tests.cross_database import macro_cases, macro_tables_on_duckdb
from tests.dbt_core.program import asked, python_of_dbt

Signature = tuple[tuple[str, ...], tuple[object, ...]]
_FOLDERS = ("macros/utils/*.sql", "macros/adapters/timestamps.sql", "macros/etc/datetime.sql")
_OTHERWISE = {
    "py_current_timestring": "the clock, to microseconds: no row may depend on it",
    "get_snapshot_get_time_data_type": "asks a database for a type; of use to dbt's own snapshots alone",
}
"""Macros that are not here, each with the reason."""


def test_every_macro_of_dbt_is_here_and_takes_the_same_arguments() -> None:
    folder = files("sqlmesh_like.render") / "builtin_macros"
    names = ("cross_database.sql", "dates_in_templates.sql")
    ours = {name: taken for file in names for name, taken in _signatures((folder / file).read_text("utf-8"))}
    code = (
        "import json, pathlib, sys, dbt.include.global_project as p; root = pathlib.Path(p.__file__).parent; "
        "print(json.dumps([f.read_text('utf-8') for glob in sys.argv[1:] for f in sorted(root.glob(glob))]))"
    )
    message = subprocess.run([str(python_of_dbt()), "-c", code, *_FOLDERS], capture_output=True, text=True, check=True)
    theirs = {name: taken for text in json.loads(message.stdout) for name, taken in _signatures(text)}
    assert len(theirs) > 70
    unlike = {name: (taken, ours.get(name)) for name, taken in theirs.items() if ours.get(name) != taken}
    assert unlike.keys() == _OTHERWISE.keys(), unlike


@pytest.mark.release
def test_dbt_duckdb_gives_what_the_table_says(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shop\nversion: '1.0'\n")
    (tmp_path / "profiles.yml").write_text("shop: {target: t, outputs: {t: {type: duckdb, path: ':memory:'}}}\n")
    cases = dict(enumerate(case for case in macro_cases() if case.of_dbt_duckdb() is not None))
    for number, case in cases.items():
        (tmp_path / "models" / f"m{number}.sql").write_text(case.template)
    assert [answer["success"] for answer in asked(tmp_path, [["compile"]])] == [True]
    with macro_tables_on_duckdb() as db:
        for number, case in cases.items():
            text = (tmp_path / "target" / "compiled" / "shop" / "models" / f"m{number}.sql").read_text()
            assert case.outcome(db.execute(text).fetchall()) == case.of_dbt_duckdb(), case.call


def _signatures(text: str) -> Iterator[tuple[str, Signature]]:
    """Names of the macros of a file, each with its arguments and those of their defaults that are constants."""
    parsed = jinja2.Environment(extensions=["jinja2.ext.do"]).parse(text)
    for macro in parsed.find_all(nodes.Macro):
        defaults = [default.as_const() if _is_constant(default) else "a call" for default in macro.defaults]
        yield macro.name, (tuple(name.name for name in macro.args), tuple(map(str, defaults)))


def _is_constant(node: nodes.Expr) -> bool:
    try:
        node.as_const()
    except nodes.Impossible:
        return False
    return True


def test_the_table_has_each_macro_that_has_values() -> None:
    called = " ".join(case.call for case in macro_cases())
    names = ("any_value", "array_append", "array_concat", "array_construct", "bool_or", "cast", "cast_bool_to_text",
             "concat", "date", "date_spine", "date_trunc", "dateadd", "datediff", "equals", "escape_single_quotes",
             "except", "generate_series", "hash", "intersect", "last_day", "length", "listagg", "position", "replace",
             "right", "safe_cast", "split_part", "string_literal", "type_bigint", "type_boolean", "type_float",
             "type_int", "type_numeric", "type_string", "type_timestamp")  # fmt: skip
    assert [name for name in names if f"dbt.{name}(" not in called] == []
