"""What a file may not do, and what happens to one that breaks: no step is gained, no traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course.test_exercises import of
from tests.course.test_pool import with_body
from tinygraph_course.checking.check import check, opened
from tinygraph_course.checking.child import Child, Limits, _hang
from tinygraph_course.checking.learner import Learner
from tinygraph_course.checking.own import Own
from tinygraph_course.checking.screen import screen
from tinygraph_course.content.exercise import find

POOL = find("pool")


@pytest.mark.parametrize(
    ("text", "kind", "line", "words"),
    [
        ("def windows(size, kernel, stride)\n    return 1\n", "error", 1, "SyntaxError"),
        ("import numpy as np\n1 / 0\n", "error", 2, "ZeroDivisionError"),
        ("x = 1\n", "error", None, "NameError: the file defines no windows"),
        ("import os\n", "rule", 1, "os: this module is not needed here"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_with_its_line(text, kind, line, words, tmp_path):
    failure = of(POOL, text, tmp_path).failure
    assert (failure.kind, failure.line) == (kind, line) and words in failure.text


@pytest.mark.second
@pytest.mark.parametrize("begun", [True, False])
def test_a_kernel_that_is_not_compiled_is_told_with_its_line(begun, tmp_path):
    """Also where it is another step's, and the first one was not begun."""
    exercise = find("map")
    text = exercise.solution if begun else exercise.stub
    old = "__global__ void axpy(float a, const float* x, float* y, int n)\n{\n"
    outcome = of(exercise, text.replace(old, f"{old}    int i = ;\n"), tmp_path)
    failure = outcome.failure
    assert (outcome.step, failure.kind, failure.source) == (None, "not compiled", "int i = ;")
    assert failure.text.startswith("it does not compile: ") and not failure.case
    assert failure.line == text[: text.index(old)].count("\n") + 3


def test_a_loop_without_end_is_named_by_its_line(tmp_path):
    file = tmp_path / POOL.file
    file.write_text(with_body("windows", "\n    while True:\n        pass\n"))
    failure = check(POOL, file, Limits(seconds=0.3)).failure
    assert "no end after 0.3 seconds" in failure.text
    assert failure.source in ("while True:", "pass")


def test_after_a_call_without_end_no_other_is_tried():
    """They would take as long, and say the same."""
    text = "calls = []\ndef f(n):\n    calls.append(n)\n    while n == 2:\n        pass\n"
    child = Child(Path("file.py"), text, Limits(seconds=0.2))
    exec(text, child.names)
    before = signal.signal(signal.SIGALRM, _hang)
    try:
        asked = [{"do": "call", "name": "f", "arguments": [n]} for n in (1, 2, 3)]
        first, *others = child.answers(asked)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert first["value"] == [None, [1]] and child.names["calls"] == [1, 2]
    assert [reply["error"]["kind"] for reply in others] == ["Hang", "Hang"]
    assert others[0] == others[1]


@pytest.mark.second
@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("    return (size - kernel)", "size > 16"),
        ("        argmax, shape = saved", "True"),
    ],
    ids=["cases that are drawn", "an op"],
)
def test_a_loop_without_end_is_waited_for_once(line, condition, tmp_path):
    """It would be in each of the cases, and for every smaller one that is looked for."""
    assert all(case[0] <= 16 for case in POOL.steps[0].cases)
    room = line[: len(line) - len(line.lstrip())]
    loop = f"{room}if {condition}:\n{room}    print('waits')\n{room}    while True: pass\n"
    file = tmp_path / POOL.file
    file.write_text(POOL.solution.replace(line, loop + line, 1))
    outcome = check(POOL, file, Limits(seconds=0.3))
    assert "no end after 0.3 seconds" in outcome.failure.text
    assert outcome.printed == "waits\n"


def test_of_a_call_that_is_shown_its_prints_are(tmp_path):
    """Those of the other cases are many, and nobody knows to which one a line belongs."""
    old = "    return (size - kernel)"
    text = POOL.solution.replace(old, f"    print('of', size, kernel, stride)\n{old}", 1)
    outcome = of(POOL, text.replace("// stride + 1", "// stride", 1), tmp_path)
    assert outcome.failure.case == "windows(size=1, kernel=1, stride=1)"
    assert outcome.failure.printed == "of 1 1 1\n" and outcome.printed.count("of") > 10
    shown = screen(outcome)
    assert shown[-2:] == ["this call printed:", "  of 1 1 1"]


def test_what_is_drawn_without_a_seed_is_the_same_in_each_check(tmp_path):
    file = tmp_path / POOL.file
    file.write_text(f"{POOL.solution}\n\ndef draw():\n    return np.random.standard_normal()\n")
    drawn = []
    for _ in range(2):
        with opened(POOL, file) as learner:
            own = Own(POOL, learner)
            drawn.append([own.call("draw") for _ in range(3)])
    assert drawn[0] == drawn[1] and drawn[0][0] != drawn[0][1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("\n    raise SystemExit\n", "SystemExit"),
        ("\n    return pool\n", "you return function"),
        ("\n    return np.array(['a'])\n", "you return array of <U1"),
        ("\n    return [1]\n", "expected an array, you return list"),
        ("\n", "expected an array, you return nothing"),
        ("\n    x *= 0\n    return x\n", "expected (1, 1, 1, 1), yours is (1, 1, 2, 2)"),
    ],
)
def test_answers_that_are_none(body, words, tmp_path):
    assert words in of(POOL, with_body("pool", body), tmp_path).failure.text


