"""Small files that would take all time or memory: ended with an error, exit code 2, in seconds and in a gigabyte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import JinjaError, ProjectError
from sqlmesh_like.project.reading import bounds
from sqlmesh_like.project.reading.bounds import TemplateLimit, enforce_limits, pause_limits
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_toml, parse_yaml
from tests.levels import count, parametrize
from tests.projects import enter_project

PROFILES = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n"
SECONDS, BYTES = 120, 1_000_000_000
"""Limits are of 2 CPU seconds and 400 MB; a busy machine may take longer, and without limits none would ever end."""
Shown = pytest.CaptureFixture[str]


def laughs(levels: int, width: int = 10) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {k: [1, 2, 3]}"]
    lines += [f"a{n}: &a{n} {{l{n}: *a{n - 1}, r{n}: *a{n - 1}, <<: *a{n - 1}}}" for n in range(1, levels)]
    return "\n".join(lines)


YAML = {
    "billion laughs": laughs(12),
    "laughs in a mapping": merges(40),
    "brackets": "a: " + "[" * 100_000,
    "closed brackets": "a: " + "[" * 100_000 + "]" * 100_000,
    "braces": "a: " + "{a: " * 5_000 + "1" + "}" * 5_000,
    "lists in a line": "- " * 100_000,
    "lists with tabs": "-\t" * 100_000,
    "questions": "? " * 50_000,
    "indented": "\n".join(" " * n + "a:" for n in range(3_000)),
    "an alias of itself": "a: &a [*a]",
    "a number": f"a: {'9' * 10_000}",
    "anchors": " ".join(f"&a{n}" for n in range(10_000)),
    "a moment": "a: 9999-99-99",
}


PATHS = ("dbt_project.yml", "profiles.yml", "models/m.yml", "packages.yml", "selectors.yml")
IN_TURN = [(PATHS[turn % len(PATHS)], name) for turn, name in enumerate(YAML)]
"""Each text in one of the files, and each file with some of the texts: one reader reads them all."""


@parametrize(
    ("path", "text"),
    suite=[pytest.param(path, YAML[name], id=f"{path}-{name}") for path, name in IN_TURN],
    release=[
        pytest.param(path, YAML[name], id=f"{path}-{name}")
        for path in PATHS
        for name in YAML
        if (path, name) not in IN_TURN
    ],
)
def test_yaml_is_refused(path: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    files = {"dbt_project.yml": "name: shop\n", "profiles.yml": PROFILES, "models/m.sql": "select 1 as a"}
    enter_project(tmp_path, monkeypatch, {**files, path: text})
    started = time.monotonic()
    code = main(["ls" if path == "selectors.yml" else "compile"])
    said = capsys.readouterr().err
    assert code == 2 and path in said and "unexpected" not in said and len(said) < 2_000, said
    assert time.monotonic() - started < SECONDS


TOML = {
    "lists": "a = " + "[" * 20_000,
    "closed lists": "a = " + "[" * 20_000 + "]" * 20_000,
    "tables": "a = " + "{a = " * 5_000 + "1" + "}" * 5_000,
    "a number": f"a = {'9' * 10_000}",
}


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
def test_toml_is_refused(text: str) -> None:
    with pytest.raises(ProjectError, match="invalid TOML"):
        parse_toml(text, "x.toml")


TEMPLATES = {
    "braces": "{{" * 50_000,
    "closed braces": "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
    "lists": "{{ " + "[" * 50_000 + "]" * 50_000 + " }}",
    "mappings": "{{ " + "{1: " * 10_000 + "1" + "}" * 10_000 + " }}",
    "a sum of many": "{{ 1" + " + 1" * 20_000 + " }}",
    "a text of many": "{{ 'a'" + " ~ 'a'" * 50_000 + " }}{{ 'a'" + " or 'a'" * 20_000 + " }}",
    "not not not": "{{ " + "not " * 20_000 + "true }}",
    "attributes": "{{ a" + ".a" * 50_000 + " }}",
    "filters": "{{ 'a'" + " | upper" * 20_000 + " }}",
    "conditions": "{% if true %}" * 5_000 + "{% endif %}" * 5_000,
    "loops in the text": "{% for i in [1] %}" * 50 + "{% endfor %}" * 50,
    "a loop in a loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a loop that keeps": "{% set l = [] %}{% for i in range(99999) %}{% for j in range(99999) %}"
    "{% do l.append('x' * 1000 ~ j) %}{% endfor %}{% endfor %}",
    "a list that doubles": "{% set l = [1] %}{% for i in range(60) %}{% do l.extend(l) %}{% endfor %}",
    "a text that doubles": "{% set n = namespace(t='abcdefgh') %}"
    "{% for i in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}",
    "a sum that doubles": "{% set n = namespace(t='abcdefgh') %}"
    "{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}",
    "a list of sums": "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}",
    "a text many times": "{% set t = 'a' * 9999999 %}{% for i in range(99999) %}{{ t }}{% endfor %}",
    "a macro that calls itself": "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "a macro that calls itself twice": "{% macro f(n) %}{% if n %}"
    "{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "range": "{% for i in range(10 ** 12) %}{% endfor %}",
    "product": "{{ 'a' * 10 ** 10 }}",
    "power": "{{ 9 ** (9 ** 9) }}",
    "center": "{{ 'a' | center(10 ** 10) }}",
    "center of a constant": "{{ 'a' | center(10000000000) }}",
    "indent": "{{ 'a\\nb' | indent(10000000000) }}",
    "batch": "{{ [1] | batch(1000000000, 0) | list }}",
    "ljust": "{{ 'a'.ljust(10 ** 10) }}",
    "zfill": "{{ 'a'.zfill(10 ** 10) }}",
    "expandtabs": "{{ '\t'.expandtabs(10 ** 10) }}",
    "bytes": "{{ (1).to_bytes(10 ** 10, 'big') }}",
    "format": "{{ '{:>10000000000}'.format(1) }}",
    "format with a width": "{{ '{:>{w}}'.format(1, w=10 ** 10) }}",
    "percent": "{{ '%10000000000d' % 1 }}",
    "percent with a width": "{{ '%*d' % (10000000000, 1) }}",
    "filter format": "{{ '%10000000000d' | format(1) }}",
    "replace": "{{ ('a' * 999999).replace('a', 'b' * 999999) }}",
    "replace nothing": "{{ ('a' * 999999) | replace('', 'b' * 999999) }}",
    "join": "{{ (range(99999) | list) | join('a' * 999999) }}",
    "join of a text": "{{ ('a' * 999999).join(range(99999) | map('string') | list) }}",
    "product of iterators": "{{ modules.itertools.product(range(99), repeat=9) | list }}",
    "permutations": "{% for i in modules.itertools.permutations(range(50)) %}{% endfor %}",
    "a regular expression": "{{ modules.re.match('(a|aa)*$', 'a' * 80 ~ 'b') }}",
    "another": "{{ modules.re.sub('(x+x+)+y', '', 'x' * 60) }}",
    "YAML": "{{ fromyaml('[' * 9999) }}",
    "laughs of YAML": "{{ fromyaml(" + json.dumps(laughs(12)) + ") }}",
    "JSON": "{{ fromjson('[' * 99999) }}",
    "a comprehension": "{{ range(99999) | map('string') | map('center', 99999) | join }}",
    "config": "{{ config(meta={'a': 'b' * 10 ** 9}) }}",
}


ENDLESS = {"a loop in a loop", "a macro that calls itself twice", "permutations", "a regular expression", "another"}
"""What nothing but the limit of time ends, whatever that is."""


DEAR = (
    "a text of many", "a loop that keeps", "attributes", "braces", "filters", "a sum of many", "product of iterators",
)  # fmt: skip
"""Of forms that others show, and that take seconds."""


def peak() -> int:
    """Bytes that this process had at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux tells it")
