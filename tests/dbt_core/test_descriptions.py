"""Descriptions that a generator makes are the texts that dbt-core 1.11.16 renders, and errors where it has one."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_core.program import HERE, QUIET, python_of_dbt
from tests.projects import enter_project

pytestmark = pytest.mark.release
DESCRIPTIONS, PARTS = 200, 3
FILES = {
    "dbt_project.yml": "name: p\nversion: '1.0'\nprofile: lake\nvars: {v: seven}\n",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, path: x.duckdb, schema: main}}}\n",
    "models/m.sql": "select 1 as a\n",
    "models/m.md": "{% docs d %}\n# A *block*\n{{ not_rendered }}\n{% enddocs %}\n{% docs e %}{% enddocs %}\n",
}
_PARTS = (
    "{{relation}}", "{{ relation.name }}", "{{ a.b.c }}", "{{ doc('d') }}", "{{ doc('p', 'd') }}", "{{doc('e')}}",
    "{{ doc('none') }}", "{{ doc() }}", "{{ doc('d') | upper }}", "{{ x | upper }}", "{{ x | nothing }}", "{{ 1 + 1 }}",
    "{{ '{{' }}", "{# a comment #}", "{% raw %}{{ x }}{% endraw %}", "{% raw %}", "{% if a %}b{% else %}c{% endif %}",
    "{% set a = 1 %}{{ a }}", "{% for i in [1, 2] %}{{ i }}{% endfor %}", "{% unknown %}", "{{ ref('m') }}",
    "{{ source('a', 'b') }}", "{{ var('v') }}", "{{ var('none') }}", "{{ var('none', 'x') }}",
    "{{ env_var('NO_SUCH', 'x') }}",
    "{{ env_var('NO_SUCH') }}", "{{ this }}", "{{ target.name }}", "{{ model }}", "{{ config() }}", "{{ a() }}",
    "{{ none }}", "{{ true }}", "{{", "}}", "{%", "%}", "{", "}", "{}", "$x$",
    "{ { x } }", "'", '"', "\\", "\\n", "\n", "\t", "  ",
    "é漢😀", "a: b", "# x", "- x", "<b>", "&amp;", "|", "0", "null",
    "1e3", "%s", "{0}", "${x}", "#{x}", "[[x]]", "`{{ x }}`",
)  # fmt: skip


def descriptions() -> list[str]:
    dice = random.Random("38 J")
    made = [*_PARTS, *("".join(dice.choices(_PARTS, k=dice.randint(2, PARTS))) for _ in range(DESCRIPTIONS))]
    return list(dict.fromkeys(made))[:DESCRIPTIONS]


def _answers_of_dbt(place: Path, texts: list[str]) -> list[str | None]:
    words = [str(python_of_dbt()), str(HERE / "description_texts.py")]
    asked, around = json.dumps(texts), {**os.environ, **QUIET}
    done = subprocess.run(words, cwd=place, input=asked, capture_output=True, text=True, timeout=600, env=around)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    answers: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _described(texts: list[str]) -> str:
    columns = [{"name": f"c{number}", "description": text} for number, text in enumerate(texts)]
    return json.dumps({"version": 2, "models": [{"name": "m", "columns": columns}]}, ensure_ascii=False)


def test_a_description_is_the_text_that_dbt_renders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    made = descriptions()
    answers = dict(zip(made, _answers_of_dbt(tmp_path, made), strict=True))
    rendered = [text for text, answer in answers.items() if answer is not None]
    assert len(rendered) > DESCRIPTIONS / 3
    Path("models/m.yml").write_text(_described(rendered), encoding="utf-8")
    assert main(["parse"]) == 0, capsys.readouterr()
    columns = json.loads(Path("target/manifest.json").read_text())["nodes"]["model.p.m"]["columns"]
    texts = {text: columns[f"c{number}"]["description"] for number, text in enumerate(rendered)}
    assert {text: shown for text, shown in texts.items() if shown != answers[text]} == {}
    accepted = []
    for text in answers.keys() - set(rendered):
        Path("models/m.yml").write_text(_described([text]), encoding="utf-8")
        if main(["parse"]) == 0:
            accepted.append(text)
    assert not accepted
