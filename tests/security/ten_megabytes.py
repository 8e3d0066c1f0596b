"""Projects of ten megabytes of one kind: what a stranger could send to keep a command busy. Owns their texts.

Each kind is the file that it is in, what comes before and after, and a piece that is repeated: `{i}` is its number.
"""

from __future__ import annotations

SIZE = 10_000_000
PROFILES = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n"
FILES = {"dbt_project.yml": "name: shop\nprofile: shop\n", "profiles.yml": PROFILES, "models/a.sql": "select 1 as a"}
MODEL, YAML, MARKDOWN, SEED = "models/m.sql", "models/s.yml", "models/d.md", "seeds/s.csv"
COLUMNS, DESCRIPTION = "models:\n- name: a\n  columns:\n", 'models:\n- name: a\n  description: "'
BLOCK, END = "{% docs __overview__ %}\n", "{% enddocs %}\n"
MARKS = {
    "brackets": "[", "stars": "*a_ ", "quotes": "> ", "ticks": "`", "bangs": "![a](", "autolinks": "<a@b ",
    "tables": "|a|\\n|-|\\n", "entities": "&amp", "lists": "- a\\n", "headings": "# a\\n", "links": "[a](b) ",
    "references": "[a]: b\\n", "nested lists": "- ", "tags": "<a ", "emphasis": "**a*", "addresses": "http://a ",
}  # fmt: skip
"""Pieces of Markdown, as a description and as a doc block has them."""

