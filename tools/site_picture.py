"""The picture of the documentation site in the README: `python -m tools.site_picture`.

The site is that of the demo's project, which is the root of this repository, rendered by the installed Chromium. It
needs no lake: columns are those of the `test` target's fixtures.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from sqlmesh_like.cli.app import main

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "site.png"
PAGE = "#/graph"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SIZE = (1280, 720)
_DRAWN = "canvas"
_MS = 600_000  # long, so that a busy machine does not cause a failure


def take(path: Path) -> None:
    """Write the picture. Raises SystemExit where the site cannot be generated or there is no browser."""
    browser = next((program for name in _BROWSERS if (program := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("no Chromium here; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "docs",
            "generate",
            "--empty-catalog",
            "--quiet",
            "-t",
            "test",
            "--project-dir",
            str(ROOT),
            "--target-path",
            folder,
        ]
        if code := main(words):
            raise SystemExit(code)
        with sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"], timeout=_MS)
            width, height = _SIZE
            page = started.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.set_default_timeout(_MS)
            page.goto(f"{(Path(folder) / 'index.html').as_uri()}{PAGE}")
            page.locator(_DRAWN).first.wait_for()
            page.wait_for_timeout(2_000)  # the layout of the graph is animated
            page.screenshot(path=path)
            started.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