@parametrize("name", suite=[name for name in TEMPLATES if name not in DEAR], release=DEAR)
def test_a_template_is_ended(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    files = {
        "dbt_project.yml": "name: shop\n",
        "profiles.yml": PROFILES,
        "models/m.sql": f"select '{TEMPLATES[name]}' as a",
    }
    enter_project(tmp_path, monkeypatch, files)
    if name in ENDLESS:
        monkeypatch.setattr(bounds, "MAX_SECONDS", 0.4)
    started, before = time.monotonic(), bounds._memory()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    code = main(["compile", "--no-check"])
    said = capsys.readouterr().err
    assert time.monotonic() - started < SECONDS
    assert peak() < before + BYTES
    assert code == 2 and "models/m.sql:" in said and "unexpected" not in said and len(said) < 2_000, said


VALUES = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{{ '%10000000000d' % 1 }}",
    "{{ " + "(" * 9_999 + " }}",
    "{{ 'a'.ljust(10 ** 10) }}",
    "{{ ('[' * 9999) | as_native }}",
)


@pytest.mark.parametrize("text", VALUES)
def test_a_template_in_yaml_is_ended(text: str) -> None:
    started = time.monotonic()
    plain = parse_yaml("a: x", "x.yml").children["a"]
    with pytest.raises(JinjaError, match=r"x\.yml:1:4"):
        ValueRenderer({}, secrets=False).render(YamlNode(text, plain.location, plain.key_location))
    assert time.monotonic() - started < SECONDS


