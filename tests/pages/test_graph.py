"""The graph in a real browser: 15, 300 and 1,000 nodes, groups, filter, keys, phone.

What is on the canvas is asked of its pixels, and where it is of the links that lie over it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic, sleep

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.selector import select
from tests.browser import needs_browser, needs_libraries, silent_page
from tests.levels import sample
from tests.pages.large_project import DOMAINS, LAYERS, make_large_project
from tests.unit.docs.conftest import make_project

pytestmark = [needs_browser, needs_libraries]
SIZES, WIDTHS = (15, 300, 1000), (1280, 390)
_PLACE = "(card) => [scrollX, scrollY, ...Object.values(card.getBoundingClientRect().toJSON())]"
READABLE = 0.6  # of its full size a card is at first sight at least; then its name has the height of small print
CARD = 46
PAGE = "#/graph"


@pytest.fixture(scope="module")
def large_sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """Sites of so many nodes."""
    sites = {}
    for nodes in SIZES:
        root = make_large_project(tmp_path_factory.mktemp("large") / "p", nodes)
        words = ["--no-compile", "--empty-catalog", "-q", "--project-dir", str(root), "--profiles-dir", str(root)]
        assert main(["docs", "generate", *words]) == 0
        sites[nodes] = root / "target/index.html"
    return sites


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The overview of the small site; whatever a test does, nothing may be asked for, logged or thrown."""
    with silent_page(browser, site, scale=3) as page:
        yield page


@pytest.fixture
def large(browser: Browser, large_sites: Mapping[int, Path]) -> Iterator[Page]:
    """The graph of 300 nodes."""
    with silent_page(browser, large_sites[300]) as page:
        show(page, PAGE)
        yield page


@pytest.fixture
def phone(browser: Browser, large_sites: Mapping[int, Path]) -> Iterator[Page]:
    """The graph of 300 nodes on a phone."""
    with silent_page(browser, large_sites[300], 390, 844) as page:
        show(page, PAGE)
        yield page


def show(page: Page, path: str) -> None:
    """Go to the page of the graph; the one before may have had a drawing too."""
    page.goto(f"{page.url.partition('#')[0]}{path}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Graph")
    expect(page.locator(".stage canvas").first).to_be_visible()


def box_of(spot: Locator) -> FloatRect:
    box = spot.bounding_box()
    assert box is not None
    return box


def centre(spot: Locator) -> tuple[float, float]:
    box = box_of(spot)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def click(page: Page, spot: Locator) -> None:
    """The drawing gets it, as it gets a user's."""
    spot.scroll_into_view_if_needed()
    wait_until_still(page)
    page.mouse.click(*centre(spot))


def tap(page: Page, spot: Locator) -> None:
    """The drawing gets it, once nothing moves any more."""
    wait_until_still(page)
    page.touchscreen.tap(*centre(spot))


def spot_of(page: Page, unique_id: str) -> Locator:
    return page.locator(f'.spot[data-id="{unique_id}"]')


def cards(page: Page) -> Locator:
    return page.locator(".spot:not(.head)")


