"""Two runs of the tests give the same results, whatever ran before: see conftest.py at the root."""

import ast
import itertools
import sys
import types
from pathlib import Path

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st

import tinygraph as tg
import tinygraph_pytest
from tests.testing.drawn import draw

ROOT = Path(__file__).parents[1]
# What draws on purpose from a generator that nobody seeded, because a test wants to be noticed; in
# a worker of a DataLoader, because the loader is to have seeded it.
ON_PURPOSE = {
    ("tests/data/worker_datasets.py", "np.random.random()"),
    ("tests/data/worker_datasets.py", "random.random()"),
    ("tests/plan/test_changes.py", "np.random.default_rng()"),
    ("tests/plan/test_readings.py", "np.random.rand()"),
    ("tests/plan/test_readings.py", "random.random()"),
    ("tests/testing/test_gradcheck.py", "np.random.random()"),
}
OF_NUMPY = {"default_rng", "Generator", "Philox", "PCG64", "SeedSequence", "RandomState"}


def test_only_nightly_draws_others_each_time():
    tinygraph_pytest.register_profiles()
    for name in ("dev", "ci", "tinygraph-dev", "tinygraph-ci"):
        assert settings.get_profile(name).derandomize, name
    for name in ("nightly", "tinygraph-nightly"):
        assert not settings.get_profile(name).derandomize, name


@pytest.mark.second
@pytest.mark.skipif(not settings.default.derandomize, reason="the profile nightly")
def test_what_is_drawn_depends_on_nothing_that_ran_before(tmp_path, monkeypatch):
    strategy = st.lists(st.floats(), min_size=20, max_size=20)
    before = [draw(strategy, 30), find(strategy, lambda found: len(set(found)) > 15)]
    constants = [0.5 + i / 1024 for i in range(2000)]
    path = tmp_path / "loaded_later.py"
    path.write_text(f"CONSTANTS = {constants}\n")
    module = types.ModuleType("loaded_later")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "loaded_later", module)
    after = [draw(strategy, 30), find(strategy, lambda found: len(set(found)) > 15)]
    assert repr(after) == repr(before)
    assert not set(constants) & {x for example in after[0] for x in example}


def unseeded(tree):
    """Calls that draw from a generator which no seed has set."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        room, _, name = ast.unparse(call.func).rpartition(".")
        no_seed = not call.args and not call.keywords
        if room in ("np.random", "numpy.random"):
            bad = no_seed or name not in OF_NUMPY
        elif room == "random":
            bad = name != "Random" or no_seed
        else:
            bad = room in ("secrets", "uuid") or (ast.unparse(call) == "default_rng()")
        if bad:
            yield call


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("np.random.default_rng()", 1),
        ("np.random.default_rng(0)", 0),
        ("default_rng(); default_rng(seed)", 1),
        ("numpy.random.rand(3)", 1),
        ("np.random.seed(3)", 1),  # others would draw from it
        ("import random; random.random(); random.Random()", 2),
        ("import random; rng = random.Random(1); rng.random()", 0),
        ("uuid.uuid4(); secrets.token_hex(8)", 2),
        ("'np.random.rand(3)'", 0),
    ],
)
def test_the_search_for_unseeded_generators(text, found):
    assert len(list(unseeded(ast.parse(text)))) == found


@pytest.mark.second
def test_no_test_draws_from_a_generator_without_a_seed():
    found, seen = [], set()
    for path in sorted(ROOT.glob("tests/**/*.py")):
        name = str(path.relative_to(ROOT))
        for call in unseeded(ast.parse(path.read_text(), name)):
            entry = name, ast.unparse(call)
            seen.add(entry)
            # a parameter may be called `random`, as the launches' generators are
            if entry not in ON_PURPOSE and not _of_a_parameter(call, path):
                found.append(f"{name}:{call.lineno}: {entry[1]}")
    assert not found, "\n".join(found)
    assert seen >= ON_PURPOSE


def _of_a_parameter(call, path):
    room = ast.unparse(call.func).partition(".")[0]
    return room == "random" and "import random" not in path.read_text()


def test_a_test_finds_the_generator_as_after_an_import():
    assert (tg.random.default_generator.seed, tg.random.default_generator.stream) == (0, 0)


@pytest.mark.parametrize("_", [0, 1])
def test_and_leaves_none_of_its_numbers_to_the_next(_):
    assert tg.random.default_generator.stream == 0
    tg.random.default_generator.next_stream()


class Item:
    def __init__(self, nodeid, *sweeps):
        self.nodeid, self.sweeps, self.marks = nodeid, sweeps, []

    def iter_markers(self, name):
        return [pytest.mark.sweep(n).mark for n in self.sweeps if name == "sweep"]

    def add_marker(self, mark):
        self.marks.append(mark)

    def __repr__(self):
        return self.nodeid


def test_orders(pytestconfig):
    plugin = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    written = [Item(f"{file}.py::{test}") for file in "abcdef" for test in range(6)]
    assert plugin.shuffled(written, 0) == written
    orders = {seed: plugin.shuffled(written, seed) for seed in (1, 2)}
    for seed, order in orders.items():
        assert order == plugin.shuffled(written, seed) != written
        assert sorted(map(repr, order)) == sorted(map(repr, written))
        files = [item.nodeid[0] for item in order]
        assert sum(a != b for a, b in itertools.pairwise(files)) == 5  # kept together
    assert orders[1] != orders[2]


def test_one_in_n_of_a_sweep_is_left_by_day(pytestconfig):
    plugin = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))

    def by_day(order):
        items = [Item(f"a.py::test[{i}]", 4) for i in order]
        items += [Item(f"a.py::few[{i}]", 4) for i in range(3)]
        items += [Item(f"a.py::plain[{i}]") for i in range(5)]
        plugin.leave_for_the_night(items)
        return sorted(item.nodeid for item in items if item.marks != ["nightly"])

    found = by_day(range(10))
    names = [nodeid.partition("[")[0][6:] for nodeid in found]
    assert [names.count(name) for name in ("test", "few", "plain")] == [3, 1, 5]
    assert found == by_day(reversed(range(10)))


def test_what_is_a_sweep_is_of_the_second_tier():
    """Else plain `pytest` would run what CI leaves for the night."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for above, line in itertools.pairwise(lines):
            if line.startswith("@pytest.mark.sweep("):
                assert above == "@pytest.mark.second", f"{path}: {line}"
