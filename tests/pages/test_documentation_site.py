"""The site in a real browser, opened from disk: search, keys, pages, column lineage, light and dark, no request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import needs_browser, needs_libraries, silent_page
from tests.levels import count, parametrize

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
    sources = page.get_by_role("group", name="Freshness of sources").locator("tbody tr")
    expect(sources).to_have_text(re.compile(r"shop.orders.*warn.*since 2024-01-02 .*2024-01-01 00:00:00"))
    assert page.title() == "shop"


@pytest.mark.release
def test_the_first_page_begins_with_what_is_wrong_and_since_when(page: Page) -> None:
    health = page.get_by_role("region", name="Health")
    expect(health.locator(".tile")).to_have_text(
        ["2nodes failed", re.compile("nodes are stale"), "0 of 1sources fresh", "1.2%of what rebuilding reads"]
    )
    first = health.locator(".problems li").filter(has_text="not_null").first
    expect(first).to_contain_text("failednot_null of daily 2 rows without a day since 2024-01-02 00:00:00 UTC")
    expect(health.locator(".problems li").filter(has_text="top")).to_contain_text("no <b>such</b> table")
    order = page.locator("main section h2").all_text_contents()
    assert order[:5] == [
        "Health", "Freshness of sources", "What runs cost", "How models are kept up to date", "Graph",
    ]  # fmt: skip


@pytest.mark.release
def test_the_first_page_says_what_the_last_run_read_and_how_it_was_before(page: Page) -> None:
    cost = page.get_by_role("region", name="What runs cost")
    expect(cost).to_contain_text("The last run read 1.2% of what rebuilding would have read: 12.0 kB instead of 1.0 MB")
    trend = cost.get_by_role("img", name="Share read by each of the last 2 runs, oldest first: 100%, 1.2%")
    expect(trend.locator(".bar:not(.failed)")).to_have_count(2)


@pytest.mark.release
def test_a_failed_test_is_seen_at_its_model(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    expect(page.get_by_role("note").first).to_have_text(
        re.compile("^test not_null fail: 2 rows without a day since 2024-01-02 00:00:00 UTC")
    )
    expect(page.locator(".badges")).to_contain_text("1 test failed")


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


@pytest.mark.release
@needs_libraries
def test_search_forgives_typos_and_its_results_come_into_view(page: Page) -> None:
    page.locator("#search").fill("dialy")
    expect(page.locator("#results li").first).to_contain_text("daily")
    page.locator("#search").fill("douled")
    result = page.locator("#results li", has_text="paid").get_by_role("link")
    expect(result).to_contain_text("column doubled")
    result.click()
    expect(page.get_by_role("button", name="doubled", pressed=True)).to_be_in_viewport()
    page.locator("#search").fill("marts buyers")
    page.locator("#results li", has_text="daily").get_by_role("link").click()
    expect(page.locator('#tree [aria-current="page"]')).to_have_text("daily")


@pytest.mark.release
@needs_libraries
def test_search_says_where_it_found_a_column_or_code(page: Page) -> None:
    page.locator("#search").fill("doubled")
    expect(page.locator("#results li", has_text="paid")).to_contain_text("column doubled")
    expect(page.locator("#results li", has_text="daily")).to_contain_text("in its SQL")


@pytest.mark.release
def test_a_reason_leads_to_its_rule_and_to_its_line(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    aggregate = page.locator("tr", has_text="COUNT(DISTINCT")
    aggregate.get_by_role("link", name="models/marts/daily.sql:1:36").click()
    expect(page.locator(".line.marked")).to_contain_text("count(distinct id) as buyers")
    page.locator("tr", has_text="COUNT(DISTINCT").get_by_role("link", name="AGG002").click()
    expect(page.locator("#rule-AGG002.chosen")).to_be_in_viewport()
    expect(page.locator("#rule-AGG002")).to_contain_text("daily")


@pytest.mark.release
def test_sql_is_shown_as_written_compiled_and_as_delta_program(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    expect(page.get_by_role("tab", name="Source")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Source").press("ArrowRight")
    expect(page.get_by_role("tabpanel")).to_contain_text("from `dws`.`paid`")
    page.get_by_role("tab", name="Delta program").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("-- full build")
    expect(page.get_by_role("tabpanel").locator(".t-keyword").first).to_be_visible()


@pytest.mark.release
def test_the_runs_page_begins_with_what_failed(page: Page) -> None:
    page.get_by_role("link", name="Runs").click()
    rows = page.get_by_role("group", name="Results of the last call").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="top")).to_contain_text("no <b>such</b> table")
    expect(rows.last).to_contain_text("7")
    calls = page.get_by_role("group", name="Calls of this target, newest first").locator("tbody tr")
    expect(calls).to_have_text([re.compile("build.*fail.*1.2%"), re.compile("build.*100%")])


@pytest.mark.release
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


def test_a_failing_test_is_seen_at_its_model_with_its_rows_and_on_a_phone_nothing_is_cut(
    browser: Browser, site: Path
) -> None:
    with silent_page(browser, site, width=390) as page:
        page.goto(f"{site.as_uri()}#/node/model.shop.daily")
        cut = "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth).length"
        assert page.evaluate(cut) == 0
        assert page.locator("#tree .leaf.is-failed", has_text="daily").count() == 2  # the model and its test
        page.get_by_role("link", name="test not_null").click()
        expect(page.get_by_role("region", name="Rows that failed")).to_contain_text("7.50")
        page.goto(f"{site.as_uri()}#/graph")
        expect(page.locator(".stage canvas").first).to_be_visible()
        beside = """() => { const stage = document.querySelector('.stage').getBoundingClientRect();
            return [...document.querySelectorAll('.spot')].map((each) => each.getBoundingClientRect())
                .map((card) => card.left >= stage.left && card.right <= Math.min(stage.right, innerWidth)); }"""
        page.wait_for_function(f"({beside})().length > 0")
        assert all(page.evaluate(beside))


@pytest.mark.release
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


@parametrize(("scheme", "width"), suite=[("light", 1280)], release=[("light", 390), ("dark", 1280), ("dark", 390)])
def test_every_page_is_accessible(browser: Browser, site: Path, scheme: Literal["light", "dark"], width: int) -> None:
    """By axe-core: contrast, names, landmarks, order of headings and the like. It comes by script, past the policy.

    In the dark only colours differ.
    """
    options = {"runOnly": ["color-contrast", "link-in-text-block"]} if scheme == "dark" else None
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 844})
    page = context.new_page()
    daily = "#/node/model.shop.daily"
    paths = ("#/", daily, f"{daily}?column=total", "#/node/exposure.shop.board", "#/graph", "#/runs", "#/rules",
             "#/graph?select=no_such_node", "#/graph?focus=model.shop.paid")  # fmt: skip
    violations = []
    for path in paths[:: count(4, 1, 1)]:
        page.goto(f"{site.as_uri()}{path}")
        page.reload()
        axe = Axe().run(page, options=options)
        violations += [f"{path}: {each['id']}: {each['help']}" for each in axe.response["violations"]]
    context.close()
    assert violations == []


@pytest.mark.release
def test_a_page_that_is_not_there_says_so(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.gone")
    expect(page.get_by_text("This site has no page model.shop.gone.")).to_be_visible()
