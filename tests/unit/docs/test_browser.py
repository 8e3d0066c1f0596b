"""The site in a real browser, opened from disk: search, keys, pages, column lineage, light and dark, no request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import browser as browser
from tests.browser import needs_browser, silent_page

pytestmark = needs_browser


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The first page; whatever a test does, nothing may be asked for, logged or thrown."""
    with silent_page(browser, site) as page:
        yield page


def test_the_first_page_tells_of_the_project(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    expect(page.get_by_text("Sales of the whole shop.")).to_be_visible()
    expect(page.locator(".tile.k-model")).to_have_text("3models")
    expect(page.locator(".tile.k-seed")).to_have_text("1seed")
    expect(page.locator(".graph .card")).to_have_count(7)
    sources = page.get_by_role("group", name="Sources").locator("tbody tr")
    expect(sources).to_have_text(re.compile("shop.orders.*2024-01-01 00:00:00.*warn"))
    assert page.title() == "shop"


def test_search_narrows_and_its_results_are_reached_by_keys(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("daily")
    expect(page.locator("#results li").first).to_contain_text("daily")
    many = page.locator("#results li").count()
    page.keyboard.type(" buyers")
    expect(page.get_by_role("status")).to_have_text("1 result")
    assert many > 1
    expect(page.locator("#tree")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("daily")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.locator("#search").fill("no such thing")
    expect(page.get_by_role("status")).to_have_text("Nothing found")
    page.locator("#search").press("Escape")
    expect(page.locator("#tree")).to_be_visible()


def test_search_says_where_it_found_a_column_or_code(page: Page) -> None:
    page.locator("#search").fill("doubled")
    expect(page.locator("#results li", has_text="paid")).to_contain_text("column doubled")
    expect(page.locator("#results li", has_text="daily")).to_contain_text("in its SQL")


def test_a_click_on_a_card_opens_its_page(page: Page) -> None:
    page.get_by_role("link", name="daily group_recompute, model").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("daily")
    expect(page.locator(".ladder [aria-current]")).to_have_text("group recompute")
    expect(page.locator(".prose").first).to_have_text("Sales by day <img src=x onerror=alert(1)>.")
    expect(page.locator("#tree [aria-current]")).to_have_text("daily")
    commits = page.get_by_role("region", name="Commits")
    expect(commits.locator("tbody tr")).to_have_count(2)
    stripe = "getComputedStyle(document.querySelector('.card.center .stripe')).fill"
    assert page.evaluate(stripe) == "rgb(18, 52, 86)", "the colour that its config gives it"
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")


def test_an_exposure_has_a_page_and_its_address_is_followed_only_where_it_is_of_the_web(page: Page) -> None:
    page.get_by_role("link", name="board dashboard, exposure").click()
    expect(page.locator(".facts")).to_contain_text("javascript:alert(1)")
    expect(page.locator('a[href^="javascript"]')).to_have_count(0)
    expect(page.get_by_role("region", name="Relations")).to_contain_text("daily")


def test_arrow_keys_go_from_card_to_card(page: Page) -> None:
    page.locator('.card[data-id="model.shop.daily"]').focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator('.card[data-id="model.shop.paid"]')).to_be_focused()
    expect(page.locator('.card[data-id="seed.shop.rates"]')).to_have_class("card k-seed faded")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("paid")


def test_a_column_is_traced_up_and_down(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    page.get_by_role("button", name="total").click()
    lineage = page.get_by_role("region", name="Lineage")
    traced = lineage.locator(".card .column")
    expect(traced).to_have_text(["amount", "doubled", "total", "total"])
    expect(lineage.locator(".trace.h-aggregated")).to_have_count(1)
    expect(lineage.locator(".trace.h-computed")).to_have_count(1)
    expect(lineage.locator(".trace.h-copied")).to_have_count(1)
    expect(lineage.locator(".legend")).to_contain_text("rows grouped by paid.day")
    expect(page.get_by_role("button", name="total")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Whole lineage").click()
    expect(traced).to_have_count(0)


def test_a_reason_leads_to_its_rule_and_to_its_line(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    aggregate = page.locator("tr", has_text="COUNT(DISTINCT")
    aggregate.get_by_role("link", name="models/marts/daily.sql:1:36").click()
    expect(page.locator(".line.marked")).to_contain_text("count(distinct id) as buyers")
    page.locator("tr", has_text="COUNT(DISTINCT").get_by_role("link", name="AGG002").click()
    expect(page.locator("#rule-AGG002.chosen")).to_be_in_viewport()
    expect(page.locator("#rule-AGG002")).to_contain_text("daily")


def test_sql_is_shown_as_written_compiled_and_as_delta_program(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    expect(page.get_by_role("tab", name="Source")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Source").press("ArrowRight")
    expect(page.get_by_role("tabpanel")).to_contain_text("from `dws`.`paid`")
    page.get_by_role("tab", name="Delta program").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("-- full build")
    expect(page.get_by_role("tabpanel").locator(".t-keyword").first).to_be_visible()


def test_the_runs_page_begins_with_what_failed(page: Page) -> None:
    page.get_by_role("link", name="Runs").click()
    rows = page.get_by_role("group", name="Results of the last call").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("no <b>such</b> table")
    expect(rows.last).to_contain_text("7")


def test_light_and_dark_follow_the_system_until_chosen(page: Page) -> None:
    back = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(back)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(back)
    assert light != dark
    page.get_by_role("button", name="Change between light and dark").click()
    assert page.evaluate(back) == light
    page.reload()
    assert page.evaluate(back) == light, "the choice is kept"


def test_a_narrow_page_has_its_tree_behind_a_button(page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    expect(page.locator("#side")).to_be_hidden()
    menu = page.get_by_role("button", name="Menu")
    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    page.locator("#tree").get_by_role("link", name="daily", exact=True).click()
    expect(page.locator("#side")).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_have_text("daily")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(browser: Browser, site: Path, scheme: Literal["light", "dark"]) -> None:
    """By axe-core: contrast, names, landmarks, order of headings and the like. It comes by script, past the policy.

    In the dark only colours differ.
    """
    options = {"runOnly": ["color-contrast", "link-in-text-block"]} if scheme == "dark" else None
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    daily = "#/node/model.shop.daily"
    found = []
    for path in ("#/", daily, f"{daily}?column=total", "#/node/exposure.shop.board", "#/graph", "#/runs", "#/rules"):
        page.goto(f"{site.as_uri()}{path}")
        page.reload()
        found += [
            f"{path}: {each['id']}: {each['help']}" for each in Axe().run(page, options=options).response["violations"]
        ]
    context.close()
    assert found == []


def test_a_page_that_is_not_there_says_so(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.gone")
    expect(page.get_by_text("This site has no page model.shop.gone.")).to_be_visible()
