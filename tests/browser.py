"""A page as a browser draws it: headless Chromium, without a driver.

`dom(page, "step=3")` is the document after the scripts have run, parsed; `screenshot` a picture;
`measured` what an expression of JavaScript says in a window of some width.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
VOID = ("meta", "input", "br", "img", "hr", "link")  # elements without an end tag


def chromium() -> str:
    """The program; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium. Way out: make browser, or apt-get install chromium")
    return found


def _run(page: Path, hash_: str, *options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [chromium(), *FLAGS, f"--user-data-dir={folder}", *options]
        address = f"{Path(page).resolve().as_uri()}#{hash_}"
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr  # an error of a script, or of the policy
    return done.stdout


def screenshot(
    page: Path,
    target: Path,
    hash_: str = "",
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
) -> None:
    """A PNG of the page."""
    looks = ["--blink-settings=preferredColorScheme=0"] if dark else []
    _run(page, hash_, *looks, f"--window-size={width},{height}", f"--screenshot={target}")


def with_script(page: Path, code: str) -> Path:
    """A copy of a page whose script goes on with some code; its policy allows that."""
    html = page.read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    changed = script + code
    html = html.replace(_digest(script), _digest(changed)).replace(script, changed)
    copy = page.with_name(f"{page.stem}-driven.html")
    copy.write_text(html, encoding="utf-8")
    return copy


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Element:
    """An element: `tag`, `attributes`, `text` of it and those within, `children`."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes, self.children = tag, attributes, []
        self.words: list[str] = []

    @property
    def text(self) -> str:
        return "".join(w if isinstance(w, str) else w.text for w in self.words)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def all(
        self, tag: str | None = None, cls: str | None = None, **attributes: str
    ) -> list[Element]:
        """Elements within, in the order of the document; `data_x=...` is the attribute data-x."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            if (
                (tag is None or child.tag == tag)
                and (cls is None or cls in child.classes)
                and all(child.attributes.get(n) == v for n, v in wanted.items())
            ):
                found.append(child)
            found += child.all(tag, cls, **attributes)
        return found

    def one(self, tag: str | None = None, cls: str | None = None, **attributes: str) -> Element:
        (found,) = self.all(tag, cls, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attributes):
        element = Element(tag, dict(attributes))
        self.open[-1].children.append(element)
        self.open[-1].words.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, (self.open[-1].tag, tag)
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].words.append(data)


def dom(page: Path, hash_: str = "") -> Element:
    """The document as it stands once its scripts have run."""
    reader = _Reader()
    reader.feed(_run(page, hash_, "--dump-dom"))
    reader.close()
    return reader.open[0]


def measured(page: Path, hash_: str, width: int, expression: str) -> Any:
    """What an expression gives at the end of the page's script, in a window of this width.

    The window is a frame: Chromium itself makes none of less than 500.
    """
    told = f'parent.postMessage(JSON.stringify({expression}), "*");'
    driven = with_script(page, told)
    around = page.with_name(f"{page.stem}-framed.html")
    around.write_text(
        "<script>onmessage = event => document.body.dataset.told = event.data</script>"
        f'<iframe src="{driven.name}#{hash_}" width="{width}" height="900"></iframe>'
    )
    return json.loads(dom(around).one("body").attributes["data-told"] or "")
