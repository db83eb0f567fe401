"""What a file may not do, and what happens to one that breaks: no step is gained, no traceback."""

import subprocess
import sys

import pytest

from tests.course.test_exercises import of
from tests.course.test_pool import with_body
from tinygraph.course.check import check
from tinygraph.course.child import Limits
from tinygraph.course.exercise import find

POOL = find("pool")
CALL = "\n    return tg.{}(tg.Tensor(x), kernel, stride).value\n"
CHEATS = {  # bodies of `pool` that would give the right numbers, or take the checker down
    "the answer of the framework": CALL.format("max_pool2d"),
    "by another way": CALL.format("nn.functional.max_pool2d"),
    "by its class": "\n    return tg.nn.MaxPool2d(kernel, stride)(tg.Tensor(x)).value\n",
    "by getattr": "\n    return getattr(tg, 'max_' + 'pool2d')(x, kernel, stride).value\n",
    "by vars": "\n    return vars(tg)['max_pool' + '2d'](tg.Tensor(x), kernel, stride).value\n",
    "by the registry": "\n    return list(tg.op.registry.values())[40](2, 2)(x)\n",
    "the solution on disk": "\n    return open('/x').read()\n",
    "the course": "\n    from tinygraph.course.exercises import pool\n    return pool\n",
    "dunders": "\n    return ().__class__.__base__.__subclasses__()\n",
    "a module of the system": "\n    import os\n    os._exit(0)\n",
    "frames": "\n    return (lambda: 0).__globals__\n",
    "an array that says it is equal": (
        "\n    class A(np.ndarray):\n        def __eq__(self, other):\n            return True\n"
        "    return np.zeros((1, 1, 1, 1)).view(A)\n"
    ),
    "sys.modules": "\n    return np.sys.modules\n",
    "files of numpy": "\n    return np.load('x.npy')\n",
    "eval": "\n    return eval('tg.max_pool' + '2d')(x, kernel, stride)\n",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gains_no_step(cheat, tmp_path):
    outcome = of(POOL, with_body("pool", CHEATS[cheat]), tmp_path)
    assert not outcome.ok and 2 not in outcome.passed


def test_the_second_wall_stands_without_the_first(tmp_path, monkeypatch):
    """The framework's answer is gone from the process, and no file can be opened."""
    monkeypatch.setattr("tinygraph.course.check.broken_rules", lambda exercise, text: [])
    found = of(POOL, with_body("pool", CHEATS["the answer of the framework"]), tmp_path).failure
    assert found.kind == "error" and "max_pool2d" in found.text
    opened = "\n    return open(__file__).read()\n"
    found = of(POOL, with_body("pool", opened), tmp_path).failure
    assert found.kind == "error" and "Too many open files" in found.text


@pytest.mark.parametrize(
    ("text", "kind", "line", "words"),
    [
        ("def windows(size, kernel, stride)\n    return 1\n", "error", 1, "SyntaxError"),
        ("import numpy as np\n1 / 0\n", "error", 2, "ZeroDivisionError"),
        ("x = 1\n", "error", None, "KeyError: 'windows'"),
        ("import os\n", "rule", 1, "os: this module is not needed here"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_with_its_line(text, kind, line, words, tmp_path):
    failure = of(POOL, text, tmp_path).failure
    assert (failure.kind, failure.line) == (kind, line) and words in failure.text


def test_a_loop_without_end_is_named_by_its_line(tmp_path):
    file = tmp_path / POOL.file
    file.write_text(with_body("windows", "\n    while True:\n        pass\n"))
    failure = check(POOL, file, Limits(seconds=0.3)).failure
    assert "no end after 0.3 seconds" in failure.text
    assert failure.source in ("while True:", "pass")


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


def test_an_argument_that_is_changed_is_noticed(tmp_path):
    text = POOL.solution.replace(
        "    N, C, H, W = shape\n", "    N, C, H, W = shape\n    gy *= 2\n"
    )
    assert text != POOL.solution
    assert of(POOL, text, tmp_path).failure.kind in ("changed", "values")


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
        "from tinygraph.course.check import check\n"
        "from tinygraph.course.exercise import find\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('forkserver').Process(target=print)\n"
        "    process.start(), process.join()\n"
        "    print(check(find('gradcheck'), Path(sys.argv[1])).failure.kind)\n"
    )
    command = [sys.executable, script, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["not", "begun"], done.stderr
