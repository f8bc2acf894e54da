"""The page in a real Chromium: what a person sees and does, and what a hostile name cannot do."""

import math
import os
import re
import shutil
import struct
import time
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from qubayes.network import Linear, Network, read_network
from qubayes.report import (
    CloseNetworks,
    Consensus,
    EdgePosterior,
    EdgeShares,
    Outcome,
    Report,
    reversible_edges,
    write_report,
)
from report_cases import TRICKY, full_report, random_network

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SMALL = Network(
    ("Age", "Sex", "Smoker", "Exercise", "Blood pressure", "Cholesterol", "Stroke", "Alone"),
    ((), (), (0, 1), (0,), (2, 3), (3, 0), (4, 5, 2), ()),
)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium; install the Debian package chromium"
)


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="driving Chromium needs playwright")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def screenshots(tmp_path):
    folder = Path(os.environ.get("QUBAYES_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Visit:
    """A page that was opened, with what it said and asked for."""

    def __init__(self, browser, path, **settings):
        settings = {
            "viewport": {"width": 1440, "height": 900},
            "reduced_motion": "reduce",
            **settings,
        }
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog",
            lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()),
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "requestfailed",
            lambda request: request.failure == "csp" and self.requests.remove(request.url),
        )
        start = time.perf_counter()
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        self.seconds = time.perf_counter() - start
        self.own = path.as_uri()

    def __getattr__(self, name):
        return getattr(self.page, name)

    def classes(self, name):
        """The classes of the vertex with this name."""
        vertex = self.page.locator(".node", has_text=re.compile(f"^{re.escape(name)}$"))
        return set(vertex.get_attribute("class").split())

    def marked(self, kind):
        return sorted(self.page.locator(f".node.{kind}").all_text_contents())

    def transform(self):
        """Scale and offset of the picture."""
        text = self.page.locator("#view").get_attribute("transform")
        x, y, scale = map(
            float, re.fullmatch(r"translate\((\S+) (\S+)\) scale\((\S+)\)", text).groups()
        )
        return scale, x, y

    def rectangles(self, selector):
        script = "found => found.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
        return self.page.locator(selector).evaluate_all(script)


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a report; when the test ends, nothing may have been complained about or asked for."""
    opened = []

    def open_page(report, *, may_complain=False, **settings):
        path = tmp_path / f"report{len(opened)}.html"
        write_report(report, path)
        found = Visit(browser, path, **settings)
        opened.append((found, may_complain))
        return found

    yield open_page
    for found, may_complain in opened:
        assert may_complain or found.complaints == []
        assert [
            url for url in found.requests if url != found.own and not url.startswith("data:")
        ] == []
        found.context.close()


def apart(rectangles):
    return all(
        r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1
        for (l1, r1, t1, b1), (l2, r2, t2, b2) in combinations(rectangles, 2)
    )


def test_it_shows_everything(visit):
    page = visit(full_report(SMALL, "Health, 1,000 rows"))
    assert (
        page.title() == "Health, 1,000 rows"
        and page.locator("h1").inner_text() == "Health, 1,000 rows"
    )
    assert page.locator(".node").count() == SMALL.n and page.locator("#view .edge").count() == len(
        SMALL.edges
    )
    assert apart(page.rectangles(".node rect"))
    tiles = dict(
        zip(
            page.locator(".tile h3").all_text_contents(),
            page.locator(".tile b").all_text_contents(),
            strict=True,
        )
    )
    assert tiles["Score"] == "−11,001.50" and tiles["Bits"] == "1,683" and tiles["Edges"] == "10"
    assert tiles["Solver time"] == "12.3 s" and "Time" not in tiles
    caption = page.locator("#bits-caption").inner_text()
    assert (
        caption
        == "1,683 bits, 44.1 % fewer than the paper’s formulation for the same subsets (3,013)."
    )
    assert (
        page.locator("#trace path.score").count() == 1
        and page.locator("#trace line.bound").count() == 1
    )
    assert page.locator("#vertices tbody tr").count() == SMALL.n
    assert page.locator("#edges tbody tr").count() == len(SMALL.edges)
    assert "5f2d5f2d" in page.locator("#provenance").inner_text()


def test_a_bare_network_shows_no_empty_parts(visit):
    page = visit(Report(SMALL))
    assert not any(
        page.locator(f"#{part}").is_visible()
        for part in ("progress", "size", "edges", "consensus", "provenance", "status")
    )
    assert page.locator(".tile").count() == 1


@pytest.mark.parametrize("n", [0, 1])
def test_odd_reports(visit, n):
    network = Network(("only",)[:n], ((),)[:n])
    outcome = Outcome(
        -5.0, empty_score=-5.0, bound=-5.0, gap=0.0, status="optimal, proved", seconds=0.0
    )
    nothing = dict.fromkeys(("u", "r", "z", "total"), 0)
    page = visit(
        Report(network, "Odd", outcome, trace=((0.0, -5.0),), bits=nothing, paper_bits=nothing)
    )
    assert page.locator(".node").count() == n
    assert page.locator("#status").inner_text().split() == [
        "Optimum",
        "proved",
        "optimal,",
        "proved",
    ]
    assert "NaN" not in page.content() and "Infinity" not in page.locator("main").inner_text()
    assert page.locator("#bits-caption").inner_text().startswith("0 bits, as many as")


def test_required_edges_are_named(visit):
    page = visit(Report(SMALL, strengths={(0, 2): math.inf, (1, 2): 3.0}))
    page.fill("#search", "smoker")
    assert "required" in page.locator("#panel .parents li", has_text="Age").inner_text()


def heads(page):
    """The number of arrow heads that are drawn."""
    return page.locator("#view .edge .head").evaluate_all(
        "all => all.filter(e => e.style.display !== 'none').length"
    )


def test_a_switch_between_the_graph_and_its_equivalence_class(visit):
    free = reversible_edges(SMALL)
    assert 0 < len(free) < len(SMALL.edges)
    page = visit(full_report(SMALL))
    assert heads(page) == len(SMALL.edges)
    page.click("#as-class")
    assert heads(page) == len(SMALL.edges) - len(free)
    assert page.get_attribute("#as-class", "aria-pressed") == "true"
    page.click("#as-dag")
    assert heads(page) == len(SMALL.edges)
    assert heads(visit(Report(SMALL, class_only=True))) == len(SMALL.edges) - len(free)


def shown_edges(page):
    return page.locator("#view .edge:not(.away)").count()


def test_sliders_leave_strong_and_sure_edges(visit):
    report = full_report(SMALL)
    page = visit(report)
    page.locator("#by-strength input").fill("3")
    assert shown_edges(page) == 3
    weakest = sorted(report.strengths.values(), reverse=True)[2]
    text = page.locator("#by-strength").inner_text()
    assert text.startswith("Strongest 3 of 10") and float(text.split("≥")[1]) == pytest.approx(
        weakest, rel=0.01
    )
    page.locator("#by-strength input").fill("10")
    page.locator("#by-confidence input").fill("80")
    assert shown_edges(page) == sum(share >= 0.8 for share in report.confidences.values())
    assert not visit(Report(SMALL)).locator("#by-strength").is_visible()


def shown_vertices(page):
    return {
        SMALL.names[int(v)]
        for v in page.locator("#view .node:not(.away)").evaluate_all(
            "all => all.map(e => e.dataset.vertex)"
        )
    }


def test_parts_around_a_vertex(visit):
    page = visit(full_report(SMALL))
    page.locator(".node", has_text="Smoker").click()
    page.locator("#panel button", has_text="Neighbours").click()
    assert shown_vertices(page) == {"Smoker", "Age", "Sex", "Blood pressure", "Stroke"}
    page.locator("#panel button", has_text="Markov blanket").click()
    assert shown_vertices(page) == {
        "Smoker",
        "Age",
        "Sex",
        "Blood pressure",
        "Stroke",
        "Exercise",
        "Cholesterol",
    }
    page.locator("#panel button", has_text="Back to the whole network").click()
    assert shown_vertices(page) == set(SMALL.names)


def fitted_network():
    """Age has two states, Smoker three; the table of Smoker has a row for each state of Age."""
    tables = (np.array([0.25, 0.75]), np.array([[0.5, 0.3, 0.2], [0.125, 0.375, 0.5]]))
    return Network(
        ("Age", "Smoker"), ((), (0,)), (("young", "old"), ("no", "former", "yes")), tables
    )


def test_the_table_and_the_states_of_a_vertex(visit):
    page = visit(Report(fitted_network(), marginals=((0.3, 0.7), (0.2, 0.35, 0.45))))
    page.locator(".node", has_text="Smoker").click()
    states = page.locator("#panel .states li").all_inner_texts()
    assert [text.split() for text in states] == [
        ["no", "20.0", "%"],
        ["former", "35.0", "%"],
        ["yes", "45.0", "%"],
    ]
    assert page.locator("#panel .cpt th").all_inner_texts() == ["Age", "no", "former", "yes"]
    assert rows(page, "#panel .cpt") == [
        ["young", "0.500", "0.300", "0.200"],
        ["old", "0.125", "0.375", "0.500"],
    ]


def test_the_weights_of_a_continuous_vertex(visit):
    linears = Linear(6.0, (), 1.5), Linear(4.0, (), 0.5), Linear(2.0, (-0.123456, 2.5), 4.0)
    wheat = Network(("sun", "rain", "height"), ((), (), (0, 1)), ((),) * 3, linears)
    page = visit(Report(wheat, marginals=((), (), ())))
    page.locator(".node", has_text="height").click()
    assert rows(page, "#panel .cpt") == [
        ["intercept", "2"],
        ["sun", "−0.1235"],
        ["rain", "+2.5"],
        ["standard deviation", "4"],
    ]
    parents = page.locator("#panel .parents li").all_inner_texts()
    assert sorted(text.split() for text in parents) == [["rain", "+2.5"], ["sun", "−0.1235"]]
    assert page.locator("#panel .states").count() == 0
    page.locator(".node", has_text="sun").click()
    assert page.locator("#panel .children li").inner_text().split() == ["height", "−0.1235"]
    assert rows(page, "#panel .cpt") == [["intercept", "6"], ["standard deviation", "1.5"]]


def saved(page, button):
    with page.page.expect_download() as download:
        page.click(button)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_saving(visit, tmp_path):
    network = fitted_network()
    page = visit(Report(network, "my data.csv: 2 variables", strengths={(0, 1): 2.5}))
    name, text = saved(page, "#save-bif")
    assert name == "my_data.bif"
    (tmp_path / name).write_bytes(text)
    again = read_network(tmp_path / name)
    assert again.parents == network.parents and all(
        map(np.array_equal, again.tables, network.tables)
    )
    assert saved(page, "#save-csv") == (
        "my_data-edges.csv",
        b"parent,child,reversible,strength,confidence\nAge,Smoker,yes,2.5,\n",
    )
    name, picture = saved(page, "#save-svg")
    root = ElementTree.fromstring(picture)
    assert name == "my_data.svg" and [
        text.text for text in root.iter("{http://www.w3.org/2000/svg}text")
    ] == [
        "Age",
        "Smoker",
    ]
    name, pixels = saved(page, "#save-png")
    assert name == "my_data.png" and pixels.startswith(b"\x89PNG")
    assert struct.unpack(">II", pixels[16:24]) == tuple(
        2 * int(root.get(side)) for side in ("width", "height")
    )
    assert not visit(Report(SMALL)).locator("#save-bif").is_visible()


def test_the_map_appears_when_a_part_is_out_of_sight(visit):
    page = visit(full_report(random_network(37, 50, 4)))
    assert not page.locator("#map").is_visible()
    page.click("#zoom-in")
    page.click("#zoom-in")
    assert page.locator("#map").is_visible()
    _, x, y = page.transform()
    page.locator("#map").click(position={"x": 8, "y": 8})
    assert page.transform()[1:] != pytest.approx((x, y), abs=1)
    page.click("#fit")
    assert not page.locator("#map").is_visible()


def test_the_curve_of_the_score_is_zoomed(visit):
    page = visit(full_report(SMALL))
    assert "Only scores above" in page.locator("#trace-caption").inner_text()
    page.click("#whole-trace")
    assert "Only scores above" not in page.locator("#trace-caption").inner_text()
    assert page.get_attribute("#whole-trace", "aria-pressed") == "true"


def test_labels_fit_into_their_boxes(visit):
    page = visit(
        full_report(
            Network((*TRICKY, "WWWWWWWWWWWWWWWWWWWWWWWWWW", "MMMM"), ((),) * (len(TRICKY) + 2))
        )
    )
    rooms = page.locator(".node").evaluate_all(
        "found => found.map(n => n.firstChild.width.baseVal.value - n.lastChild.getComputedTextLength())"
    )
    assert len(rooms) == len(TRICKY) + 2 and min(rooms) > 4


def test_searching_highlights_and_centres(visit):
    page = visit(full_report(SMALL))
    page.fill("#search", "blood pr")
    assert page.classes("Blood pressure") == {"node", "selected"}
    assert page.marked("parent") == ["Exercise", "Smoker"] and page.marked("child") == ["Stroke"]
    assert page.locator(".edge.in").count() == 2 and page.locator(".edge.out").count() == 1
    [stage], [vertex] = page.rectangles("#picture"), page.rectangles(".node.selected rect")
    for k in (0, 2):
        assert sum(vertex[k : k + 2]) / 2 == pytest.approx(sum(stage[k : k + 2]) / 2, abs=2)
    panel = page.locator("#panel").inner_text()
    assert all(
        text in panel
        for text in ("Blood pressure", "PARENTS (2)", "CHILDREN (1)", "Exercise", "Stroke")
    )
    page.fill("#search", "o")
    assert page.marked("match") == ["Alone", "Blood pressure", "Cholesterol", "Smoker", "Stroke"]
    assert page.locator("#found").inner_text() == "5 matches"
    page.fill("#search", "nothing of the kind")
    assert page.locator("#found").inner_text() == "no match" and page.marked("match") == []


def test_searching_by_keyboard(visit):
    page = visit(full_report(SMALL))
    page.focus("#search")
    page.keyboard.type("s")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#matches [aria-selected=true]").inner_text() == "Smoker"
    page.keyboard.press("Enter")
    assert page.marked("selected") == ["Smoker"] and not page.locator("#matches").is_visible()
    page.keyboard.press("Escape")
    assert page.marked("selected") == [] and page.input_value("#search") == ""


def test_clicking_a_vertex_opens_its_panel(visit):
    page = visit(full_report(SMALL))
    page.locator(".node", has_text="Cholesterol").click()
    assert page.locator("#panel .name").inner_text() == "Cholesterol"
    page.locator("#panel button.link", has_text="Exercise").click()
    assert page.marked("selected") == ["Exercise"]
    page.locator("#panel button", has_text="Back to the whole network").click()
    assert (
        page.marked("selected") == [] and "STRONGEST EDGES" in page.locator("#panel").inner_text()
    )


def test_moving_and_zooming(visit):
    page = visit(full_report(SMALL))
    start = page.transform()
    [(left, right, top, bottom)] = page.rectangles("#picture")
    corner = left + 15, top + 55
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0] + 60, corner[1] - 40, steps=4)
    page.mouse.up()
    dragged = page.transform()
    assert dragged == pytest.approx((start[0], start[1] + 60, start[2] - 40), abs=0.1)
    page.mouse.move((left + right) / 2, (top + bottom) / 2)
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "scale => !document.getElementById('view').outerHTML.includes(scale)",
        arg=f"({start[0]:.5f})",
    )
    assert page.transform()[0] > start[0]
    before = page.transform()[0]
    page.click("#zoom-in")
    assert page.transform()[0] == pytest.approx(1.4 * before, rel=1e-3)
    page.click("#zoom-out")
    page.click("#zoom-out")
    assert page.transform()[0] == pytest.approx(before / 1.4, rel=1e-3)
    page.click("#fit")
    assert page.transform() == pytest.approx(start, abs=0.01)


def test_moving_by_keyboard(visit):
    page = visit(full_report(SMALL))
    scale, x, y = page.transform()
    page.focus("#picture")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert page.transform() == pytest.approx((scale, x + 70, y - 70), abs=0.1)
    page.keyboard.press("+")
    assert page.transform()[0] > scale
    page.keyboard.press("0")
    assert page.transform() == pytest.approx((scale, x, y), abs=0.01)


def test_pinching_zooms(visit):
    page = visit(full_report(SMALL), viewport={"width": 390, "height": 844}, has_touch=True)
    page.locator("#picture").scroll_into_view_if_needed()
    [(left, right, top, bottom)] = page.rectangles("#picture")
    x, y, before = (left + right) / 2, (top + bottom) / 2, page.transform()[0]
    touch = page.context.new_cdp_session(page.page)
    for kind, distance in (
        ("touchStart", 40),
        ("touchMove", 55),
        ("touchMove", 80),
        ("touchEnd", 0),
    ):
        points = (
            []
            if kind == "touchEnd"
            else [{"x": x - distance, "y": y, "id": 0}, {"x": x + distance, "y": y, "id": 1}]
        )
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert page.transform()[0] == pytest.approx(2 * before, rel=0.1)


def test_hovering_tells_the_numbers_of_an_edge(visit):
    report = full_report(SMALL)
    page = visit(report)
    spot = page.locator("#view .edge .hit").first.evaluate(
        "p => DOMPoint.fromPoint(p.getPointAtLength(p.getTotalLength() / 2)).matrixTransform(p.getScreenCTM()).toJSON()"
    )
    page.mouse.move(spot["x"], spot["y"])
    tip = page.locator("#tip").inner_text()
    parent, child = next(iter(report.strengths))
    assert f"{SMALL.names[parent]} → {SMALL.names[child]}" in tip
    assert f"{report.strengths[parent, child]:,.2f} of score lost without it" in tip


def test_tables_sort_and_filter(visit):
    page = visit(full_report(SMALL))
    first = page.locator("#vertices tbody tr td:first-child")
    page.locator("#vertices th button", has_text="Vertex").click()
    assert first.all_inner_texts() == sorted(SMALL.names)
    page.locator("#vertices th button", has_text="Vertex").click()
    assert first.all_inner_texts() == sorted(SMALL.names, reverse=True)
    page.locator("#vertices th button", has_text="Gain").click()
    gains = [
        float(text.replace(",", ""))
        for text in page.locator("#vertices tbody tr td:nth-child(4)").all_inner_texts()
    ]
    assert gains == sorted(gains, reverse=True)
    assert page.locator("#vertices th[aria-sort=descending]").inner_text().startswith("Gain")
    page.fill("#vertices input", "chol")
    assert sorted(first.all_inner_texts()) == ["Cholesterol", "Stroke"]
    page.locator("#vertices tbody tr td:first-child button", has_text="Stroke").click()
    assert page.marked("selected") == ["Stroke"]


def rows(page, selector):
    return [
        row.locator("td").all_inner_texts() for row in page.locator(f"{selector} tbody tr").all()
    ]


def test_the_consensus_stands_beside_the_network(visit):
    found = Consensus(40, {(0, 2): 0.525, (6, 5): 0.9, (0, 7): 0.75, (4, 6): 1.0})
    page = visit(Report(SMALL, consensus=found))
    assert page.locator("#consensus h2").inner_text() == "Consensus of 40 resamplings"
    assert rows(page, "#consensus") == [
        ["Blood pressure", "Stroke", "100.0 %", "yes"],
        ["Stroke", "Cholesterol", "90.0 %", "in the other direction"],
        ["Age", "Alone", "75.0 %", "no"],
        ["Age", "Smoker", "52.5 %", "yes"],
    ]
    assert (
        "has 2 of them, 1 in the other direction, and lacks 1."
        in page.locator("#consensus .hint").inner_text()
    )
    page.locator("#consensus th button", has_text="In the learned network").click()
    assert [row[3] for row in rows(page, "#consensus")] == [
        "in the other direction",
        "no",
        "yes",
        "yes",
    ]
    page.fill("#consensus input", "chol")
    assert page.locator("#consensus tbody tr").count() == 1
    page.locator("#consensus button.link", has_text="Cholesterol").click()
    assert page.marked("selected") == ["Cholesterol"]


def test_a_consensus_without_edges(visit):
    page = visit(Report(SMALL, consensus=Consensus(1, {})))
    assert page.locator("#consensus h2").inner_text() == "Consensus of 1 resampling"
    assert page.locator("#consensus [role=status]").inner_text() == "0 edges"


def test_a_long_consensus_scrolls(visit):
    network = random_network(60, 90, 2)
    certain = {(parent, child): 1.0 for child, its in enumerate(network.parents) for parent in its}
    page = visit(Report(network, consensus=Consensus(9, certain)))
    assert page.locator("#consensus tbody tr").count() == 90
    [(_, _, top, bottom)] = page.rectangles("#consensus")
    assert bottom - top < 500


def test_hostile_names_are_text(visit):
    names = (*TRICKY, "harmless")
    network = Network(names, ((), (0,), (1,), (), (3,), (4,), (5,), (0,), (0, 1)))
    report = full_report(network, TRICKY[0])
    page = visit(report)
    assert page.locator("h1").text_content() == TRICKY[0] == page.title()
    assert page.locator(".node").count() == len(names)
    assert page.locator("#vertices tbody tr td:first-child").all_text_contents() == list(names)
    told = page.locator("#consensus tbody tr td:first-child").all_text_contents()
    assert sorted(told) == sorted(names[parent] for parent, _ in report.consensus.frequencies)
    assert TRICKY[0] in told
    for name in TRICKY[:3]:
        page.fill("#search", name)
        page.keyboard.press("Enter")
        assert page.locator("#panel .name").text_content() == name
    assert page.locator("img, b.bold, iframe, object").count() == 0
    assert page.locator("script").count() == 2 and page.evaluate("document.scripts[1].type") == ""


def test_the_policy_is_in_force(visit):
    page = visit(Report(SMALL), may_complain=True)
    page.evaluate(
        """async () => {
            window.violations = [];
            document.addEventListener("securitypolicyviolation", e => violations.push(e.effectiveDirective));
            const image = document.createElement("img");
            image.setAttribute("onerror", "window.broken = true");
            image.src = "https://example.invalid/x.png";
            const script = document.createElement("script");
            script.textContent = "window.broken = true";
            const div = document.createElement("div");
            div.innerHTML = '<i onclick="window.broken = true" style="color: red">x</i>';
            document.body.append(image, script, div);
            div.firstChild.click();
            await fetch("https://example.invalid/").catch(() => {});
            await new Promise(done => setTimeout(done, 200));
        }"""
    )
    assert page.evaluate("window.broken") is None
    assert {
        "img-src",
        "script-src-attr",
        "script-src-elem",
        "style-src-attr",
        "connect-src",
    } <= set(page.evaluate("violations"))


def test_themes(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (visit(Report(SMALL), color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(ground) != dark.evaluate(ground)
    light.click("#theme")
    assert light.evaluate(ground) == dark.evaluate(ground)
    assert light.locator("#theme").inner_text() == "Light"


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_sticks_out(visit, width):
    page = visit(
        full_report(random_network(40, 55, 1, names=None)), viewport={"width": width, "height": 800}
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)]
)
def test_pictures_for_people(visit, screenshots, scheme, width):
    report = full_report(random_network(37, 50, 4), "Shipped sample, 1,000 rows")
    page = visit(report, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.screenshot(path=screenshots / f"report-{scheme}-{width}.png", full_page=True)
    page.fill("#search", "variable_21")
    page.locator("#network").screenshot(path=screenshots / f"vertex-{scheme}-{width}.png")
    assert all(path.stat().st_size > 10_000 for path in screenshots.glob("*.png"))


def test_223_vertices_open_at_once(visit, screenshots, tmp_path, capsys):
    network = random_network(223, 400, 0)
    page = visit(full_report(network, "223 vertices"))
    size = (tmp_path / "report0.html").stat().st_size
    with capsys.disabled():
        print(f"\nreport of 223 vertices: {size / 1e6:.2f} MB, ready after {page.seconds:.2f} s")
    assert size <= 3_000_000
    assert page.locator(".node").count() == 223 and page.locator("#view .edge").count() == 400
    assert apart(page.rectangles(".node rect"))
    # From afar labels give way, but every edge is still a visible line.
    scale = page.transform()[0]
    widths = page.locator("#view .edge .line").evaluate_all(
        "found => found.map(e => parseFloat(getComputedStyle(e).strokeWidth))"
    )
    assert (
        scale < 0.3
        and not page.locator(".node text").first.is_visible()
        and min(widths) * scale > 0.7
    )
    # The names of some vertices are as large as near, and cover no other.
    assert page.locator(".landmark").count() >= 20 and apart(page.rectangles(".landmark rect"))
    page.screenshot(path=screenshots / "report-223.png", full_page=True)


def test_edges_in_doubt_among_close_networks(visit):
    page = visit(
        Report(
            SMALL, close=CloseNetworks(12, "12 networks. Certified.", {(0, 3): 0.75, (6, 4): 0.25})
        )
    )
    assert (
        page.locator("#close h2").inner_text()
        == "Edges in doubt among 12 networks close to the best"
    )
    assert [row[3] for row in rows(page, "#close")] == ["yes", "in the other direction"]
    assert page.locator("#close .hint").inner_text() == "12 networks. Certified."
    assert visit(Report(SMALL)).locator("#close").is_hidden()


def test_edges_by_posterior_probability(visit, screenshots):
    edges = {(0, 3): EdgeShares(0.75, 0.01, 0.9, 0.6), (6, 4): EdgeShares(0.25, 0.02, 0.3)}
    page = visit(Report(SMALL, posterior=EdgePosterior("Uniform prior.", edges)))
    found = rows(page, "#posterior")
    assert [row[2:] for row in found] == [
        ["75.0 %", "1.0 %", "90.0 %", "60.0 %", "yes"],
        ["25.0 %", "2.0 %", "30.0 %", "", "in the other direction"],
    ]
    assert page.locator("#posterior .hint").inner_text() == "Uniform prior."
    cells = page.locator("#posterior .cell")
    assert cells.count() == 2 and cells.first.get_attribute("fill-opacity") == "0.75"
    page.screenshot(path=screenshots / "report-posterior.png", full_page=True)
    assert visit(Report(SMALL)).locator("#posterior").is_hidden()
