"""The page of a report in headless Chromium: what only a browser can tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perflint.findings import Ruling
from perflint.output.compare.comparison import compare
from perflint.output.compare.page import comparison_page
from perflint.output.report.page import Recorded, report_page
from perflint.output.report.verdicts import Checked
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.browser import Page, browser, executable
from tests.output.test_report import finding
from tests.output.traces import HOSTILE, RECORDS, TRACE, header, poisoned, project

PROGRAM = executable()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium (apt-get install chromium)")

RECORDED = Path(__file__).parents[1] / "tracer" / "data" / "trainer_hooks.jsonl.gz"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "tracing"
SIZES = [(360, 740), (400, 800), (800, 600), (1280, 800)]
LONG = "a_long_name/" * 30


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    assert PROGRAM is not None
    with browser(PROGRAM) as opened:
        if opened is None:
            pytest.skip(f"{PROGRAM} does not start")
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by what is special about them."""
    folder = tmp_path_factory.mktemp("pages")
    checked = Checked(tuple(finding(ruling) for ruling in (*Ruling, None)), (), (), "/project")
    long = finding(Ruling.CONFIRMED, path=f"/{LONG}.py", message=f"`{'x' * 500}` {'y' * 500}", name="z" * 100)
    hostile = Trace(poisoned(TRACE.header), tuple(poisoned(record, frozenset({"kind", "cause"})) for record in RECORDS))
    wide = replace(
        TRACE, header=header(program=(LONG,)), records=tuple(poisoned_with(record, "x" * 300) for record in RECORDS)
    )
    traces: dict[str, tuple[list[Trace], Checked]] = {
        "plain": ([TRACE], checked),
        "empty": ([Trace(header(steps=0))], Checked(())),
        "recorded": ([read_trace(RECORDED)], Checked(())),
        "hostile": ([hostile], Checked((finding(Ruling.REFUTED, message=HOSTILE, path=HOSTILE),))),
        "wide": ([wide], Checked((long,))),
        "straggler": ([read_trace(path) for path in sorted(RECORDED.parent.glob("straggler-host.*"))], Checked(())),
        "ranks": ([replace(TRACE, header=header(rank=rank, world_size=2)) for rank in range(2)], checked),
    }
    root = project(folder)
    for name, (shown, found) in traces.items():
        recorded = [Recorded(f"{number}.jsonl.gz", trace, root) for number, trace in enumerate(shown)]
        (folder / f"{name}.html").write_text(report_page(recorded, "0.1.0", found), encoding="utf-8")
    poison = replace(hostile, header=replace(hostile.header, program=(HOSTILE,)))
    pairs = {
        "compare": (read_trace(EXAMPLES / "slow.jsonl.gz"), read_trace(EXAMPLES / "fast.jsonl.gz"), "a.gz"),
        "compare-hostile": (poison, TRACE, HOSTILE),
        "compare-wide": (wide, TRACE, LONG),
    }
    for name, (before, after, title) in pairs.items():
        html = comparison_page(compare(before, after), (title, "after.gz"), "0.1.0")
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (*traces, *pairs)}


def poisoned_with(record: Any, text: str) -> Any:
    """A record whose names are long."""
    names = ("name", "reason", "settings", "message", "subject", "change")
    return replace(record, **{name: text for name in names if hasattr(record, name)})


NAMES = (
    *("plain", "empty", "recorded", "hostile", "wide", "straggler", "ranks"),
    *("compare", "compare-hostile", "compare-wide"),
)
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_fetched_and_nothing_complained_of(page: Page, files: dict[str, Path], name: str) -> None:
    page.resize(1280, 800)
    page.open(files[name])
    assert page.evaluate("getComputedStyle(document.body).marginTop") == "0px", "the style is not applied"
    assert page.evaluate("document.querySelectorAll('script, iframe, img, object, embed').length") == 0
    assert page.requests() == [] and page.complaints() == []


def test_what_slips_through_would_do_nothing(page: Page, tmp_path: Path, files: dict[str, Path]) -> None:
    """The policy of the page forbids scripts and the network, should text ever become markup."""
    html = files["plain"].read_text(encoding="utf-8")
    harm = "<script>window.harmed = 1</script><img src='https://example.invalid/x' onerror='window.harmed = 1'>"
    (tmp_path / "harmed.html").write_text(html.replace("<footer>", f"{harm}<footer>"), encoding="utf-8")
    page.open(tmp_path / "harmed.html")
    assert page.evaluate("window.harmed") is None
    assert len(page.complaints()) >= 2 and all("Content Security Policy" in text for text in page.complaints())


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_window(
    page: Page, files: dict[str, Path], name: str, width: int, height: int
) -> None:
    page.resize(width, height)
    page.open(files[name])
    for opened in ("", OPEN_ALL):
        page.evaluate(opened or "0")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = """[...document.querySelectorAll('h1, h2, h3, p, dd, li, summary, th, td')].filter(each => {
            const box = each.getBoundingClientRect()
            return box.right > innerWidth + 1 && !each.closest('.scroll')
        }).map(each => each.textContent.slice(0, 80))"""
        assert page.evaluate(cut) == []


def test_text_stays_inside_of_cells(page: Page, files: dict[str, Path]) -> None:
    """Nothing that cannot be scrolled covers its neighbour."""
    page.resize(360, 740)
    for name in ("plain", "wide"):
        page.open(files[name])
        page.evaluate(OPEN_ALL)
        covering = """[...document.querySelectorAll('td, th')].filter(each =>
            each.scrollWidth > each.clientWidth + 1).map(each => each.outerHTML.slice(0, 200))"""
        assert page.evaluate(covering) == []


