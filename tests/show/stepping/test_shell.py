"""The document around pages that are stepped through."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from tests.browser import dom
from tinygraph.base.stepped_page import page

SCRIPT = """
shell.run({count: shell.data.length, draw: at => {
  shell.$("panel").replaceChildren(shell.make("p", "now", shell.data[at]));
  return "drawn " + shell.data[at];
}});
"""
DATA = ["one", "</script><b>two</b>", "three"]


def made(title="A <title>", **parts):
    return page(title, DATA, script=SCRIPT, style="p { color: red; }", figure="<i>x</i>", **parts)


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    html = made()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest(script)}'",
        "style-src": f"'sha256-{digest(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert SCRIPT in script and "p { color: red; }" in style


def test_nothing_in_it_is_fetched_or_styled_in_place():
    html = made()
    assert not re.search(r"\b(src|href|style|on[a-z]+)=", re.sub(r"<script.*", "", html))
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", html)


def test_data_cannot_end_their_element_and_come_back_as_they_were():
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', made())
    assert json.loads(text) == DATA
    assert "A &lt;title&gt;" in made() and "A <title>" not in made()


def test_numbers_that_json_lacks_are_texts():
    html = page("t", [float("nan"), np.float32("-inf"), np.int64(3)], script=SCRIPT)
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    assert json.loads(text, parse_constant=refused) == ["NaN", "-Infinity", 3]


def refused(word):
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.second
@pytest.mark.parametrize(
    ("address", "step"), [("", 1), ("step=2", 2), ("step=99", 3), ("step=0", 1), ("step=x", 1)]
)
def test_the_address_says_which_step_is_drawn(tmp_path, address, step):
    path = tmp_path / "page.html"
    path.write_text(made(), encoding="utf-8")
    document = dom(path, address)
    panel = document.one(id="panel")
    assert panel.text == DATA[step - 1] and not panel.all("b")
    assert document.one(id="where").text == f"step {step} of 3"
    assert document.one(id="said").text == f"drawn {DATA[step - 1]}"
    assert document.one(id="slider").attributes["max"] == "3"