def test_of_several_values_the_one_that_differs_is_named(tmp_path):
    """Exercise 1 gives weights and a list of counts: that one lacks its last."""
    exercise = find("neuron")
    text = exercise.solution.replace("    return w, mistakes\n", "    return w, mistakes[1:]\n")
    failure = of(exercise, text, tmp_path).failure
    assert failure.text.startswith("expected ") and failure.text.endswith(" (value 2)")


def test_an_argument_that_is_changed_is_noticed(tmp_path):
    text = POOL.solution.replace(
        "    N, C, H, W = shape\n", "    N, C, H, W = shape\n    gy *= 2\n"
    )
    assert text != POOL.solution
    assert of(POOL, text, tmp_path).failure.kind in ("changed", "values")


def test_a_warning_has_no_path_of_a_library_and_a_line_of_the_learners(tmp_path):
    old = "    return (size - kernel)"
    text = POOL.solution.replace(old, f"    np.mean([])\n    size is 1\n{old}", 1)
    printed = of(POOL, text, tmp_path).printed.splitlines()
    line = text.splitlines().index("    size is 1") + 1
    assert any(p.startswith(f"line {line}, SyntaxWarning: ") for p in printed)
    assert any(p.startswith("RuntimeWarning: Mean of empty slice") for p in printed)
    assert "site-packages" not in "".join(printed)


def test_the_place_of_a_syntax_error_is_told_once(tmp_path):
    failure = of(POOL, "def windows(size, kernel, stride)\n    return 1\n", tmp_path).failure
    assert (failure.text, failure.line) == ("SyntaxError: expected ':'", 1)


def test_an_op_that_gives_a_number_is_told_that_an_array_is_due(tmp_path):
    old = "        return pool(x, self.kernel, self.stride), saved\n"
    text = POOL.solution.replace(old, "        return 1.0, saved\n", 1)
    found = of(POOL, text, tmp_path).failure.text
    assert found == "the output: expected an array, you return float"


def test_prints_are_shown(tmp_path):
    text = POOL.solution.replace('"""Exercise', 'print("seen")\n"""Exercise', 1)
    assert of(POOL, text, tmp_path).printed == "seen\n"


@pytest.mark.second  # an interpreter of its own, and a server that has to load all anew
def test_problems_can_be_drawn_where_others_have_started_the_fork_server(tmp_path):
    """A loader's workers, say: what the course has loaded beforehand is missing there."""
    file = tmp_path / "stub.py"
    file.write_text(find("gradcheck").stub)
    script = tmp_path / "first_another.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from pathlib import Path\n"
        "from tinygraph_course.checking.check import check\n"
        "from tinygraph_course.content.exercise import find\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('forkserver').Process(target=print)\n"
        "    process.start(), process.join()\n"
        "    print(check(find('gradcheck'), Path(sys.argv[1])).failure.kind)\n"
    )
    command = [sys.executable, script, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["not", "begun"], done.stderr


LOOK = """
import importlib, sys
def reached(names):
    found = [n for n in sys.modules if n.startswith("tinygraph_course") and sys.modules[n]]
    for name in names:
        try:
            found.append(importlib.import_module(name).__name__)
        except Exception as error:
            found.append(type(error).__name__)
    return sorted(found)
def left():
    ours = [m for n, m in sys.modules.items() if n.startswith("tinygraph") and m]
    above = sys.modules["tinygraph.base.lazy"].above
    asked = [(m, name) for m in [*ours, above] for name in ("max_pool2d", "Limits", "relu")]
    return [f"{m}.{name}" for m, name in asked if callable(getattr(m, name, None))]
"""


def test_answers_of_the_course_are_out_of_reach(tmp_path):
    """Past the rules: not loaded, not found, and forbidden names are gone from the course too."""
    file = tmp_path / "file.py"
    file.write_text(LOOK, encoding="utf-8")
    names = ["content.exercise", "content.pages", "exercises", "exercises.pool.steps", "grading"]
    asked = [f"tinygraph_course.{name}" for name in names]
    with Learner(file, forbidden=["max_pool2d", "Limits", "relu"]) as learner:
        load = {"do": "load", "harness": ""}
        reach = {"do": "call", "name": "reached", "arguments": [asked]}
        left = {"do": "call", "name": "left", "arguments": []}
        _, reached, names_left = learner.ask(load, reach, left)
    found = reached["value"][0]
    assert [word for word in found if word == "ModuleNotFoundError"] == ["ModuleNotFoundError"] * 5
    own = {name for name in found if name.startswith("tinygraph_course.checking.")}
    assert own == {f"tinygraph_course.checking.{name}" for name in ("child", "warm", "wire")}
    assert names_left["value"][0] == []
