"""The site of an installation without libraries in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import needs_browser, silent_page
from tests.unit.docs.test_libraries import bare_site


@needs_browser
def test_a_site_without_libraries_lists_its_graph_and_is_searched(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_page(browser, bare_site(tmp_path, monkeypatch)) as page:
        page.get_by_role("link", name="Graph").click()
        layers = page.get_by_role("list", name="All tables of the project").get_by_role("listitem")
        expect(layers).to_have_text(["shop.orders rates", "paid hist", "daily", "top board"])
        page.locator("#search").fill("buyers")
        page.locator("#results li", has_text="daily").get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("daily")
        expect(page.get_by_role("region", name="Lineage").get_by_role("listitem").first).to_have_text("shop.orders")
