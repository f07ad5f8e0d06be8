"""The HTML page as text: well formed, self-contained, escaped, under its size."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib import resources

import ledgers
import msgspec
import pytest

from goodput.core.notes import Note
from goodput.report import compare_html, from_json, render_html
from goodput.report.html.embed import candidates, compact_json
from goodput.report.html.markup import Markup, element
from goodput.report.html.shell import script_safe
from goodput.report.html.waterfall import color_of, waterfall_table
from goodput.training.measure.ledger.types import Band, Ledger, Track

LIMIT = 1_500_000
VOID = {"meta", "br", "hr", "input", "col"}
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'&\u2028"
NAMES = sorted(ledgers.ALL)


class Reader(HTMLParser):
    """Elements, ids and script texts of a page; asserts that every element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)

    def data(self, name: str = "goodput-data") -> str:
        return next(text for attributes, text in self.scripts if attributes.get("id") == name)


def hostile() -> Ledger:
    ledger = ledgers.demo()
    incident = msgspec.structs.replace(ledger.incidents[0], cause=HOSTILE, evidence=HOSTILE)
    return msgspec.structs.replace(
        ledger,
        job=HOSTILE,
        incidents=(incident,),
        notes=(Note("error", HOSTILE, HOSTILE),),
        sources=(HOSTILE,),
        timeline=(Track(HOSTILE, (Band(ledgers.START, ledgers.START + 9, HOSTILE, HOSTILE),)),),
    )


