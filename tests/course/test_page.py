"""The page of a launch that failed: what a learner is given to step through, and when."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from tests.show.stepping.pages import data_of
from tinygraph.cli import main
from tinygraph_course.checking.check import check
from tinygraph_course.checking.goals import missed
from tinygraph_course.checking.steps import Failure
from tinygraph_course.commands.page import address, write_page
from tinygraph_course.content.exercise import find

SUMS = find("sums")
BARRIER = "        __syncthreads();\n        if (t < half)\n"
WRONG = {  # an edit of exercise 10, the kind of its failure, its step, and kernel, grid and block
    "race": (
        ("parts[t] += parts[t + half];\n", "parts[t] += parts[t + half];\n        parts[0] = 1;\n"),
        ("race", 2, "tg_step_2", [1, 1, 1], [8, 1, 1]),
    ),
    "bounds": (
        ("return i < n ? x[i] : 0.0f;", "return x[i];"),
        ("out-of-bounds", 1, "tg_step_1", [3, 1, 1], [8, 1, 1]),
    ),
    "values": (
        ("sums[blockIdx.x] = parts[0];", "sums[blockIdx.x] = parts[0] + 1;"),
        ("values", 3, "block_sums", [1, 1, 1], [8, 1, 1]),
    ),
}


@pytest.mark.second
@pytest.mark.parametrize("wrong", WRONG)
def test_the_page_has_exactly_the_launch_that_failed(wrong, tmp_path):
    (old, new), (kind, step, kernel, grid, block) = WRONG[wrong]
    assert SUMS.solution.count(old) == 1
    file = tmp_path / SUMS.file
    file.write_text(SUMS.solution.replace(old, new))
    outcome = check(SUMS, file)
    file.write_text("saved again in the meantime")
    address = write_page(outcome, tmp_path / "pages" / "10_sums.html")
    assert (outcome.failure.kind, outcome.step) == (kind, step)
    data = data_of(tmp_path / "pages" / "10_sums.html")
    assert (data["kernel"], data["grid"], data["block"]) == (kernel, grid, block)
    (source,) = data["files"]
    assert source["name"] == SUMS.file and any(new.split("\n")[0] in x for x in source["lines"])
    found = [finding["kind"] for finding in data["runs"][0]["findings"]]
    assert kind in found or (kind == "values" and not found)
    if kind == "out-of-bounds":
        assert address.endswith("pages/10_sums.html#block=2&step=mistake")
        sizes = {array["name"]: array["shape"] for array in data["arrays"]}
        assert sizes["x"] == [20]


@pytest.mark.parametrize(
    ("kind", "end"), [("race", "&step=mistake"), ("values", ""), ("barriers", ""), ("bytes", "")]
)
def test_a_page_is_opened_at_a_mistake_where_one_was_found(kind, end, tmp_path):
    assert address(tmp_path / "page.html", Failure(kind, block=3)).endswith(
        f"page.html#block=3{end}"
    )


@pytest.mark.second
def test_the_address_stands_under_the_screen(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / SUMS.file).write_text(SUMS.solution.replace("sums[blockIdx.x] =", "sums[0] ="))
    capsys.readouterr()
    assert main(["course", "check", "10"]) == 1
    *screen, last = capsys.readouterr().out.splitlines()
    assert any("Every block writes sums[0]" in line for line in screen)
    lead, _, address = last.partition(": ")
    assert lead == "this launch, step by step"
    where = urlsplit(address)
    assert where.fragment == "block=1&step=mistake"
    assert data_of(Path(unquote(where.path)))["kernel"] == "block_sums"
    assert main(["course", "check", "10", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["page"] == address


def test_without_a_launch_there_is_no_page(tmp_path):
    """Untouched, not compiling, or all right."""
    pool = find("pool")
    for exercise, text in ((SUMS, SUMS.stub), (pool, pool.stub), (pool, pool.solution)):
        file = tmp_path / exercise.file
        file.write_text(text)
        assert write_page(check(exercise, file), tmp_path / "page.html") == ""
    assert not (tmp_path / "page.html").exists()


def test_goals_are_told_with_what_was_counted_and_the_line():
    line = {"space": "global", "access": "load", "requests": 4, "wavefronts": 0}
    rows = [
        {**line, "line": 7, "sectors": 16, "least_wavefronts": 0},
        {**line, "line": 8, "sectors": 64, "least_wavefronts": 0},
        {"space": "shared", "access": "load", "requests": 8, "sectors": 0, "line": 9}
        | {"wavefronts": 64, "least_wavefronts": 8},
    ]
    # array, element, epoch, thread, whether it was written, line: thread 1 loads three of `parts`
    touched = [[0, 7, 0, 0, 0, 2], [1, 0, 0, 1, 1, 3], [1, 0, 1, 1, 0, 5], [1, 0, 2, 1, 0, 5]]
    touched += [[1, 1, 1, 1, 0, 6], [1, 3, 1, 0, 0, 5]]
    answer = {"lines": rows, "bytes": 2560, "operations": 256, "barriers": 4}
    answer |= {"arrays": ["x", "parts"], "shared": ["parts"], "touched": np.array(touched)}
    most = {"sectors": 4, "bytes": 2559, "reads": 1, "turns": 1, "barriers": 3, "loads": 2}
    assert [(m.goal, m.words, m.line) for m in missed(most, answer)] == [
        ("sectors", "a warp moves 16 sectors of 32 bytes at once, 4 at most", 8),
        ("bytes", "2,560 bytes of global memory are moved, 2,559 at most", 8),
        ("reads", "2 reads of shared memory for each multiply-add, 1 at most", 9),
        ("turns", "lanes of a warp meet in a bank: a request takes 8 turns, 1 at most", 9),
        ("barriers", "the block passes 4 barriers, 3 at most", None),
        ("loads", "one thread loads 3 numbers of shared memory, 2 at most", 5),
    ]
    reached = {"sectors": 16, "bytes": 2560, "reads": 2, "turns": 8, "barriers": 4, "loads": 3}
    assert missed(reached, answer) == []


@pytest.mark.parametrize(
    "words", ["the block is not done after 2 seconds", "given up after 2 seconds"]
)
def test_no_page_is_made_of_a_loop_without_an_end(words):
    step = find("map").steps[1]
    kind = "deadlock" if words.startswith("given up") else "timeout"
    found = {"kind": kind, "message": words, "array": "", "line": 3, "block": [0, 0, 0]}
    answer = {"findings": [found], "arrays": []}
    assert step._failure(step.launches[0], answer).request is None
    found |= {"kind": "deadlock", "message": "3 of 4 threads wait here"}
    assert step._failure(step.launches[0], answer).request["name"] == "axpy"


class Endless:
    """In the place of a learner: every launch of a step is right, but the second has no end."""

    def __init__(self, step):
        self.right, self.asked = [launch.expected for launch in step.launches], []

    def ask(self, *requests):
        (request,) = requests
        out = list(self.right[len(self.asked)].values())
        self.asked.append(request)
        kinds = ["timeout"] if len(self.asked) == 2 else []
        found = [{"kind": kind, "message": "", "array": "", "line": 3} for kind in kinds]
        touched = {"touched": np.zeros((0, 6), int), "arrays": [], "shared": [], "barriers": 0}
        return [{"value": {"findings": found, "out": out, **touched}}]


def test_nothing_is_launched_after_a_loop_without_an_end():
    step = find("map").steps[1]
    learner = Endless(step)
    seen = step.observe(learner)
    assert len(learner.asked) == 2 and len(seen) == len(step.launches) == 4
    kinds = [launch["kinds"] for launch in step.fingerprint(seen)]
    assert kinds == [[], ["endless"], ["error"], ["error"]]
