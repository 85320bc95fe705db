"""The report as one HTML file that needs nothing else: no network, no server, no other file.

Text from runs, topics and documents is hostile until proven otherwise. It travels as JSON in an inert
``<script type="application/json">`` with every ``<`` written ``\\u003c``, and the page's scripts put it on
screen through ``textContent`` alone. A Content-Security-Policy names the page's one script and one style by
their hashes, so that nothing else could run or be fetched even if it got in.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from typing import Any

from sdretrieval.core.files import atomic_writer

# One style and one script on the page; several files here, each about one thing, in the order of their use.
STYLE = "report.css"
SCRIPTS = ("elements.js", "dom.js", "charts.js", "summary.js", "topics.js", "appendix.js", "main.js")

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>{plain}</noscript>
<main id="report"></main>
<dialog id="topic" aria-labelledby="topic-heading"></dialog>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def render_html(data: Mapping[str, Any]) -> str:
    """The page for what :func:`~sdretrieval.evaluate.report.gather.gather` collected."""
    style = _asset(STYLE)
    script = '"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return PAGE.format(
        policy=policy,
        title=html.escape(_printable(str(data["title"]))),
        style=style,
        plain=_without_script(data),
        data=embed(data),
        script=script,
    )


def write_html(path: str | PathLike[str], data: Mapping[str, Any]) -> None:
    """Write the page of :func:`render_html`; the file is whole or not there."""
    page = render_html(data)
    with atomic_writer(path) as stream:
        stream.write(page)


def embed(data: Any) -> str:
    """JSON that may stand inside a ``<script>``: no ``<``, so neither ``</script>`` nor ``<!--``."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _printable(text)


def _printable(text: str) -> str:
    """Half a surrogate pair (JSON sources may hold one) cannot be written as UTF-8."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _asset(name: str) -> str:
    text = (files("sdretrieval.evaluate.report") / "assets" / name).read_text(encoding="utf-8").strip()
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)  # elements.js is a module of the served page as well


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"sha256-{digest}"


def _without_script(data: Mapping[str, Any]) -> str:
    """The means, for readers whose browser runs no scripts."""

    def cell(tag: str, text: object) -> str:
        return f"<{tag}>{html.escape(_printable(str(text)))}</{tag}>"

    header = "".join(cell("th", name) for name in ("run", "topics", *data["measures"]))
    rows = []
    for run in data["runs"]:
        means = ("-" if mean is None else f"{mean:.4f}" for mean in run["means"])
        rows.append("".join(cell("td", text) for text in (run["name"], run["topics"], *means)))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<h1>{html.escape(_printable(str(data['title'])))}</h1>"
        f"<table><tr>{header}</tr>{body}</table>"
        "<p>Curves, topics and timelines need JavaScript; nothing is fetched.</p>"
    )
