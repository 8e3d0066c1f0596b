"""Doc blocks and the descriptions that quote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError, require_sound
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import ParsedProject
from tests.levels import parametrize


def project_of(folder: Path, **files: str) -> ParsedProject:
    texts = {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
        "models/m.sql": "select 1 as id",
        "models/d.md": files.get("md", "# Words\n{% docs user_id %}\nWho *bought*.\n{% enddocs %}\n"),
        "models/s.yml": files.get("yml", ""),
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    return load_project(folder, {"team": "data"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [  # as dbt-core 1.11.16 writes them into its manifest
        ("for {{ relation }} alone", "for  alone"),
        ("{{relation}}", ""),
        ("{{ 1 + 1 }}\t", "2\t"),
        ("{{ this | upper }}", ""),
        ("{% raw %}{{ relation }}{% endraw %}", "{{ relation }}"),
        ("{# for us #}plain", "plain"),
        ("{{ relation is defined }}", "False"),
    ],
)
def test_a_name_that_a_description_does_not_know_prints_nothing(tmp_path: Path, text: str, shown: str) -> None:
    """A macro's description often quotes its own arguments: snowplow's package does."""
    macros = f"macros: [{{name: m, description: '{text}', arguments: [{{name: a, description: '{text}'}}]}}]"
    (doc,) = project_of(tmp_path, yml=macros).macro_docs.values()
    assert (doc.description, doc.arguments[0][2]) == (shown, shown)


def test_a_description_of_a_data_test_quotes_blocks(tmp_path: Path) -> None:
    tests = """[{not_null: {description: "{{ doc('user_id') }}{{ nothing }}"}}]"""
    project = project_of(tmp_path, yml=f"models: [{{name: m, columns: [{{name: id, data_tests: {tests}}}]}}]")
    assert [test.description for test in project.tests] == ["Who *bought*."]


def test_descriptions_of_models_columns_and_sources_quote_blocks(tmp_path: Path) -> None:
    project = project_of(
        tmp_path,
        yml="""
models:
  - name: m
    description: "Of {{ var('team') }}: {{ doc('user_id') }}"
    columns: [{name: id, description: "{{ doc('shop', 'user_id') }}", tags: [pii], config: {meta: {unit: none}}}]
sources:
  - name: s
    tables: [{name: t, description: "{{ doc('user_id') }}", columns: [{name: c, description: plain}]}]
""",
    )
    [model], [source] = project.models, project.sources
    assert model.description == "Of data: Who *bought*."
    assert model.column_docs["id"].description == "Who *bought*."
    assert (model.column_docs["id"].tags, model.column_docs["id"].meta) == (("pii",), {"unit": "none"})
    assert source.tables[0].description == "Who *bought*."
    assert source.tables[0].column_docs["c"].description == "plain"
    assert [block.unique_id for block in project.docs] == ["doc.shop.user_id"]


WRONG = {
    "unknown block": (
        {"yml": "models:\n  - name: m\n    description: \"{{ doc('user_ids') }}\"\n"},
        "models/s.yml:3:18: no doc block is named 'user_ids'\n  did you mean 'user_id'?",
    ),
    "not closed": ({"md": "a\n {% docs x %} text"}, "models/d.md:2:2: doc block 'x' is not closed"),
    "inside another": ({"md": "{% docs x %}{% docs y %}{% enddocs %}"}, "models/d.md:1:13: docs inside docs"),
    "closed twice": ({"md": "{% docs x %}{% enddocs %}\n{% enddocs %}"}, "models/d.md:2:1: enddocs without docs"),
    "error of its code": (
        {"md": "a\n{% docs x %}{{ 1/0 }}{% enddocs %}"},
        "models/d.md:2:1: cannot evaluate a doc block",
    ),
    "no end": (
        {
            "md": "{% docs x %}{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
            "{% endfor %}{% endfor %}{% endfor %}{% enddocs %}"
        },
        "models/d.md:1:1: this doc block is not rendered: it takes more than 2 seconds",
    ),
    "no name": ({"md": "{% docs %}{% enddocs %}"}, "models/d.md:1:1: docs needs a name"),
    "same name": (
        {"md": "{% docs x %}1{% enddocs %}\n{% docs x %}2{% enddocs %}"},
        "models/d.md:2:1: doc block 'x' is there twice\n  the first is declared at models/d.md:1:1",
    ),
    "broken Jinja": ({"md": "{% docs x %}{{ 1 + }}{% enddocs %}"}, "models/d.md:1:1: invalid Jinja in a doc block"),
}


@parametrize("case", suite=[case for case in WRONG if case != "no end"], release=["no end"])
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, case: str) -> None:
    files, message = WRONG[case]
    with pytest.raises(ProjectError) as caught:
        require_sound({model.unique_id: model.error for model in project_of(tmp_path, **files).models if model.error})
    assert str(caught.value).startswith(message)
