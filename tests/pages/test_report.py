"""The report in a real browser, opened from disk: drawn, told to who cannot see, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import needs_browser, silent_page
from tests.levels import parametrize

pytestmark = needs_browser


@pytest.fixture
def page(browser: Browser, report_page: Path) -> Iterator[Page]:
    """The report; whatever a test does, nothing may be asked for, logged or thrown."""
    with silent_page(browser, report_page) as page:
        yield page


def test_charts_are_drawn_and_told(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Corner shop")
    charts = page.get_by_role("img")
    expect(charts).to_have_count(4)
    sizes = page.evaluate(
        "[...document.querySelectorAll('.plot .wide svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert len(sizes) == 4 and min(sizes) > 120
    day = page.get_by_role("region", name="Sales by day")
    label = day.get_by_role("img").get_attribute("aria-label")
    assert label is not None and label.startswith("Total by day, 90 values. Largest 1,937.30 (2024-03-14)")
    expect(page.locator(".numbers")).to_contain_text("1,234,567.50")
    expect(page.get_by_role("region", name="Nothing yet")).to_contain_text("There are no rows yet.")
    assert page.title() == "Corner shop"


@pytest.mark.release
def test_a_mark_tells_its_row_under_the_pointer(page: Page) -> None:
    bar = page.locator(".wide [data-tip^='city: Lake Worth']")
    bar.hover()
    expect(page.locator("#tip")).to_have_text("city: Lake Worth\namount: 7,100")
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()


@pytest.mark.release
def test_the_numbers_stand_below_and_unfold(page: Page) -> None:
    city = page.get_by_role("region", name="Sales by city", exact=True)
    expect(city.locator("tbody tr")).to_have_count(9)
    expect(city.locator("tbody")).to_be_hidden()
    city.get_by_text("The numbers").click()
    expect(city.locator("tbody")).to_contain_text("Ülm <b>")


@pytest.mark.release
def test_colours_follow_the_system_until_chosen(page: Page) -> None:
    fill = "getComputedStyle(document.querySelector('.wide [data-tip^=\"city\"]')).fill"
    light = page.evaluate(fill)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(fill)
    assert light != dark and light.startswith("rgb")
    page.get_by_role("button", name="Change between light and dark").click()
    assert page.evaluate(fill) == light


@pytest.mark.release
def test_a_narrow_page_has_its_own_drawings(page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    expect(page.locator(".narrow svg").first).to_be_visible()
    expect(page.locator(".wide svg").first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


@parametrize(("scheme", "width"), suite=[("light", 1280)], release=[("light", 390), ("dark", 1280), ("dark", 390)])
def test_the_report_is_accessible(
    browser: Browser, report_page: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(report_page.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    violations = [f"{each['id']}: {each['help']}" for each in Axe().run(page).response["violations"]]
    context.close()
    assert violations == []
