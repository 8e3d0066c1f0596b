"""Templates that are rendered without Jinja give what Jinja gives, source map included, or are left to it."""

from __future__ import annotations

import pytest

from sqlmesh_like.render.jinja import templates as rendering
from sqlmesh_like.render.jinja.fast_render import render_plain
from sqlmesh_like.render.jinja.templates import Templates


def scope() -> dict[str, object]:
    def message(*args: object, **named: object) -> str:
        return f"<{args!r} {sorted(named.items())!r}>"

    return {
        "ref": message,
        "source": message,
        "config": lambda **named: "",
        "var": message,
        "test_x": message,
        "tools": {"test_y": message},
    }


PLAIN = [
    "select 1",
    "",
    "\n",
    "select 1\n\n",
    "{{ ref('a') }}",
    "a {{ ref('a') }}{{ ref(\"b\", 'c') }} z\n",
    "{{ config(materialized='table', tags=['a', \"b\"], meta={'k': [1, -1 , -2.5]}) }} select 1",
    "{{ tools.test_y(model=ref('m'), least=-1, values=['x', -0.5]) }}",
    "{{ config(\n  enabled=true,\n  alias=none,\n  x=False\n) }}\nselect {{ var('n', 1) }} -- 100%\n",
    "{{test_x(model=ref('m'), column_name='id', values=['x', 'y z'])}}",
    "select '}}' from {{ source('a', 'b') }}",
    "ü {{ ref('a') }} 漢",
]
FOR_JINJA = [
    "{% if true %}1{% endif %}",
    "{{ ref('a') | lower }}",
    "{{ ref('a') ~ 'b' }}",
    "a {{- ref('a') }}",
    "{{ ref('a') -}} b",
    "{# said #} select 1",
    r"{{ ref('a\'b') }}",
    "{{ var(u'a') }}",
    "{{ unknown('a') }}",
    "{{ ref(*['a']) }}",
    "{{ config(**{'a': 1}) }}",
    "{{ ref('ü') }}",
    "select 1\r\n{{ ref('a') }}",
    "{{ this }}",
    "{{ tools.other('a') }}",
    "{{ tools.deep.test_y('a') }}",
    "{{ ref('a').test_y() }}",
    "{{ var(-'a') }}",
    "{{ var(-true) }}",
]


@pytest.mark.parametrize("raw", PLAIN)
def test_it_is_what_jinja_gives(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = render_plain(raw, scope())
    assert fast is not None
    monkeypatch.setattr(rendering, "render_plain", lambda raw, scope: None)
    assert fast == Templates().render("m.sql", raw, scope())


@pytest.mark.parametrize("raw", FOR_JINJA)
def test_what_python_may_read_otherwise_is_left_to_jinja(raw: str) -> None:
    assert render_plain(raw, scope()) is None


def test_a_package_that_is_none_is_left_to_jinja() -> None:
    class Attributes:
        test_y = staticmethod(str)

    for package in (Attributes(), {"other": str}, None):
        with pytest.raises((AssertionError, LookupError)):  # after which `Templates` asks Jinja
            render_plain("{{ tools.test_y('a') }}", {"tools": package})


def test_lists_are_new_ones_each_time() -> None:
    seen: list[list[object]] = []
    names = {"config": lambda tags: seen.append(tags) or tags.append("more")}
    for _ in range(2):
        render_plain("{{ config(tags=['a']) }}", names)
    assert seen == [["a", "more"], ["a", "more"]] and seen[0] is not seen[1]
