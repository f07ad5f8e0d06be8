"""The page around a report: head with a strict policy, styles, embedded data, scripts by hash.

The content security policy forbids every request and every script but ours, so text from logs
cannot run even if it slipped through the escaping.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

import msgspec

from goodput.report.html.markup import Markup, element, join

_CHART_LIBRARY = "uplot/uPlot.iife.min.js"


class Embedded(msgspec.Struct, frozen=True):
    """JSON inside the page.

    Args:
        name: id of the element; `goodput-data` is what the copy button copies.
        data: JSON text.
    """

    name: str
    data: bytes


def page(
    *, title: str, body: Sequence[str], data: Sequence[Embedded], scripts: Sequence[str]
) -> str:
    """Return a whole HTML document.

    Args:
        title: of the window.
        body: markup inside `<body>`.
        data: JSON that the scripts read, each embedded once.
        scripts: asset names, run in this order after the chart library.
    """
    code = [asset(_CHART_LIBRARY), "\n".join(asset(name) for name in scripts)]
    styles = asset("uplot/uPlot.min.css") + asset("style.css")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(code)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="goodput-ml"),
        element("title", title),
        Markup(f"<style>{styles}</style>"),
    )
    embedded = [
        Markup(f'<script type="application/json" id="{one.name}">{script_safe(one.data)}</script>')
        for one in data
    ]
    content = element("body", *body, embedded, [_script(text) for text in code])
    return f"<!doctype html>\n{element('html', head, content, lang='en')}\n"


def script_safe(data: bytes) -> str:
    """Return JSON that cannot end the script element it stands in, and parses to the same value."""
    text = data.decode()
    # In JSON these characters occur only inside strings, where the escape means the same.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def asset(name: str) -> str:
    """Return the text of a file in report/assets."""
    return (resources.files("goodput.report") / "assets" / name).read_text(encoding="utf-8")


def _script(code: str) -> Markup:
    assert "</script" not in code.lower()
    return Markup(f"<script>{code}</script>")


def _policy(code: Sequence[str]) -> str:
    hashes = []
    for text in code:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes.append(f"'sha256-{digest}'")
    rules = [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        f"script-src {' '.join(hashes)}",
        # Bars are sized by style attributes; style cannot fetch anything under this policy.
        "style-src 'unsafe-inline'",
        "img-src data:",
    ]
    return "; ".join(rules)


def section(title: str, *content: str | Sequence[str], name: str, lead: str = "") -> Markup:
    """Return a titled section that the page can link to."""
    heading = [element("h2", title, id=f"h-{name}")]
    if lead:
        heading.append(element("p", lead, class_="lead"))
    return element(
        "section",
        element("header", *heading),
        join(content),
        id=name,
        aria_labelledby=f"h-{name}",
    )
