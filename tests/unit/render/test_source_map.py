"""Places in compiled SQL, traced back to the model's own file."""

from __future__ import annotations

import pytest

from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.rendered import SourceMap


def render(raw: str, **scope: object) -> SourceMap:
    return Templates().render("m.sql", raw, scope)


def place(raw: str, word: str, nth: int = 0, **scope: object) -> tuple[int, int]:
    mapped = render(raw, **scope)
    offset = -1
    for _ in range(nth + 1):
        offset = mapped.compiled.index(word, offset + 1)
    return mapped.locate(offset)


@pytest.mark.parametrize(
    ("raw", "word", "nth", "expected"),
    [
        pytest.param("select a\nfrom t", "from", 0, (2, 1), id="no Jinja"),
        pytest.param("{{ cfg }}\nselect {{ x }} as y, z", "z", 0, (2, 22), id="after tags on the same line"),
        pytest.param("select {{ x }}", "VALUE", 0, (1, 8), id="a tag's text is at the tag"),
        pytest.param("select {{ x }}", "LUE", 0, (1, 8), id="inside a tag's text"),
        pytest.param("{% for c in 'ab' %}\n  f({{ c }}),{% endfor %} end_", "f", 1, (2, 3), id="second turn of a loop"),
        pytest.param("{% for c in 'ab' %}\n  f({{ c }}),{% endfor %} end_", "b", 0, (2, 5), id="tag in a loop"),
        pytest.param("{% for c in 'ab' %}\n  f({{ c }}),{% endfor %} end_", "end_", 0, (2, 27), id="after a loop"),
        pytest.param("select 1,\n\n  {%- set q = 1 -%}\n\n   a", "a", 0, (5, 4), id="whitespace control"),
        pytest.param("{{\n  x\n}}\n  b", "b", 0, (4, 3), id="tag of several lines"),
        pytest.param("select 'äö𝄞', {{ x }}, ü", "ü", 0, (1, 24), id="Unicode"),
        pytest.param("{# a\nb #}select c", "c", 1, (2, 12), id="comment of several lines"),
        pytest.param("{% raw %}{{ a }}{% endraw %} d", "d", 0, (1, 30), id="raw block"),
        pytest.param("{% if no %}a{% else %}\n b{% endif %}", "b", 0, (2, 2), id="other branch"),
        pytest.param("a {{ x }}{{ y }}", "OTHER", 0, (1, 10), id="tags side by side"),
    ],
)
def test_a_word_is_found_where_it_was_written(raw: str, word: str, nth: int, expected: tuple[int, int]) -> None:
    assert place(raw, word, nth, x="VALUE", y="OTHER", cfg="", no=False) == expected


def test_marks_never_reach_what_a_template_looks_at() -> None:
    raw = "{% set x %}ab{% endset %}{{ x | length }} {% filter upper %}cd{% endfilter %}"
    assert render(raw).compiled == "2 CD"


def test_marks_never_reach_the_compiled_text() -> None:
    raw = "{% macro f(a) %}<{{ a }}>{% endmacro %}{% for i in range(3) %}{{ f(i) }} x {% endfor %}"
    assert render(raw, range=range).compiled == "<0> x <1> x <2> x "


def test_whitespace_control_works_as_without_marks() -> None:
    raw = "a  {%- if true %}  b  {%- endif -%}  \n c {{- 1 -}} d"
    assert render(raw).compiled == "a  bc1d"