def ink(page: Page, x: float, y: float) -> str:
    """The colour at a place of the window, as `#rrggbb`: of a picture of one pixel, which no filter of PNG changes."""
    image = page.screenshot(clip={"x": x, "y": y, "width": 1, "height": 1}, scale="device")
    data, at = b"", 8
    while at < len(image):
        length = int.from_bytes(image[at : at + 4], "big")
        data += image[at + 8 : at + 8 + length] if image[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    return f"#{zlib.decompress(data)[1:4].hex()}"


def place_on_page(page: Page) -> float:
    """How far below the top of the page the first card is: of one moment, for a page may still be scrolling."""
    top: float = cards(page).first.evaluate("(card) => card.getBoundingClientRect().top + scrollY")
    return top


def wait_until(is_so: Callable[[], bool]) -> None:
    """The page's policy forbids what the browser's driver would wait with."""
    deadline = monotonic() + 60
    while not is_so():
        assert monotonic() < deadline
        sleep(0.05)


def wait_until_still(page: Page) -> None:
    """Until neither the page nor its graph has moved for longer than Cytoscape lets a page scroll (250 ms)."""
    places: list[object] = []

    def is_still() -> bool:
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        places.append(cards(page).first.evaluate(_PLACE))
        sleep(0.05)
        return len(places) > 8 and all(place == places[-1] for place in places[-8:])

    wait_until(is_still)


def near(colour: str, other: str) -> bool:
    """A thin line's pixels are not all of its colour."""
    pairs = [(int(colour[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return all(abs(one - another) <= 6 for one, another in pairs)


def test_a_click_on_a_card_opens_its_page(page: Page) -> None:
    click(page, page.get_by_role("link", name="daily 1 test failed, model"))
    expect(page.get_by_role("heading", level=1)).to_have_text("daily")
    expect(page.locator(".ladder [aria-current]")).to_have_text("group recompute")
    expect(page.locator(".prose").first).to_have_text("Sales by day <img src=x onerror=alert(1)>.")
    expect(page.locator("#tree [aria-current]")).to_have_text("daily")
    expect(page.get_by_role("region", name="Commits").locator("tbody tr")).to_have_count(2)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")


@pytest.mark.release
def test_a_card_has_the_colour_that_its_config_gives_it(page: Page) -> None:
    show(page, PAGE)
    wait_until(lambda: stripe(page) == "#123456")


def stripe(page: Page) -> str:
    """The colour at the left edge of `daily`."""
    box = box_of(spot_of(page, "model.shop.daily"))
    return ink(page, box["x"] + 3, box["y"] + box["height"] / 2)


@pytest.mark.release
@pytest.mark.parametrize(("named", "drawn"), [("#12345680", ""), ("rebeccapurple", "#663399"), ("currentcolor", "")])
def test_a_colour_is_drawn_as_it_is_named_or_not_at_all(
    browser: Browser, tmp_path: Path, named: str, drawn: str
) -> None:
    root = make_project(tmp_path)
    properties = root / "models/s.yml"
    properties.write_text(properties.read_text().replace("#123456", named))
    words = ["--no-compile", "--project-dir", str(root), "--profiles-dir", str(root)]
    assert main(["docs", "generate", "-q", *words]) == 0
    with silent_page(browser, root / "target/index.html") as page:
        show(page, PAGE)
        wait_until(lambda: stripe(page) == drawn if drawn else stripe(page).startswith("#"))


def test_a_failure_is_seen_at_its_card_in_red_and_in_words(page: Page) -> None:
    show(page, PAGE)
    expect(spot_of(page, "model.shop.daily")).to_have_accessible_name("daily 1 test failed, model, reads 1, read by 2")
    expect(spot_of(page, "model.shop.top")).to_have_accessible_name("top failed, model, reads 1, read by 0")
    bad = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')").strip()

    def is_red(unique_id: str) -> bool:
        box = box_of(spot_of(page, unique_id))
        return any(near(ink(page, box["x"] + box["width"] / 2, box["y"] + dy), bad) for dy in (-1, 0, 1))

    wait_until(lambda: is_red("model.shop.top"))
    assert not is_red("model.shop.paid")


@pytest.mark.release
def test_an_exposure_has_a_page_and_its_address_is_followed_only_where_it_is_of_the_web(page: Page) -> None:
    click(page, page.get_by_role("link", name="board dashboard, exposure"))
    expect(page.locator(".facts")).to_contain_text("javascript:alert(1)")
    expect(page.locator('a[href^="javascript"]')).to_have_count(0)
    expect(page.get_by_role("region", name="Relations")).to_contain_text("daily")


@pytest.mark.release
def test_arrow_keys_go_from_card_to_card(page: Page) -> None:
    spot_of(page, "model.shop.daily").focus()
    page.keyboard.press("ArrowLeft")
    expect(spot_of(page, "model.shop.paid")).to_be_focused()
    expect(page.locator(".about")).to_contain_text("paid model, view")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("paid")


@pytest.mark.release
def test_the_tab_key_stops_once_at_a_graph(large: Page) -> None:
    large.locator("#filter").focus()
    large.keyboard.press("Tab")
    large.keyboard.press("Tab")
    expect(large.locator(".spot:focus")).to_have_count(1)
    large.keyboard.press("Tab")
    expect(large.get_by_role("button", name="Open all groups")).to_be_focused()


@pytest.mark.release
def test_a_card_in_focus_fades_what_it_has_nothing_to_do_with(page: Page) -> None:
    show(page, PAGE)
    wait_until_still(page)
    seed = box_of(spot_of(page, "seed.shop.rates"))
    place = seed["x"] + 3, seed["y"] + seed["height"] / 2
    before = ink(page, *place)
    spot_of(page, "model.shop.daily").focus()
    expect(page.locator(".about")).to_contain_text("daily")
    wait_until(lambda: ink(page, *place) != before)


@pytest.mark.release
def test_a_column_is_traced_up_and_down(page: Page) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/node/model.shop.daily")
    page.get_by_role("button", name="total").click()
    lineage = page.get_by_role("region", name="Lineage")
    expect(lineage.locator(".spot")).to_have_count(4)
    names = [each.get_attribute("aria-label") or "" for each in lineage.locator(".spot").all()]
    assert [name.partition(",")[0] for name in names] == [
        "shop.orders stale amount", "paid view doubled", "daily 1 test failed total", "top failed total",
    ]  # fmt: skip
    for unique_id, colour in (("model.shop.paid", "s3"), ("model.shop.daily", "s4"), ("model.shop.top", "s2")):
        wait_until(lambda unique_id=unique_id, colour=colour: edge_colour(page, unique_id) == colour)  # type: ignore[misc]
    expect(lineage.locator(".legend")).to_contain_text("rows grouped by paid.day")
    expect(page.get_by_role("button", name="total")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Whole lineage").click()
    expect(page.get_by_role("button", name="total")).to_have_attribute("aria-pressed", "false")


def edge_colour(page: Page, unique_id: str) -> str | None:
    """The name of the colour of the edge that enters a traced card at its only column."""
    expect(page.locator(".stage canvas").first).to_be_visible()
    box = box_of(spot_of(page, unique_id))
    zoom = box["height"] / (CARD + 20)
    seen = {ink(page, box["x"] - 12 * zoom, box["y"] + (CARD + 4) * zoom + step) for step in range(-2, 3)}
    known = {name: page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')").strip()
             for name in ("s2", "s3", "s4")}  # fmt: skip
    return next((name for name, value in known.items() if any(near(each, value) for each in seen)), None)


@pytest.mark.release
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("nodes", SIZES)
def test_a_graph_of_any_size_is_read_at_first_sight(
    browser: Browser, large_sites: Mapping[int, Path], nodes: int, width: int
) -> None:
    with silent_page(browser, large_sites[nodes], width, 844) as page:
        show(page, PAGE)
        expect(page.get_by_text(f"{nodes:,} nodes", exact=True)).to_be_visible()
        shown, stage = cards(page), page.locator(".stage").bounding_box()
        assert stage is not None and 1 < shown.count() <= 60
        for box in filter(None, (each.bounding_box() for each in shown.all())):
            assert box["height"] >= READABLE * CARD, "large enough"
            assert box["x"] >= stage["x"] and box["x"] + box["width"] <= stage["x"] + stage["width"] + 1, "all of it"
            assert box["y"] >= stage["y"] and box["y"] + box["height"] <= stage["y"] + stage["height"] + 1
        expect(page.locator(".minimap")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


@pytest.mark.release
def test_a_folder_with_too_many_nodes_is_parted_by_their_names(browser: Browser, tmp_path: Path) -> None:
    root = make_large_project(tmp_path / "p", 300, is_flat=True)
    words = ["--no-compile", "--project-dir", str(root), "--profiles-dir", str(root)]
    assert main(["docs", "generate", "-q", *words]) == 0
    with silent_page(browser, root / "target/index.html") as page:
        show(page, PAGE)
        assert cards(page).count() <= 60
        heads = page.locator(".spot.head")
        expect(heads.filter(has_text=re.compile("^− (sta|int|mar|rep)_…$")).first).to_be_visible()
        page.get_by_role("button", name="Open all groups").click()
        expect(cards(page)).to_have_count(300)


@pytest.mark.release
def test_every_node_is_in_the_graph_when_all_groups_are_open(browser: Browser, large_sites: Mapping[int, Path]) -> None:
    with silent_page(browser, large_sites[1000]) as page:
        show(page, PAGE)
        page.get_by_role("button", name="Open all groups").click()
        expect(cards(page)).to_have_count(1000)
        expect(page.locator(".spot.head")).to_have_count(len(DOMAINS) * (len(LAYERS) + 1) + len(LAYERS) + 1)
        page.get_by_role("button", name="Close all groups").click()
        expect(cards(page)).to_have_count(len(LAYERS) + 1)


@pytest.mark.release
def test_a_group_opens_and_closes_by_click_and_by_key(large: Page) -> None:
    closed = large.get_by_role("button", name="estate, 7 nodes").first
    before = cards(large).count()
    expect(closed).to_have_attribute("aria-expanded", "false")
    click(large, closed)
    expect(cards(large)).to_have_count(before - 1 + 7)
    head = large.get_by_role("button", name="− estate", exact=True)
    expect(head).to_have_attribute("aria-expanded", "true")
    head.click()
    expect(cards(large)).to_have_count(before)
    large.get_by_role("button", name="estate, 7 nodes").first.press("Enter")
    expect(cards(large)).to_have_count(before - 1 + 7)
    expect(large.get_by_role("button", name="− estate", exact=True)).to_be_focused()


@pytest.mark.release
def test_groups_stay_as_they_were_left(large: Page) -> None:
    before = cards(large).count()
    click(large, large.get_by_role("button", name="estate, 7 nodes").first)
    left = before - 1 + 7
    expect(cards(large)).to_have_count(left)
    large.get_by_role("link", name="Runs").click()
    expect(large.get_by_role("heading", level=1)).to_have_text("Runs")
    large.get_by_role("link", name="Graph").click()
    expect(cards(large)).to_have_count(left)


@pytest.mark.release
def test_the_minimap_shows_where_one_is_and_leads_elsewhere(large: Page) -> None:
    for _ in range(3):
        large.get_by_role("button", name="Zoom in").click()
    minimap = large.locator(".minimap")
    expect(minimap).to_be_visible()
    wait_until_still(large)
    first, box = cards(large).first, box_of(minimap)
    before = centre(first)
    large.mouse.click(box["x"] + 8, box["y"] + box["height"] / 2)
    wait_until(lambda: centre(first)[0] > before[0] + 50)  # the beginning comes into view
    large.get_by_role("button", name="Fit").click()
    expect(minimap).to_be_hidden()


@pytest.mark.release
def test_what_is_sought_comes_into_view_in_the_graph(large: Page) -> None:
    large.locator("#search").fill("mar_tax_019")
    large.locator("#results li").first.get_by_role("link").click()
    expect(spot_of(large, "model.company.mar_tax_019")).to_be_in_viewport()
    expect(large.locator(".about")).to_contain_text("mar_tax_019")


SELECTIONS = (
    "daily", "+daily", "daily+", "1+daily", "+daily+1", "@paid", "paid daily", "tag:money tag:*", "path:models/marts",
    "path:models/*", "marts", "shop.marts", "*", "d*y", "[dt]*", "[!dt]*", "top.sql", "file:top", "source:shop",
    "source:shop.orders+", "source:shop.shop.orders", "exposure:board", "+exposure:*", "group:finance",
    "config.materialized:view", "config.materialized:incremental,marts", "resource_type:model", "resource_type:source",
    "access:protected", "package:shop", "package:this", "daily,top", "+top,path:models/marts", "test_type:generic",
    "test_name:not_null", "test_name:not_null,daily", "resource_type:test", "version:none", "config.group:fin*",
    "config.enabled:true", "snapshot", "hist", "+hist", "nothing", "tag:", "++daily", "@daily+", "state:modified",
    "methd:x", "daily,nothing", "version:newest", "rates.csv", "seeds/rates.csv", "unit_test:x", "models/marts/",
)  # fmt: skip


@sample("words", SELECTIONS, every=8)
def test_the_filter_chooses_what_the_command_line_chooses(filtered: tuple[Page, Graph], words: str) -> None:
    page, graph = filtered
    page.goto(f"{page.url.partition('#')[0]}#/graph")
    expect(page.locator("#filter")).to_have_value("")  # the one of the selection before is gone
    page.locator("#filter").fill(words)
    page.locator("#filter").press("Enter")
    wanted = in_graph(graph, words)
    if wanted is None:
        expect(page.locator("#filtered")).to_have_class("trouble")
        expect(cards(page)).to_have_count(7)
    else:
        expect(page.locator("#filtered")).to_have_text(f"{len(wanted)} of 7 nodes")
        expect(cards(page)).to_have_count(len(wanted))
        assert {each.get_attribute("data-id") for each in cards(page).all()} == wanted


@pytest.fixture(scope="module")
def filtered(browser: Browser, site: Path) -> Iterator[tuple[Page, Graph]]:
    root = site.parents[1]
    with silent_page(browser, site) as page:
        yield page, load(Invocation(project_dir=root, profiles_dir=root)).graph


def in_graph(graph: Graph, words: str) -> set[str] | None:
    """What the command line chooses, as the graph shows it: of tests alone what they test. None where it refuses."""
    from sqlmesh_like.errors import SelectionError

    try:
        chosen = select(graph, (words,))
    except SelectionError:
        return None
    tests = {each for each in chosen if graph.nodes[each].resource_type in ("test", "unit_test")}
    tables = set(chosen) - tests
    return tables or {parent for test in tests for parent in graph.parents(test)}


@pytest.mark.release
def test_a_filter_by_result_shows_what_failed(page: Page) -> None:
    show(page, "#/graph?select=result:error%20result:fail")
    expect(page.locator("#filtered")).to_have_text("1 of 7 nodes")
    expect(spot_of(page, "model.shop.top")).to_have_count(1)
    show(page, "#/graph?select=result:fail")
    expect(spot_of(page, "model.shop.daily")).to_have_count(1)


@pytest.mark.release
def test_a_mistake_in_the_filter_is_named(page: Page) -> None:
    show(page, "#/graph?select=tga:x")
    expect(page.get_by_role("status").last).to_contain_text("unknown method tga; known: fqn, path")


@pytest.mark.release
def test_on_a_phone_a_tap_opens_a_group_and_names_a_card(phone: Page) -> None:
    before = cards(phone).count()
    tap(phone, phone.get_by_role("button", name="staging, 72 nodes"))
    expect(cards(phone)).to_have_count(before - 1 + 10)
    tap(phone, phone.get_by_role("button", name="estate, 7 nodes"))
    card = phone.get_by_role("link", name="sta_estate_008").first
    expect(card).to_be_attached()
    tap(phone, card)
    expect(phone.locator(".about")).to_contain_text("sta_estate_008")
    expect(phone.get_by_role("heading", level=1)).to_have_text("Graph")
    tap(phone, card)
    expect(phone.get_by_role("heading", level=1)).to_have_text("sta_estate_008")


@pytest.mark.release
def test_on_a_phone_one_finger_moves_the_graph_and_two_zoom_it(phone: Page) -> None:
    wait_until_still(phone)
    first = cards(phone).first
    before = box_of(first)
    gesture(phone, [[(200, 500)], [(200, 520)], [(200, 560)], [(200, 600)]])
    wait_until(lambda: box_of(first)["y"] > before["y"] + 50)
    gesture(
        phone, [[(180, 500), (220, 500)], [(160, 500), (240, 500)], [(120, 500), (280, 500)], [(80, 500), (320, 500)]]
    )
    wait_until(lambda: box_of(first)["height"] > 1.5 * before["height"])


def gesture(page: Page, steps: list[list[tuple[int, int]]]) -> None:
    """Fingers go from step to step."""
    session = page.context.new_cdp_session(page)
    for number, fingers in enumerate(steps):
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(fingers)]
        kind = "touchMove" if number else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.wait_for_timeout(30)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.release
def test_within_a_page_the_wheel_moves_the_page_and_with_ctrl_the_graph(
    browser: Browser, large_sites: Mapping[int, Path]
) -> None:
    with silent_page(browser, large_sites[300]) as page:
        page.locator(".stage").evaluate("(stage) => stage.scrollIntoView()")
        expect(page.locator(".stage canvas").first).to_be_visible()
        wait_until_still(page)
        first, before = cards(page).first, page.evaluate("scrollY")
        size = box_of(first)
        page.mouse.move(*centre(page.locator(".stage")))
        page.mouse.wheel(0, -100)
        wait_until(lambda: page.evaluate("scrollY") < before)
        wait_until_still(page)
        assert size["height"] == pytest.approx(box_of(first)["height"], abs=0.01)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -100)
        page.keyboard.up("Control")
        wait_until(lambda: box_of(first)["height"] > size["height"] * 1.02)


@pytest.mark.release
def test_within_a_page_one_finger_moves_the_page_and_a_tap_is_for_the_graph(
    browser: Browser, large_sites: Mapping[int, Path]
) -> None:
    with silent_page(browser, large_sites[300], 390, 844) as page:
        page.locator(".stage").evaluate("(stage) => stage.scrollIntoView({ block: 'center' })")
        expect(page.locator(".stage canvas").first).to_be_visible()
        wait_until_still(page)
        x, y = map(round, centre(page.locator(".stage")))
        first, before, place = cards(page).first, page.evaluate("scrollY"), place_on_page(page)
        size = box_of(first)
        gesture(page, [[(x, y)], [(x, y + 30)], [(x, y + 60)], [(x, y + 90)]])
        wait_until(lambda: page.evaluate("scrollY") < before)
        wait_until_still(page)
        assert place_on_page(page) == pytest.approx(place, abs=3), "with the page alone"
        gesture(page, [[(x - apart, y), (x + apart, y)] for apart in (20, 40, 60)])
        wait_until(lambda: box_of(first)["height"] > 1.5 * size["height"])  # two fingers are for the graph
        wait_until_still(page)
        before = page.evaluate("scrollY")
        gesture(page, [[(x, y)], [(x, y + 30)], [(x, y + 60)]])
        wait_until(lambda: page.evaluate("scrollY") < before)
        page.get_by_role("button", name="Fit").tap()
        shown = cards(page).count()
        tap(page, page.get_by_role("button", name="staging, 72 nodes"))
        expect(cards(page)).to_have_count(shown - 1 + 10)


@pytest.mark.release
def test_a_group_says_what_failed_in_it(browser: Browser, tmp_path: Path) -> None:
    root = make_project(tmp_path)
    for number in range(40):
        (root / f"models/marts/more_{number:02}.sql").write_text("select id from {{ ref('paid') }}")
    assert (
        main(["docs", "generate", "-q", "--no-compile", "--project-dir", str(root), "--profiles-dir", str(root)]) == 0
    )
    with silent_page(browser, root / "target/index.html", 390, 844) as page:
        show(page, PAGE)
        expect(page.get_by_role("button", name="marts, 2 failed · 42 nodes")).to_have_count(1)


@pytest.mark.release
def test_the_drawing_follows_light_and_dark(page: Page) -> None:
    show(page, PAGE)
    wait_until_still(page)
    box = box_of(spot_of(page, "model.shop.paid"))
    place = box["x"] + box["width"] - 12, box["y"] + box["height"] - 8
    light = ink(page, *place)
    page.get_by_role("button", name="Change between light and dark").click()
    wait_until(lambda: ink(page, *place) != light)


@pytest.mark.release
@pytest.mark.parametrize("width", WIDTHS)
def test_a_large_graph_is_accessible(browser: Browser, large_sites: Mapping[int, Path], width: int) -> None:
    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": 844})
    page = context.new_page()
    violations = []
    for path in ("#/", PAGE):
        page.goto(f"{large_sites[300].as_uri()}{path}")
        page.reload()
        for more in page.locator("details.more").all():
            more.evaluate("(one) => { one.open = true; }")
        if path == PAGE:
            page.get_by_role("button", name="Open all groups").click()
        violations += [f"{path}: {each['id']}: {each['help']}" for each in Axe().run(page).response["violations"]]
    context.close()
    assert violations == []


@pytest.mark.release
def test_what_is_left_out_opens(browser: Browser, large_sites: Mapping[int, Path]) -> None:
    with silent_page(browser, large_sites[1000]) as page:
        sources = page.get_by_role("region", name="Freshness of sources")
        expect(sources.locator("tbody tr:visible")).to_have_count(8)
        sources.get_by_text("and 112 more").click()
        expect(sources.locator("tbody tr:visible")).to_have_count(120)
