"""What grows faster than its input: archives, downloads, selectors, hints, lines. Each has a bound."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sqlmesh_like.app.setup import packages
from sqlmesh_like.app.setup.archive import MAX_HEADER, ArchiveError, extract
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.language_server.template_position import call_target, completion_context
from sqlmesh_like.docs.markdown import Markdown
from sqlmesh_like.errors import nearest
from tests.projects import enter_project

FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/m.sql": "select 1 as a",
}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda text: text,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda text: lzma.compress(text, lzma.FORMAT_ALONE),
    "two streams": lambda text: gzip.compress(text[:700]) + gzip.compress(text[700:]),
}
Shown = pytest.CaptureFixture[str]


def tarball(name: str = "kit/dbt_project.yml", **attributes: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as opened:
        member = tarfile.TarInfo(name)
        member.size, member.pax_headers = 3, attributes
        opened.addfile(member, io.BytesIO(b"abc"))
    return made.getvalue()


@pytest.mark.parametrize("kind", COMPRESS)
def test_every_compression_of_a_package_is_read(kind: str, tmp_path: Path) -> None:
    extract(COMPRESS[kind](tarball(comment="x")), tmp_path / "whole")
    assert (tmp_path / "whole/kit/dbt_project.yml").read_bytes() == b"abc"


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("bomb", ["attributes", "long name", "zeros", "said size"])
def test_an_archive_that_grows_is_refused(
    kind: str, bomb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlmesh_like.app.setup.archive.MAX_BYTES", 3_000_000)
    if bomb == "attributes":
        content = tarball(comment="1" * (MAX_HEADER + 1))
    elif bomb == "long name":
        content = tarball("a/" * MAX_HEADER)
    elif bomb == "zeros":
        content = tarball() + b"\0" * 20_000_000
    else:
        member = tarfile.TarInfo("x")
        member.type, member.size = tarfile.XHDTYPE, 2**60
        content = member.tobuf(tarfile.GNU_FORMAT)
    if (kind, bomb) == ("plain", "zeros"):
        pytest.skip("it is as large as it says")
    with pytest.raises(ArchiveError):
        extract(COMPRESS[kind](content), tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_an_archive_that_goes_back_is_refused(tmp_path: Path) -> None:
    """A size below zero leads back to the member's own header, and a file is read 20,000 times."""
    content = tarball("kit/a").rstrip(b"\0").ljust(1024, b"\0") + tarball("kit/b", size="-1536")
    with pytest.raises(ArchiveError, match="negative size"):
        extract(content, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_an_archive_that_ends_too_early_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError):
        extract(COMPRESS[kind](tarball())[:-10], tmp_path / "whole")


def test_a_download_without_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65_536)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(packages, "MAX_BYTES", 2_000_000)
    address = f"http://127.0.0.1:{server.server_address[1]}/kit.tar.gz"
    enter_project(
        tmp_path, monkeypatch, {**FILES, "packages.yml": f"packages: [{{tarball: '{address}', name: kit}}]\n"}
    )
    try:
        assert main(["deps", "-t", "t"]) == 2
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert "takes more than 2 MB" in capsys.readouterr().err


def test_selectors_that_double_are_evaluated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    doubling = "- {name: s0, definition: 'm'}\n" + "".join(
        f"- {{name: s{n}, definition: {{union: [{{method: selector, value: s{n - 1}}}, "
        f"{{intersection: [{{method: selector, value: s{n - 1}}}, {{exclude: [nothing*]}}]}}]}}}}\n"
        for n in range(1, 60)
    )
    enter_project(tmp_path, monkeypatch, {**FILES, "selectors.yml": f"selectors:\n{doubling}"})
    assert main(["ls", "--selector", "s59"]) == 0, capsys.readouterr()
    assert capsys.readouterr().out == "shop.m\n"


def test_the_nearest_of_many_names_is_found_among_the_likely_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    known = [f"some_table_with_a_long_name_{number}" for number in range(60_000)]
    import difflib

    real = difflib.get_close_matches

    def count(word: str, names: list[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(names))
        return real(word, names, n=n, cutoff=cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", count)
    assert nearest("user_agg_by_dya", [*known, "user_agg_by_day", "x" * 1_000_000]) == "did you mean 'user_agg_by_day'?"
    assert nearest("y" * 10_000_000, known) is None
    assert max(compared) <= 1_000


@pytest.mark.parametrize(
    "text", ["{{ " * 300_000, "config(" * 200_000, "ref('" * 200_000, "a." * 500_000, "ref('x'" * 99_999]
)
def test_an_editor_may_have_a_line_of_a_megabyte(text: str) -> None:
    completion_context(text)
    call_target(text, len(text) // 2)
    assert completion_context(f"{text} }}}} {{{{ ref('or").offered == "refs"
    called = call_target(f"{text}) ref('orders')", len(text) + 5)
    assert called is not None and called.name == "orders"


def test_what_is_read_as_markdown_is_bounded_for_all_descriptions_together() -> None:
    markdown = Markdown()
    long = [markdown.as_html("&" * 90_000)[:3] for _ in range(5)]
    assert long == ["<p>", "<p>", "<p>", "<pr", "<pr"] and markdown.as_html("*a*") == "<p><em>a</em></p>\n"
