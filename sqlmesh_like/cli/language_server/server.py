"""The protocol, by pygls. Owns positions and URIs of files; a project is read when a file is opened or saved.

Its diagnostics are those of `sml compile`, for the files as they are on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from sqlmesh_like import __version__
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import check_project
from sqlmesh_like.cli.language_server.features import declaration_at, hover_text, offers
from sqlmesh_like.cli.language_server.project_index import ProjectIndex, build_index
from sqlmesh_like.cli.printing.diagnostics import Diagnostic, from_error, from_type_warning
from sqlmesh_like.errors import SeveralErrors, SmlError
from sqlmesh_like.limits.child import run_limited, runs_limited
from sqlmesh_like.limits.settings import ResourceLimitError
from sqlmesh_like.secrets import scrub_text

_KINDS = {
    "model": types.CompletionItemKind.Class,
    "macro": types.CompletionItemKind.Function,
    "function": types.CompletionItemKind.Function,
}


@dataclass
class _Reading:
    """What a project holds as it is now; root and index are None where an error came before them."""

    root: Path | None
    index: ProjectIndex | None
    findings: list[Diagnostic]


def _read_project(load: Callable[[], Loaded]) -> _Reading:
    reading = _Reading(None, None, [])
    try:
        loaded = load()
        reading.root = loaded.project.root
        reading.index = build_index(loaded)
        models = [model.unique_id for model in loaded.rendered.models]
        reading.findings += [from_type_warning(warning) for warning in check_project(loaded, models)]
    except SmlError as error:
        errors = error.errors if isinstance(error, SeveralErrors) else (error,)
        reading.findings += [from_error(one) for one in errors]
    return reading


class ProjectServer(LanguageServer):
    """The language server of one project. `load` reads it, as a command would."""

    def __init__(self, load: Callable[[], Loaded]) -> None:
        # Whole texts: to apply one edit of a line of millions of characters takes pygls seconds.
        super().__init__("sml", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self._load = load
        self._marked: set[Path] = set()
        self.root = Path.cwd()
        self.index = ProjectIndex()

    def refresh(self, uri: str) -> None:
        """Read the project again and publish its diagnostics; an index that cannot be built stays as it was.

        An empty list is published for the file itself if it has none.
        """
        self._marked.add(Path(self.workspace.get_text_document(uri).path))
        try:
            # Threads that read and write the protocol's streams hold nothing that the child needs.
            limited = runs_limited(beside_threads=True)
            reading = run_limited(lambda: _read_project(self._load)) if limited else _read_project(self._load)
        except ResourceLimitError as error:
            reading = _Reading(None, None, [from_error(error)])
        self.root = reading.root or self.root
        self.index = reading.index or self.index
        self._publish(reading.findings)

    def _publish(self, findings: Iterable[Diagnostic]) -> None:
        by_file: dict[Path, list[types.Diagnostic]] = defaultdict(list)
        for finding in findings:
            if finding.path:
                by_file[self.root / finding.path].append(_diagnostic(finding))
            else:
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, scrub_text(str(finding))))
        for path in sorted(self._marked | by_file.keys()):  # an empty list clears marks
            params = types.PublishDiagnosticsParams(uri=path.as_uri(), diagnostics=by_file.get(path, []))
            self.text_document_publish_diagnostics(params)
        self._marked = set(by_file)

    def place(self, uri: str) -> tuple[str, str]:
        """Return a file's path in the project, and its text as it is in the editor."""
        document = self.workspace.get_text_document(uri)
        path = Path(document.path)
        inside = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()
        return inside, document.source


def make_server(load: Callable[[], Loaded]) -> ProjectServer:
    """Return the server with all its handlers."""
    server = ProjectServer(load)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(server: ProjectServer, params: types.DidOpenTextDocumentParams) -> None:
        server.refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(server: ProjectServer, params: types.DidSaveTextDocumentParams) -> None:
        server.refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["'", '"', ".", "("]))
    def complete(server: ProjectServer, params: types.CompletionParams) -> list[types.CompletionItem]:
        path, text = server.place(params.text_document.uri)
        fitting = offers(server.index, path, text, params.position.line, params.position.character)
        return [
            types.CompletionItem(
                one.word, kind=_KINDS.get(one.kind), detail=one.detail, documentation=scrub_text(one.description)
            )
            for one in fitting
        ]

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def define(server: ProjectServer, params: types.DefinitionParams) -> types.Location | None:
        _, text = server.place(params.text_document.uri)
        one = declaration_at(server.index, text, params.position.line, params.position.character)
        if one is None:
            return None
        return types.Location((server.root / one.place.path).as_uri(), _range(one.place.line, one.place.column))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(server: ProjectServer, params: types.HoverParams) -> types.Hover | None:
        _, text = server.place(params.text_document.uri)
        one = declaration_at(server.index, text, params.position.line, params.position.character)
        if one is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, scrub_text(hover_text(one))))

    return server


def serve_editor(load: Callable[[], Loaded]) -> None:
    """Serve an editor over standard input and output, until it ends the session."""
    # By number: `sys.stdout` is the scrubber, and the protocol needs the process's own binary streams.
    with open(0, "rb", closefd=False) as stdin, open(1, "wb", closefd=False) as stdout:
        make_server(load).start_io(stdin, stdout)


def _diagnostic(finding: Diagnostic) -> types.Diagnostic:
    level = types.DiagnosticSeverity.Error if finding.level == "error" else types.DiagnosticSeverity.Warning
    text = f"{finding.message}\n{finding.hint}" if finding.hint else finding.message
    place = _range(finding.line, finding.column)
    return types.Diagnostic(place, scrub_text(text), severity=level, code=finding.rule, source="sml")


def _range(line: int | None, column: int | None) -> types.Range:
    """Return an empty range at a position that counts from 1."""
    place = types.Position(max((line or 1) - 1, 0), max((column or 1) - 1, 0))
    return types.Range(place, place)
