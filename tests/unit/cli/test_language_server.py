"""`sml lsp` as a process that an editor starts, by pygls' client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/schema.yml": "sources:\n  - name: web\n    tables:\n      - name: clicks\n"
    "        columns: [{name: page, data_type: string}]\n"
    "models:\n  - name: per_code\n    description: Sums.\n    config:\n      tags: [a]\n",
    "models/per_code.sql": "select code, sum(rate) as total\nfrom {{ ref('rates') }} group by code\n",
    "models/pages.sql": "select upper(page) as page, {{ cents('1') }} as one from {{ source('web', 'clicks') }}\n",
    "macros/cents.sql": "\n{% macro cents(value) %}{{ value }} * 100{% endmacro %}\n",
    "seeds/rates.csv": "code,rate\na,1\n",
}


class Editor:
    """A client of one server, with what it has been told of each file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.server = types.ServerCapabilities()
        self.marks: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.marks.put_nowait(params))

    async def __aenter__(self) -> Editor:
        await self.client.start_io(sys.executable, "-m", "sqlmesh_like", "lsp", cwd=self.root)
        capabilities = types.ClientCapabilities()
        params = types.InitializeParams(capabilities, root_uri=self.root.as_uri())
        self.server = (await self.client.initialize_async(params)).capabilities
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def open(self, path: str, text: str | None = None) -> None:
        said = (self.root / path).read_text() if text is None else text
        document = types.TextDocumentItem(self.uri(path), "sql", 1, said)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def save(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)
        document = types.TextDocumentIdentifier(self.uri(path))
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(document))

    def uri(self, path: str) -> str:
        return (self.root / path).as_uri()

    async def words(self, path: str, row: int, column: int) -> dict[str, types.CompletionItem]:
        place = types.CompletionParams(types.TextDocumentIdentifier(self.uri(path)), types.Position(row, column))
        items = await self.client.text_document_completion_async(place)
        assert isinstance(items, list)
        return {item.label: item for item in items}

    async def definition(self, path: str, row: int, column: int) -> types.Location | None:
        place = types.DefinitionParams(types.TextDocumentIdentifier(self.uri(path)), types.Position(row, column))
        answer = await self.client.text_document_definition_async(place)
        assert answer is None or isinstance(answer, types.Location)
        return answer

    async def hover(self, path: str, row: int, column: int) -> str | None:
        place = types.HoverParams(types.TextDocumentIdentifier(self.uri(path)), types.Position(row, column))
        answer = await self.client.text_document_hover_async(place)
        if answer is None:
            return None
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value


def with_editor(root: Path, story: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Editor(root) as editor:
            await story(editor)

    asyncio.run(asyncio.wait_for(run(), 500))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_it_completes_leads_and_shows(project: Path) -> None:
    async def story(editor: Editor) -> None:
        typed = "{{ config(ma) }}\nselect  from {{ ref('') }} join {{ source('web', '') }} on {{ ce }}\n"
        editor.open("models/per_code.sql", typed)
        path, row = "models/per_code.sql", typed.split("\n")[1]
        assert {"materialized", "unique_key"} <= (await editor.words(path, 0, 12)).keys()
        refs = await editor.words(path, 1, row.index("ref('") + 5)
        assert refs.keys() == {"rates", "per_code", "pages"}
        assert refs["per_code"].detail == "model, aggregate_merge"
        assert refs["per_code"].kind == types.CompletionItemKind.Class
        assert (await editor.words(path, 1, row.index("source('") + 8)).keys() == {"web"}
        assert (await editor.words(path, 1, row.index("web', '") + 7)).keys() == {"clicks"}
        macros = await editor.words(path, 1, row.index("ce }}") + 2)
        assert {"cents", "ref", "env_var"} <= macros.keys()
        assert {macros[word].kind for word in ("cents", "ref")} == {types.CompletionItemKind.Function}
        columns = await editor.words(path, 1, 7)
        assert columns.keys() == {"code", "rate"} and columns["code"].detail == "string"
        editor.open("models/schema.yml")
        lines = FILES["models/schema.yml"].split("\n")
        assert "materialized" in await editor.words("models/schema.yml", lines.index("      tags: [a]"), 6)
        assert await editor.words("models/schema.yml", 1, 4) == {}

        editor.open("models/pages.sql")
        text = FILES["models/pages.sql"]
        seed = await editor.definition(path, 1, row.index("ref('"))
        assert seed is None  # nothing has an empty name
        source = await editor.definition("models/pages.sql", 0, text.index("source(") + 3)
        assert source is not None and source.uri == editor.uri("models/schema.yml") and source.range.start.line == 3
        macro = await editor.definition("models/pages.sql", 0, text.index("cents"))
        assert macro is not None and macro.uri == editor.uri("macros/cents.sql")
        assert (macro.range.start.line, macro.range.start.character) == (1, 9)
        assert await editor.definition("models/pages.sql", 0, 1) is None
        shown = await editor.hover("models/pages.sql", 0, text.index("source(") + 3)
        assert shown is not None and "| `page` | string |" in shown
        editor.open("models/top.sql", "select * from {{ ref('per_code') }}")
        shown = await editor.hover("models/top.sql", 0, 20)
        assert shown is not None
        assert "strategy `aggregate_merge`" in shown and "Sums." in shown
        assert "| `code` | string |" in shown and "| `total` | bigint |" in shown

    with_editor(project, story)


def test_it_marks_what_compile_finds_and_takes_marks_away(project: Path) -> None:
    async def story(editor: Editor) -> None:
        path = "models/per_code.sql"
        sync = editor.server.text_document_sync
        # Parts of a text would have to be put in their place: seconds for each edit of a line of ten megabytes.
        assert isinstance(sync, types.TextDocumentSyncOptions) and sync.change == types.TextDocumentSyncKind.Full
        editor.open(path)
        assert await editor.marks.get() == types.PublishDiagnosticsParams(editor.uri(path), ())
        editor.save(path, "select code,\n  sum(rte) as total from {{ ref('rates') }} group by code\n")
        published = await editor.marks.get()
        assert published.uri == editor.uri(path)
        (mark,) = published.diagnostics
        assert (mark.range.start.line, mark.range.start.character) == (1, 6)
        assert "rte" in mark.message and "did you mean 'rate'?" in mark.message
        assert mark.severity == types.DiagnosticSeverity.Error
        editor.save(path, FILES[path])
        published = await editor.marks.get()
        assert (published.uri, list(published.diagnostics)) == (editor.uri(path), [])
        schema = FILES["models/schema.yml"]
        editor.save("models/schema.yml", f"{schema}    data_tests: 5\n")
        published = await editor.marks.get()
        assert published.uri == editor.uri("models/schema.yml")
        assert published.diagnostics[0].range.start.line == schema.count("\n")

    with_editor(project, story)