def enormous() -> Ledger:
    """Far more of everything than a page can hold."""
    ledger = ledgers.llama(rank_tracks=64)
    return msgspec.structs.replace(
        ledger,
        ranks=ledger.ranks * 256,
        incidents=ledger.incidents * 20,
        attempts=ledger.attempts * 20,
        notes=ledger.notes * 3000,
        sources=tuple(f"events-{number:05d}.jsonl" for number in range(16_384)),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_well_formed_and_holds_the_ledger(name: str) -> None:
    ledger = ledgers.ALL[name]()
    page = render_html(ledger)
    assert page.startswith("<!doctype html>\n")
    assert len(page.encode()) < LIMIT
    reader = Reader(page)
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    if name != "llama":
        assert from_json(reader.data()) == ledger
    labels = {
        attributes["aria-labelledby"]
        for _, attributes in reader.elements
        if "aria-labelledby" in attributes
    }
    assert labels <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_load_nothing(name: str) -> None:
    reader = Reader(render_html(ledgers.ALL[name]()))
    for tag, attributes in reader.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not any(key.startswith("on") for key in attributes)
    style = resources.files("goodput.report") / "assets" / "style.css"
    assert not re.search(r"@import|url\(", style.read_text(encoding="utf-8"))


def test_only_our_scripts_may_run() -> None:
    reader = Reader(render_html(ledgers.demo()))
    policy = next(
        attributes["content"] or ""
        for _, attributes in reader.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    code = [text for attributes, text in reader.scripts if "type" not in attributes]
    assert len(code) == 2
    for text in code:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]


def test_text_from_logs_stays_text() -> None:
    page = render_html(hostile())
    reader = Reader(page)
    assert len(reader.scripts) == 3
    assert from_json(reader.data()) == hostile()
    assert "<img" not in page
    runs = compare_html([hostile(), hostile()], [HOSTILE, HOSTILE])
    assert len(Reader(runs).scripts) == 4
    assert "<img" not in runs


def test_json_in_a_script_cannot_end_it_and_means_the_same() -> None:
    text = script_safe(msgspec.json.encode({"a": HOSTILE, "b<": "<!--"}))
    assert "<" not in text
    assert "\u2028" not in text
    assert msgspec.json.decode(text) == {"a": HOSTILE, "b<": "<!--"}


def test_a_large_job_keeps_what_tells_most() -> None:
    ledger = ledgers.llama(rank_tracks=64)
    page = render_html(ledger)
    assert len(page.encode()) < LIMIT
    shown = from_json(Reader(page).data())
    assert len(shown.incidents) == 466
    assert len(shown.timeline[0].bands) == len(ledger.timeline[0].bands)
    assert shown.waterfall == ledger.waterfall
    assert any(re.search(r"leaves out \d+ tracks", note.text) for note in shown.notes)


def test_no_job_is_too_large() -> None:
    page = render_html(enormous())
    assert len(page.encode()) < LIMIT
    shown = from_json(Reader(page).data())
    assert shown.waterfall == enormous().waterfall
    for what in ("tracks", "ranks", "attempts", "incidents", "notes", "source files"):
        assert any(f" {what}" in note.text for note in shown.notes), what
    assert "9,320 incidents" in page


def test_a_ledger_that_fits_is_embedded_whole() -> None:
    ledger = ledgers.healthy()
    shown, text = next(candidates(ledger))
    assert shown is ledger
    assert from_json(text) == ledger


def test_candidates_get_smaller_and_there_is_always_one() -> None:
    sizes = [len(text) for _, text in candidates(ledgers.llama(rank_tracks=8))]
    assert len(sizes) > 3
    assert sizes == sorted(sizes, reverse=True)
    assert len(list(candidates(ledgers.llama(), budget_bytes=10))) == 1


def test_leaving_out_defaults_changes_nothing() -> None:
    ledger = hostile()
    quoted = ',"provenance":"recorded","evidence":"","parts":[]}'
    ledger = msgspec.structs.replace(ledger, job=quoted, sources=(quoted, ',"detail":""}'))
    assert from_json(compact_json(ledger)) == ledger


def test_shortest_bands_go_before_long_ones() -> None:
    ledger = ledgers.llama()
    shown, _ = list(candidates(ledger))[-1]
    assert len(shown.timeline) == 1
    kept = min(band.end_ns - band.start_ns for band in shown.timeline[0].bands)
    gone = set(ledger.timeline[0].bands) - set(shown.timeline[0].bands)
    assert gone
    assert max(band.end_ns - band.start_ns for band in gone) <= kept


def test_long_evidence_is_cut_in_tables_and_whole_in_the_json() -> None:
    ledger = ledgers.demo()
    traceback = "x" * 20_000
    incident = msgspec.structs.replace(ledger.incidents[0], evidence=traceback)
    page = render_html(msgspec.structs.replace(ledger, incidents=(incident,)))
    assert page.count(traceback) == 1
    assert traceback in Reader(page).data()


def test_a_class_that_was_not_measured_shows_no_number() -> None:
    table = waterfall_table(ledgers.unmeasured().waterfall, caption="x")
    row = next(row for row in table.split("<tr") if ">evaluation<" in row)
    assert "not measured" in row
    assert "%" not in row.replace("width:", "")


def test_the_waterfall_bars_carry_their_place() -> None:
    table = waterfall_table(ledgers.demo().waterfall, caption="x")
    useful = next(row for row in table.split("<tr") if ">useful<" in row)
    assert "left:0.000%;width:56.551%" in useful


def test_refused_mfu_shows_its_reason() -> None:
    assert "MFU would be 133 %: check the FLOPs" in render_html(ledgers.unmeasured())


def test_class_names_are_safe_in_styles() -> None:
    assert color_of("x);background:url(y") == "var(--c-x-background-url-y, var(--f-0))"
    assert color_of("\u8bad", place=7) == "var(--c-other, var(--f-2))"


def test_markup_escapes_text_and_attributes() -> None:
    made = element("p", "<b>", Markup("<i></i>"), ["a", "&"], title='"<', hidden=True, id=None)
    assert made == '<p title="&quot;&lt;" hidden>&lt;b&gt;<i></i>a&amp;</p>'


def test_the_chart_library_keeps_its_licence() -> None:
    folder = resources.files("goodput.report") / "assets" / "uplot"
    licence = (folder / "LICENSE").read_text(encoding="utf-8")
    code = (folder / "uPlot.iife.min.js").read_text(encoding="utf-8")
    assert "MIT License" in licence
    assert "Leon Sorokin" in licence
    assert "v1.6.32" in code[:80]


def test_a_comparison_page_holds_the_comparison() -> None:
    page = compare_html([ledgers.demo(), ledgers.llama()], ["old", "new"])
    reader = Reader(page)
    found = msgspec.json.decode(reader.data())
    assert [run["name"] for run in found["runs"]] == ["old", "new"]
    assert len(msgspec.json.decode(reader.data("goodput-curves"))) == 2
    assert len(page.encode()) < LIMIT