def test_waiting_for_a_lake_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_SECONDS", 0.2)

    def work(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    with enforce_limits(), pause_limits():
        work(0.5)
    with pytest.raises(TemplateLimit), enforce_limits():
        work(5)
    work(0.5)  # nothing comes after the end


LARGE = "1" * 5_000
NUMBERS = (
    LARGE, f"{LARGE}L", f"interval '{LARGE} 1' day to hour", f"1e{LARGE}bd", f"round(1.5, {LARGE})",
    f"sum(1) over (order by 1 rows between {LARGE} preceding and current row)", f"cast(1 as decimal({LARGE}, 2))",
)  # fmt: skip


def test_a_number_that_python_does_not_read_is_an_error_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    models = {f"models/m{place}.sql": f"select {number} as a" for place, number in enumerate(NUMBERS)}
    enter_project(tmp_path, monkeypatch, {"dbt_project.yml": "name: shop\n", "profiles.yml": PROFILES, **models})
    assert main(["compile"]) == 2
    said = capsys.readouterr().err
    assert "unexpected" not in said and all(f"{path}:1:" in said for path in models), said[:2_000]


SQL = {
    "brackets": "select " + "(" * 3_000 + "1" + ")" * 3_000 + " as a",
    "many brackets": "select " + "(" * 100_000,
    "subqueries": "select * from " + "(select * from " * 8_000 + "t" + ")" * 8_000,
    "functions": "select " + "abs(" * 5_000 + "1" + ")" * 5_000 + " as a",
    "arrays": "select " + "array(" * 5_000 + "1" + ")" * 5_000 + " as a",
    "cases": "select " + "case when " * 10_000 + "1 as a",
    "nots": "select " + "not " * 10_000 + "true as a",
    "signs": "select " + "- " * 10_000 + "1 as a",
    "casts": "select 1" + "::int" * 20_000 + " as a",
    "indexes": "select a" + "[0]" * 20_000 + " as a",
    "sums": "select 1" + "+1" * 20_000 + " as a",
    "unions": "select 1 as a" + " union all select 1" * 20_000,
    "types": "select cast(null as " + "array<" * 5_000 + "int" + ">" * 5_000 + ") as a",
    "lambdas": "select transform(a, " + "x -> transform(x, " * 2_000 + "1",
    "ctes": "with a as (" * 3_000 + "select 1" + ")" * 3_000,
    "comments": "select 1 as a " + "/*" * 50_000,
}
_LIMITED = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from sqlmesh_like.cli.app import main
code = main(sys.argv[1:])
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_sql_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: compiled code ends it where a limit is missing."""
    chosen = list(SQL)[:: count(3, 1, 1)]
    models = {f"models/{name.replace(' ', '_')}.sql": SQL[name] for name in chosen}
    enter_project(tmp_path, monkeypatch, {"dbt_project.yml": "name: shop\n", "profiles.yml": PROFILES, **models})
    started = time.monotonic()
    called = subprocess.run(
        [sys.executable, "-c", _LIMITED, "compile"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert called.returncode == 2, (called.returncode, called.stderr[-500:])
    assert [path for path in models if f"{path}:" not in called.stderr] == []
    assert (
        1024 * int(called.stdout.splitlines()[-1]) < BYTES and time.monotonic() - started < 2 * SECONDS
    )  # with its start


@pytest.mark.parametrize("name", ["manifest.json", "run_results.json"])
def test_a_state_that_is_nested_too_deep_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    files = {"dbt_project.yml": "name: shop\n", "profiles.yml": PROFILES, "models/m.sql": "select 1 as a"}
    state = {"state/manifest.json": '{"metadata": {}}', f"state/{name}": "[" * 100_000}
    enter_project(tmp_path, monkeypatch, {**files, **state})
    assert main(["ls", "--select", "state:modified", "--state", "state"]) == 2
    said = capsys.readouterr().err
    assert name in said and "unexpected" not in said
