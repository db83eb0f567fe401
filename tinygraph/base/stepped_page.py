"""The document around a page that is stepped through: policy, head, controls, data, script.

    +--------------------------------------------------+
    | title        |< < play > >|  ---o-----  step 3 of 17 |
    +----------------+---------------------------------+
    | figure         | panel, drawn anew for each step |
    +----------------+---------------------------------+

What differs from page to page is `data`, which is JSON, and a script that ends in

    shell.run({count: steps.length, draw: at => {...; return "what this step does, in words"}});

stepped_page.js says what `shell` has.  The page is one file.  Its policy allows this one script
and this one style by their hashes, and nothing else: no network, no inline handlers, no style
attributes (`element.style.left = ...` in the script is allowed: that is none of the document).
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from tinygraph.base.json_text import to_json
from tinygraph.base.page import escape

HERE = Path(__file__).parent
ICONS = {  # of the buttons, drawn: no font has all of them
    "first": ("first step (Home)", "M3 2v12M13 2L5 8l8 6z"),
    "back": ("one step back (left arrow)", "M10 2l2 2-4 4 4 4-2 2-6-6z"),
    "play": ("play, or stop (space)", "M3 2l10 6-10 6z"),
    "next": ("one step on (right arrow)", "M6 2L4 4l4 4-4 4 2 2 6-6z"),
    "last": ("last step (End)", "M13 2v12M3 2l8 6-8 6z"),
}


def page(title: str, data: Any, *, script: str, style: str = "", figure: str = "") -> str:
    """The whole document.

    Parameters
    ----------
    title : str
        The heading, as text.
    data : Any
        What has a place in JSON, see json_text.py.  The script finds it as `shell.data`.
    script, style : str
        Of this page; they come behind those of the shell, and may use what these define.
    figure : str
        HTML of what stands beside the panel, without style attributes.

    Returns
    -------
    str
        HTML.
    """
    code = _read("stepped_page.js") + script
    looks = _read("stepped_page.css") + style
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(code)}'; "
        f"style-src 'sha256-{_digest(looks)}'; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{looks}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>{_controls()}</header>",
            "<noscript><p>The steps are drawn by a script in this file.</p></noscript>",
            f'<main><div id="figure" tabindex="0" aria-label="overview">{figure}</div>',
            '<section id="panel" aria-label="this step"></section></main>',
            '<p id="said" aria-live="polite"></p><div id="tip" hidden></div>',
            f'<script type="application/json" id="data">{as_json(data)}</script>',
            f"<script>{code}</script></body></html>",
            "",
        ]
    )


def _read(name: str) -> str:
    """A file of this folder."""
    return (HERE / name).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """JSON that may stand in a script element: it has no `<`.

    >>> as_json(["</script>", 1.5])
    '["\\\\u003c/script>",1.5]'
    """
    text = to_json("page", data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _controls() -> str:
    buttons = [
        f'<button id="{name}" title="{label}" aria-label="{label}"><svg viewBox="0 0 16 16" '
        f'width="16" height="16" aria-hidden="true"><path d="{path}"/></svg></button>'
        for name, (label, path) in ICONS.items()
    ]
    return (
        f'<div class="controls" role="group" aria-label="steps">{"".join(buttons)}'
        '<input id="slider" type="range" min="1" value="1" aria-label="step">'
        '<span id="where"></span></div>'
    )


def _digest(text: str) -> str:
    """The hash by which a policy knows a script or a style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
