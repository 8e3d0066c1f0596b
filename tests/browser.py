"""A real browser for the pages we write. Owns starting it, and that a page asks for nothing and says nothing.

`tests/pages` has it: it is started once for each of its modules.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sqlmesh_like.docs.libraries import site_libraries

# Tests without a JVM have folders that hold one taken off their PATH: a browser may be there too.
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), os.defpath])
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CHROMIUM = next((program for name in _NAMES if (program := shutil.which(name, path=SYSTEM_PATH))), None)
_PATIENCE_MS = 60_000  # a busy machine is no failure
expect.set_options(timeout=_PATIENCE_MS)
_IS_DEMANDED = bool(os.environ.get("SML_DEMAND_BROWSER"))
needs_browser = pytest.mark.skipif(
    _CHROMIUM is None and not _IS_DEMANDED, reason="no Chromium here; on Debian: apt-get install chromium"
)
needs_libraries = pytest.mark.skipif(
    not site_libraries() and not _IS_DEMANDED, reason="the site's libraries are not here: make site-libraries"
)
"""Where SML_DEMAND_BROWSER is set both must be there: what is missing then fails the tests instead of skipping them."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox"], env={**os.environ, "PATH": SYSTEM_PATH}, timeout=120_000
        )
        yield started
        started.close()


@contextmanager
def silent_page(browser: Browser, file: Path, width: int = 1280, height: int = 900, scale: int = 1) -> Iterator[Page]:
    """A file as a page; whatever a test does with it, nothing may be asked for, logged or thrown.

    A narrow one is that of a phone, whose screen is touched.
    """
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="light", has_touch=width < 500, is_mobile=width < 500,
        device_scale_factor=scale,
    )  # fmt: skip
    page.set_default_timeout(_PATIENCE_MS)
    reports: list[str] = []
    page.on("console", lambda message: reports.append(message.text))
    page.on("pageerror", lambda error: reports.append(str(error)))
    page.on("request", lambda request: reports.append(request.url) if request.url.startswith("http") else None)
    page.goto(file.as_uri())
    yield page
    page.close()
    assert reports == []
