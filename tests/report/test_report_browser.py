"""The HTML pages in a real browser: no error, no request, charts drawn, zoom, copy, themes, phone.

Needs Debian's chromium and the Python package playwright; skips with the reason otherwise.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ledgers
import msgspec
import pytest

from goodput.report import compare_html, from_json, render_html
from goodput.training.measure.ledger.types import Band, Ledger, Series, Track

pytestmark = pytest.mark.browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(CHROMIUM)} is on PATH")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("the Python package playwright is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


class Page:
    """A report opened from a file, with all that the browser complained about or asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        self.context = browser.new_context(**options)
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.address = path.as_uri()
        self.tab.goto(self.address)
        self.until("document.documentElement.dataset.charts !== undefined")

    def run(self, script: str) -> Any:
        return self.tab.evaluate(script)

    def until(self, script: str) -> None:
        """Wait for a script to be true; the own wait of playwright needs eval, which we forbid."""
        for _ in range(250):
            if self.run(script):
                return
            self.tab.wait_for_timeout(20)
        raise AssertionError(f"not within 5 s: {script}")

    def span(self) -> tuple[float, float]:
        first, last = self.run("[report.clock.from, report.clock.to]")
        return first, last

    def colors(self, chart: str) -> int:
        """Number of different colours in the canvas of a chart."""
        return int(
            self.run(
                f"""(() => {{
                  const canvas = document.querySelector('#c-{chart} canvas');
                  const {{ data }} = canvas.getContext('2d')
                    .getImageData(0, 0, canvas.width, canvas.height);
                  return new Set(new Uint32Array(data.buffer)).size;
                }})()"""
            )
        )

    def close(self) -> None:
        assert self.said == []
        assert self.requests == [self.address]
        self.context.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Page] = []

    def show(html: str, **options: Any) -> Page:
        path = tmp_path / f"report-{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        pages.append(Page(browser, path, **options))
        return pages[-1]

    yield show
    for page in pages:
        page.close()


@pytest.mark.parametrize(
    ("name", "charts"),
    [("demo", 3), ("healthy", 3), ("llama", 3), ("unmeasured", 3), ("empty", 2), ("nothing", 0)],
)
def test_charts_are_drawn_without_a_word_or_a_request(opened: Any, name: str, charts: int) -> None:
    page = opened(render_html(ledgers.ALL[name]()))
    assert page.run("Number(document.documentElement.dataset.charts)") == charts
    assert page.run("document.querySelectorAll('canvas').length") == charts
    drawn = ("timeline", "goodput", "steptime")[:charts]
    assert all(page.colors(chart) > 5 for chart in drawn)