def names_of(page: Page, *roles: str) -> list[tuple[str, str]]:
    """The roles and names in the tree that screen readers get."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node.get("role", {}).get("value", ""), node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored")
    ]
    return [(role, name) for role, name in found if role in roles]


def test_screen_readers_find_their_way(page: Page, files: dict[str, Path]) -> None:
    page.resize(1280, 800)
    page.open(files["plain"])
    landmarks = [role for role, _ in names_of(page, "banner", "main", "navigation", "contentinfo")]
    assert sorted(landmarks) == ["banner", "contentinfo", "main", "navigation"]
    headings = [name for _, name in names_of(page, "heading")]
    assert {"train.py --epochs 1", "Where a step’s time goes", "Lines that wait"} <= set(headings)
    regions = [name for _, name in names_of(page, "region")]
    assert "Experiments" in regions and all(regions) and len(set(regions)) == len(regions)
    pictures = [name for _, name in names_of(page, "image", "img", "graphics-document", "SvgRoot")]
    assert any("GPU busy 7.00 ms" in name.replace("\u00a0", " ") for name in pictures)
    assert any("idle: after a wait, train.py:11" in name for name in pictures)
    tables = [name for _, name in names_of(page, "table")]
    assert "Lines that wait for the GPU, the most costly first" in tables and all(tables)
    heads = {name for _, name in names_of(page, "columnheader")}
    assert {"Line", "milliseconds per step", "share of the step"} <= heads


def test_what_can_be_focused_has_a_name_and_an_order(page: Page, files: dict[str, Path]) -> None:
    page.resize(1280, 800)
    page.open(files["plain"])
    told = """(() => { const e = document.activeElement
        return [e.tagName, e.getAttribute('aria-label') || e.textContent.trim().slice(0, 40),
                e.getBoundingClientRect().top + scrollY, getComputedStyle(e).outlineStyle] })()"""
    stops = []
    for _ in range(60):
        page.press("Tab")
        stop = page.evaluate(told)
        if stop[0] == "BODY":
            break
        stops.append(stop)
    assert stops[0][:2] == ["A", "Skip to the content"]
    assert {"A", "SUMMARY", "PRE"} <= {tag for tag, *_ in stops}
    assert all(name and outline != "none" for _, name, _, outline in stops)
    tops = [top for _, _, top, _ in stops[1:]]
    assert tops == sorted(tops)


def test_the_keyboard_opens_what_is_folded(page: Page, files: dict[str, Path]) -> None:
    page.open(files["plain"])
    page.evaluate("document.querySelector('details:not([open]) summary').focus()")
    page.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True


def test_touch_finds_what_it_aims_at(page: Page, files: dict[str, Path]) -> None:
    """WCAG 2.2: targets are 24 pixels high, or have that much space."""
    page.resize(360, 740)
    page.open(files["plain"])
    low = """[...document.querySelectorAll('summary, nav a')].filter(each =>
        each.getBoundingClientRect().height < 24).map(each => each.textContent.slice(0, 40))"""
    assert page.evaluate(low) == []


def test_the_navigation_is_one_line(page: Page, files: dict[str, Path]) -> None:
    for width in (800, 1280):
        page.resize(width, 800)
        for name in ("plain", "ranks"):
            page.open(files[name])
            tops = page.evaluate("[...document.querySelectorAll('nav a')].map(e => e.getBoundingClientRect().top)")
            assert len(tops) >= 4 and len(set(tops)) == 1, (name, width)


def test_an_idle_stretch_can_be_clicked(page: Page, files: dict[str, Path]) -> None:
    page.resize(1280, 800)
    page.open(files["plain"])
    clicked = """(() => { const link = document.querySelector('.lanes svg a')
        link.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))
        return document.querySelector(':target').textContent })()"""
    assert "train.py:11" in page.evaluate(clicked)


def luminance(colour: str) -> float:
    red, green, blue = (int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_dark_and_light_follow_the_system(page: Page, files: dict[str, Path]) -> None:
    page.resize(1280, 800)
    grounds = {}
    for scheme in ("light", "dark"):
        page.prefer(prefers_color_scheme=scheme)
        page.open(files["plain"])
        ground, ink, busy = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
            "getComputedStyle(document.querySelector('.lanes .kernel')).fill]"
        )
        grounds[scheme] = luminance(ground)
        assert abs(luminance(ground) - luminance(ink)) > 180 and abs(luminance(ground) - luminance(busy)) > 60
    page.prefer(prefers_color_scheme="light")
    assert grounds["light"] > 240 and grounds["dark"] < 30


def test_nothing_moves(page: Page, files: dict[str, Path]) -> None:
    page.open(files["plain"])
    assert page.evaluate("document.getAnimations().length") == 0


def test_pictures_are_drawn(page: Page, files: dict[str, Path]) -> None:
    """The lanes of the recorded trace are as wide as the page, and their shapes have an extent."""
    page.resize(1280, 800)
    page.open(files["recorded"])
    lanes = page.evaluate(
        "[...document.querySelectorAll('.lanes svg')].map(each => [each.getBoundingClientRect().width,"
        "each.querySelector('path').getBoundingClientRect().height])"
    )
    assert len(lanes) == 3 and all(width > 900 and height > 5 for width, height in lanes)
