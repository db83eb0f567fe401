"""Who gives advice, and whose advice a test has typed in.

While tests run, each place that raises one of our errors with a way out is noted; `typed_in` notes
that a test has done what it says.  At the end one line counts both, of all processes together;
`pytest --advice` lists the places whose advice nobody has typed in.  `tests/test_advice.py` holds
those that name a command to it, whatever part of the tests is run.
"""

import json
import sys
from pathlib import Path

import pytest

from tinygraph.base.errors import TinygraphError

OURS = {name: Path(__file__).parents[1] / name for name in ("tinygraph", "course")}
PASSES_ON = {"refuse", "explain", "fault", "missing", "_cannot", "writing", "__init__"}
given, typed = set(), set()
_plain = TinygraphError.__init__


def pytest_addoption(parser):
    parser.addoption("--advice", action="store_true", help="list advice that no test types in")


def place_of(frame):
    """File and function of the package that an error comes from; "" if from elsewhere."""
    while frame is not None:
        code = frame.f_code
        if code.co_name not in PASSES_ON and code.co_filename != __file__:
            path = Path(code.co_filename)
            inside = next((name for name, root in OURS.items() if root in path.parents), "")
            return f"{inside}/{path.relative_to(OURS[inside])}:{code.co_name}" if inside else ""
        frame = frame.f_back
    return ""


def noted(self, *args, **named):
    _plain(self, *args, **named)
    if "Way out" in str(self):
        self.place = place_of(sys._getframe(1))
        if self.place:
            given.add(self.place)


def pytest_configure(config):
    TinygraphError.__init__ = noted


def pytest_unconfigure(config):
    TinygraphError.__init__ = _plain


def typed_in(error):
    """A test has done what the error says: it worked."""
    typed.add(error.place)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of xdist tells the one that began it
        session.config.workeroutput["advice"] = json.dumps([sorted(given), sorted(typed)])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    found = getattr(node, "workeroutput", {}).get("advice", "[[], []]")
    for into, places in zip((given, typed), json.loads(found), strict=True):
        into.update(places)


def pytest_terminal_summary(terminalreporter, config):
    if given:
        count = f"{len(given)} places, {len(given & typed)} of them typed in"
        terminalreporter.line(f"advice: given at {count}; --advice lists the others")
    for place in sorted(given - typed) if config.option.advice else ():
        terminalreporter.line(f"advice: nobody typed in that of {place}")