def middle(page: Page, chart: str) -> tuple[float, float]:
    page.run(f"document.getElementById('c-{chart}').scrollIntoView({{block: 'center'}})")
    box = page.tab.locator(f"#c-{chart} .u-over").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_zoom_by_buttons(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    first, last = page.span()
    page.tab.click("#b-zoom-in")
    near, far = page.span()
    assert far - near == pytest.approx((last - first) / 2)
    page.tab.click("#b-pan-right")
    assert page.span()[0] == pytest.approx(near + (far - near) / 2)
    page.tab.click("#b-zoom-out")
    page.tab.click("#b-zoom-reset")
    assert page.span() == (first, last)
    assert "whole run" in page.tab.inner_text("#span")


@pytest.mark.parametrize("chart", ["timeline", "goodput", "steptime"])
def test_zoom_by_wheel_keeps_the_time_under_the_pointer(opened: Any, chart: str) -> None:
    page = opened(render_html(ledgers.demo()))
    first, last = page.span()
    x, y = middle(page, chart)
    page.tab.mouse.move(x, y)
    page.tab.keyboard.down("Control")
    page.tab.mouse.wheel(0, -300)
    page.tab.keyboard.up("Control")
    page.until(f"report.clock.to - report.clock.from < {(last - first) * 0.9}")
    near, far = page.span()
    assert (near + far) / 2 == pytest.approx((first + last) / 2, abs=(last - first) * 0.01)


def test_a_plain_wheel_scrolls_until_the_chart_is_clicked(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    whole = page.span()
    x, y = middle(page, "timeline")
    page.tab.mouse.move(x, y)
    before = page.run("scrollY")
    page.tab.mouse.wheel(0, 60)
    page.until(f"scrollY > {before}")
    assert page.span() == whole
    x, y = middle(page, "timeline")
    page.tab.mouse.click(x, y)
    page.tab.mouse.wheel(0, -300)
    page.until(f"report.clock.from > {whole[0]}")


def test_zoom_by_drag_and_reset_by_double_click(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    first, last = page.span()
    x, y = middle(page, "goodput")
    page.tab.mouse.move(x - 100, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x, y, steps=4)
    page.tab.mouse.move(x + 100, y, steps=4)
    page.tab.mouse.up()
    near, far = page.span()
    width = page.tab.locator("#c-goodput .u-over").bounding_box()["width"]
    assert far - near == pytest.approx((last - first) * 200 / width, rel=0.02)
    scales = page.run(
        "report.clock.charts.map((one) => [one.plot.scales.x.min, one.plot.scales.x.max])"
    )
    assert scales == [[near, far]] * 3
    page.tab.mouse.dblclick(x, y)
    assert page.span() == (first, last)


def test_zoom_by_keys(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    first, last = page.span()
    page.tab.focus("#c-timeline")
    page.tab.keyboard.press("+")
    near, _ = page.span()
    assert near > first
    page.tab.keyboard.press("ArrowRight")
    assert page.span()[0] > near
    page.tab.keyboard.press("End")
    assert page.span()[1] == last
    page.tab.keyboard.press("0")
    assert page.span() == (first, last)


def test_zoom_ends_at_a_millisecond(opened: Any) -> None:
    page = opened(render_html(ledgers.llama()))
    page.tab.focus("#c-timeline")
    for _ in range(40):
        page.tab.keyboard.press("+")
    near, far = page.span()
    assert far - near == pytest.approx(1e-3, rel=0.01)
    assert page.colors("timeline") > 1


PINCH = """([x, y, gap, wider]) => {
  const frame = document.getElementById("c-timeline");
  const send = (type, id, at) => frame.dispatchEvent(new PointerEvent(type, {
    pointerType: "touch", pointerId: id, clientX: at, clientY: y, bubbles: true,
  }));
  send("pointerdown", 1, x - gap);
  send("pointerdown", 2, x + gap);
  send("pointermove", 1, x - wider);
  send("pointermove", 2, x + wider);
  send("pointerup", 1, x - wider);
  send("pointerup", 2, x + wider);
}"""


def test_two_fingers_zoom_and_one_pans(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    first, last = page.span()
    x, y = middle(page, "timeline")
    page.tab.evaluate(PINCH, [x, y, 50, 100])
    near, far = page.span()
    assert far - near == pytest.approx((last - first) / 2, rel=0.01)
    assert (near + far) / 2 == pytest.approx((first + last) / 2, abs=1)
    page.tab.evaluate(PINCH.replace('send("pointerdown", 2, x + gap);', ""), [x, y, 50, 100])
    assert page.span()[0] > near
    assert page.span()[1] - page.span()[0] == pytest.approx(far - near)


def test_an_incident_shows_itself_on_the_timeline(opened: Any) -> None:
    ledger = ledgers.demo()
    page = opened(render_html(ledger))
    page.tab.click("#t-incidents tbody tr:nth-child(2)")
    near, far = page.span()
    assert near < ledger.incidents[1].at_ns / 1e9 < far
    assert far - near < 120


def test_tooltips_say_what_is_under_the_pointer(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()))
    for chart, words in (
        ("timeline", "after the start"),
        ("goodput", "rolling goodput"),
        ("steptime", "median"),
    ):
        x, y = middle(page, chart)
        page.tab.mouse.move(x - 30, y)
        page.tab.mouse.move(x - 25, y)
        tip = page.tab.locator(f".chart.{chart} .tip")
        assert tip.is_visible()
        assert words in tip.inner_text()


def test_copy_gives_json_of_the_same_ledger(opened: Any) -> None:
    ledger = ledgers.unmeasured()
    page = opened(render_html(ledger), permissions=["clipboard-read", "clipboard-write"])
    page.tab.click("#b-copy")
    page.until("document.getElementById('said').textContent.startsWith('Copied')")
    assert from_json(page.run("navigator.clipboard.readText()")) == ledger


def test_download_gives_json_of_the_same_ledger(opened: Any, tmp_path: Path) -> None:
    page = opened(render_html(ledgers.demo()))
    with page.tab.expect_download() as waiting:
        page.tab.click("#b-download")
    target = tmp_path / "ledger.json"
    waiting.value.save_as(target)
    assert from_json(target.read_bytes()) == ledgers.demo()
    page.requests = [url for url in page.requests if not url.startswith("blob:")]


def test_tables_sort_by_value_and_say_so(opened: Any) -> None:
    page = opened(render_html(ledgers.llama()))
    head = "#t-incidents thead th:nth-child(10)"
    cell = "#t-incidents tbody tr:first-child td:nth-child(10)"
    costs = [one.cost_chip_ns for one in ledgers.llama().incidents]
    page.tab.click(f"{head} button")
    assert page.tab.get_attribute(head, "aria-sort") == "descending"
    assert page.tab.get_attribute(cell, "data-sort") == str(max(costs))
    page.tab.focus(f"{head} button")
    page.tab.keyboard.press("Enter")
    assert page.tab.get_attribute(head, "aria-sort") == "ascending"
    assert page.tab.get_attribute(cell, "data-sort") == str(min(costs))


def test_charts_have_their_numbers_as_a_table(opened: Any) -> None:
    page = opened(render_html(ledgers.llama()))
    for chart in ("timeline", "goodput", "steptime"):
        assert page.tab.get_attribute(f"#c-{chart}", "aria-label")
        page.tab.click(f".chart.{chart} summary")
        rows = page.tab.locator(f".chart.{chart} details tbody tr").count()
        assert 100 < rows <= 400


CONTRAST = """(names) => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(report.ink("paper"));
  return names.map((name) => {
    const ink = light(report.ink(name));
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  });
}"""
TEXT_COLORS = ["ink", "soft", "accent", "good", "warn", "bad"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_themes(opened: Any, scheme: str) -> None:
    page = opened(render_html(ledgers.demo()), color_scheme=scheme)
    ratios = page.tab.evaluate(CONTRAST, TEXT_COLORS)
    assert min(ratios) >= 4.5, dict(zip(TEXT_COLORS, ratios, strict=True))


def test_the_theme_button_wins_over_the_system(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()), color_scheme="light")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    system, ink = page.run(paper), page.run("report.ink('ink')")
    page.tab.click("#b-theme")
    assert page.tab.inner_text("#b-theme") == "Theme: light"
    page.tab.click("#b-theme")
    assert page.tab.inner_text("#b-theme") == "Theme: dark"
    assert page.run(paper) != system
    assert page.run("report.ink('ink')") != ink
    page.tab.click("#b-theme")
    assert page.run(paper) == system


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out_of_a_small_screen(opened: Any, width: int) -> None:
    runs = [ledgers.demo(), ledgers.unmeasured(), ledgers.llama()]
    for html in (*map(render_html, runs), compare_html(runs)):
        page = opened(html, viewport={"width": width, "height": 800})
        assert page.run("document.documentElement.scrollWidth") <= width


def test_print_leaves_the_controls_out(opened: Any) -> None:
    page = opened(render_html(ledgers.demo()), color_scheme="dark")
    page.tab.emulate_media(media="print")
    assert not page.tab.is_visible("#b-copy")
    assert not page.tab.is_visible(".zoom")
    assert page.tab.is_visible(".waterfall")
    assert page.run("getComputedStyle(document.documentElement).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


def test_text_from_logs_does_not_run(opened: Any) -> None:
    evil = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    ledger = ledgers.demo()
    track = Track(evil, (Band(ledger.started_at_ns, ledger.ended_at_ns, evil, evil),))
    page = opened(render_html(msgspec.structs.replace(ledger, job=evil, timeline=(track,))))
    x, y = middle(page, "timeline")
    page.tab.mouse.move(x, y)
    page.tab.mouse.move(x + 3, y)
    assert page.run("window.pwned") is None
    assert evil in page.tab.inner_text("h1")


def dense() -> Ledger:
    """As many bands and windows as a page holds: 64 ranks, 6,000 bands, 2,000 windows."""
    ledger = ledgers.healthy()
    start = ledger.started_at_ns
    step = (ledger.ended_at_ns - start) // 94
    bands = tuple(
        Band(start + i * step, start + (i + 1) * step, ("steps", "data", "rework")[i % 3])
        for i in range(94)
    )
    windows = 2000
    series = Series(
        starts_ns=tuple(start + i * step for i in range(windows)),
        width_ns=step,
        capacity=(100,) * windows,
        classes={"useful": (70,) * windows, "data": (20,) * windows, "slow": (10,) * windows},
    )
    tracks = tuple(Track(f"rank {rank}", bands) for rank in range(64))
    return msgspec.structs.replace(ledger, timeline=tracks, series=series)


def test_zoom_stays_fluid_with_all_that_a_page_can_hold(opened: Any) -> None:
    page = opened(render_html(dense()))
    assert page.run("report.data.timeline.length") == 64
    took = page.run(
        """(async () => {
          const took = [];
          for (let i = 0; i < 15; i += 1) {
            const began = performance.now();
            report.clock.zoom(i % 2 ? 2 : 0.5);
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            took.push(performance.now() - began);
          }
          return took.sort((a, b) => a - b);
        })()"""
    )
    median_ms = took[len(took) // 2]
    print(f"zoom: median {median_ms:.0f} ms, longest {took[-1]:.0f} ms")  # noqa: T201 - measured
    # A tenth of a second is felt as at once; the margin is for a shared machine.
    assert median_ms < 250


def test_a_comparison_is_drawn_and_copied(opened: Any) -> None:
    page = opened(
        compare_html([ledgers.demo(), ledgers.healthy(), ledgers.empty()]),
        permissions=["clipboard-read", "clipboard-write"],
    )
    assert page.run("Number(document.documentElement.dataset.charts)") == 2
    assert page.colors("goodput") > 5
    page.tab.click("#b-copy")
    page.until("document.getElementById('said').textContent.startsWith('Copied')")
    found = msgspec.json.decode(page.run("navigator.clipboard.readText()"))
    assert found["schema"] == "goodput.training-comparison/1.0"
    x, y = middle(page, "goodput")
    page.tab.mouse.move(x, y)
    page.tab.mouse.move(x + 4, y)
    assert "demo" in page.tab.inner_text(".chart.goodput .tip")