KINDS: dict[str, tuple[str, str, str, str]] = {
    "columns": (MODEL, "select ", "{i} as c{i}, ", "1 as z"),
    "a text": (MODEL, "select '", "x", "' as a"),
    "a comment": (MODEL, "select 1 as a /*", "x", "*/"),
    "comments": (MODEL, "select 1 as a ", "-- {i}\n", ""),
    "nested comments": (MODEL, "select 1 as a ", "/* ", ""),
    "blanks": (MODEL, "select 1 as a", " ", ""),
    "lines": (MODEL, "select 1 as a", "\n", ""),
    "IN": (MODEL, "select 1 as a where 1 in (", "{i},", "1)"),
    "VALUES": (MODEL, "select * from values ", "({i}), ", "(1) as t(a)"),
    "unions": (MODEL, "", "select {i} as a union all ", "select 1 as a"),
    "CTEs": (MODEL, "with ", "c{i} as (select 1 as a), ", "z as (select 1 as a) select * from z"),
    "CASE": (MODEL, "select case ", "when {i}=1 then 1 ", " end as a"),
    "a sum": (MODEL, "select ", "1+", "1 as a"),
    "AND": (MODEL, "select 1 as a where 1 = 1", " and {i}=1", ""),
    "parentheses": (MODEL, "select ", "(", "1"),
    "functions": (MODEL, "select ", "concat('a', ", "1"),
    "quotes": (MODEL, "select ", "'", ""),
    "backticks": (MODEL, "select `", "x", "` as a"),
    "a word": (MODEL, "select ", "x", ""),
    "digits": (MODEL, "select ", "1", " as a"),
    "semicolons": (MODEL, "select 1 as a", ";", ""),
    "statements": (MODEL, "select 1 as a", "; select {i}", ""),
    "joins of CTEs": (MODEL, "with t as (select 1 as a) select 1 as a from t", " join t t{i} on t.a=t{i}.a", ""),
    "joins of refs": (MODEL, "select 1 as a from {{ ref('a') }} t", " join {{ ref('a') }} t{i} on t.a=t{i}.a", ""),
    "control characters": (MODEL, "select '", "\x1b", "' as a"),
    "broken UTF-8": (MODEL, "select '", "\udcff", "' as a"),
    "expressions": (MODEL, "select 1 as a ", "{{ '' }}", ""),
    "one expression": (MODEL, "select {{ ", "1+", "1 }} as a"),
    "braces": (MODEL, "select ", "{{", ""),
    "sets": (MODEL, "", "{% set x{i} = 1 %}", "select 1 as a"),
    "comments of Jinja": (MODEL, "", "{# a #}", "select 1 as a"),
    "refs": (MODEL, "select 1 as a -- ", "{{ ref('a') }} ", ""),
    "loops": (MODEL, "select 1 as a -- {% for i in range(1000) %}", "x", "{% endfor %}"),
    "nested loops": (MODEL, "select 1 as a -- ", "{% for i in [1] %}", ""),
    "configs": (MODEL, "{{ config(", "a{i}=1, ", "tags=[]) }} select 1 as a"),
    "macros": ("macros/m.sql", "", "{% macro m{i}() %}x{% endmacro %}\n", ""),
    "descriptions": (YAML, "models:\n- name: a\n  description: |\n", "    **{i}** _text_ [a](b) `c` <b>\n", ""),
    "documented columns": (YAML, COLUMNS, "  - name: c{i}\n    description: text\n", ""),
    "tested columns": (YAML, COLUMNS, "  - name: c{i}\n    data_tests: [unique, not_null]\n", ""),
    "models": (YAML, "models:\n", "- name: m{i}\n  description: text\n", ""),
    "sources": (YAML, "sources:\n- name: s\n  tables:\n", "  - name: t{i}\n    description: text\n", ""),
    "exposures": (
        YAML, "exposures:\n", "- name: e{i}\n  type: dashboard\n  owner: {name: x}\n  depends_on: [ref('a')]\n", "",
    ),
    "unit tests": (
        YAML, "unit_tests:\n", "- name: u{i}\n  model: a\n  given: []\n  expect: {rows: [{a: 1}]}\n", "",
    ),
    "rows of a test": (
        YAML, "unit_tests:\n- name: u\n  model: a\n  given: []\n  expect:\n    rows:\n", "    - {a: {i}}\n", "",
    ),
    "aliases": (YAML, "a: &a [1]\nmodels:\n- name: a\n  meta:\n    x: [", "*a, ", "1]\n"),
    "anchors": (YAML, "models:\n- name: a\n  meta:\n    x: [", "&a{i} 1, ", "1]\n"),
    "merge keys": (YAML, "a: &a {b: 1}\nmodels:\n- name: a\n  meta:\n", "    x{i}: {<<: *a}\n", ""),
    "brackets of YAML": (YAML, "models: ", "[", ""),
    "documents": (YAML, "models: []\n", "---\n", ""),
    "meta": (YAML, "models:\n- name: a\n  meta:\n", "    k{i}: [{i}]\n", ""),
    "tags": (YAML, "models:\n- name: a\n  config:\n    tags:\n", "    - t{i}\n", ""),
    "templates of YAML": (YAML, DESCRIPTION, "{{ 1 }}", "\"\n"),
    "a description": (YAML, DESCRIPTION, "x", "\"\n"),
    "one key": (YAML, "", "x", ": 1\n"),
    "doc blocks": (MARKDOWN, "", "{% docs d{i} %}text{% enddocs %}\n", ""),
    "Markdown": (MARKDOWN, BLOCK, "# {i}\n\n* **a** [b](c)\n", END),
    "a long seed": (SEED, "a\n", "{i}\n", ""),
    "a wide seed": (SEED, "a", ",c{i}", "\n1\n"),
    "dates of a seed": (SEED, "a,b\n", "2018-01-01 7:00:00,x{i}\n", ""),
    "a cell": (SEED, "a\n", "x", "\n"),
    "quotes of a seed": (SEED, "a\n", "\"\"", "\n"),
    "vars": ("dbt_project.yml", "name: shop\nprofile: shop\nvars:\n", "  v{i}: 1\n", ""),
    "folders": ("dbt_project.yml", "name: shop\nprofile: shop\nmodel-paths:\n- models\n", "- m{i}\n", ""),
    "selectors": ("selectors.yml", "selectors:\n", "- name: s{i}\n  definition: 'tag:x'\n", ""),
    "outputs": (
        "profiles.yml", "shop:\n  target: t\n  outputs:\n    t: {type: duckdb, schema: dws}\n",
        "    t{i}: {type: duckdb, schema: dws}\n", "",
    ),
    "packages": ("packages.yml", "packages:\n", "- local: p{i}\n", ""),
    "TOML": ("pyproject.toml", "[tool.sqlmesh_like]\nname = 'shop'\n", "v{i} = 1\n", ""),
    **{f"description of {name}": (YAML, DESCRIPTION, mark, "\"\n") for name, mark in MARKS.items()},
    **{f"block of {name}": (MARKDOWN, BLOCK, mark.replace("\\n", "\n"), END) for name, mark in MARKS.items()},
}  # fmt: skip


def files_of(kind: str, size: int = SIZE) -> dict[str, str]:
    """Return the files of a project of this kind, of `size` bytes or some more."""
    path, head, piece, tail = KINDS[kind]
    if "{i}" not in piece:
        body = piece * (size // len(piece.encode(errors="surrogateescape")))
    else:
        pieces, length, number = [], 0, 0
        while length < size:
            pieces.append(piece.replace("{i}", str(number)))
            length, number = length + len(pieces[-1]), number + 1
        body = "".join(pieces)
    files = {**FILES, path: head + body + tail}
    if path == "pyproject.toml":
        del files["dbt_project.yml"]  # which would be read instead of it
    return files
