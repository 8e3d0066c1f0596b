"""A project's YAML, Jinja and SQL, and selections, whatever is in them: compiled, or an error in words and its code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.cli.app import main
from tests.levels import IS_DEEP, count
from tests.properties import texts
from tests.properties.cases import examples

EXAMPLES = int(os.environ.get("SML_TEXTS", str(count(2, 12, 6000))))
"""Of each kind of text: with all of them, an hour of one core."""
LONGEST = 60.0
"""Seconds after which a call counts as hanging: one takes a tenth of a second."""
KEPT = Path(__file__).parent / "failed_once" / "texts.json"
"""Texts that failed once, by kind."""
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: spark, warehouse: warehouse, schema: dws}}}\n",
    "models/models.yml": texts.SETTINGS,
    "models/detail.sql": "select id, city, amount from {{ source('shop', 'orders') }}\n",
    "models/totals.sql": "select city, sum(amount) as total from {{ ref('detail') }} group by city\n",
}
_UNEXPECTED = re.compile(r"error: unexpected [A-Z]\w+: ")
"""What a call prints of an exception that nobody foresaw."""
KINDS = {
    "YAML": ("models/models.yml", st.deferred(lambda: texts.broken(texts.SETTINGS))),
    "Jinja": ("models/totals.sql", st.deferred(lambda: texts.broken(texts.TEMPLATE))),
    "SQL": ("models/totals.sql", st.deferred(lambda: texts.broken(texts.QUERY))),
    "selection": (None, st.deferred(lambda: texts.broken(texts.SELECTION))),
}
Kept = dict[str, list[str]]


def kept() -> Kept:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}  # type: ignore[no-any-return]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Compiles a project that has a text of a kind, or lists what a selection chooses, and checks what comes of it."""
    monkeypatch.chdir(tmp_path)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def check(kind: str, text: str) -> None:
        path = KINDS[kind][0]
        words = ["compile", "-q", "--no-check"] if path else ["ls", f"--select={text}"]
        if path:
            (tmp_path / path).write_bytes(text.encode("utf-8", "surrogatepass"))
        began, output = time.monotonic(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = main(words)
        said = output.getvalue()
        assert code in (0, 1, 2) and "Traceback" not in said and not _UNEXPECTED.search(said), said
        assert code == 0 or said.strip(), "an error without a word"
        assert time.monotonic() - began < LONGEST

    return check


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(7200 if IS_DEEP else 600)
def test_any_text_is_compiled_or_refused_in_words(kind: str, call: Callable[[str, str], None]) -> None:
    failed: list[str] = []

    @examples(EXAMPLES)
    @given(text=KINDS[kind][1])
    def every(text: str) -> None:
        try:
            call(kind, text)
        except BaseException:
            failed.append(text)
            raise

    try:
        every()
    finally:
        if failed:  # the last one is the smallest
            texts_of = kept()
            texts_of[kind] = sorted({*texts_of.get(kind, []), failed[-1]})
            KEPT.write_text(json.dumps(texts_of, indent=1), encoding="utf-8")


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, each in kept().items() for text in each])
def test_a_text_that_failed_once_is_refused_in_words(kind: str, text: str, call: Callable[[str, str], None]) -> None:
    call(kind, text)
