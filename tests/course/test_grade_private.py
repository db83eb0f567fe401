"""Private packs: a seed, from which every step draws other cases; the solutions pass them."""

import json

import numpy as np
import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.testing.drawing import drawn
from tinygraph_course.checking.kernel_step import KernelStep
from tinygraph_course.content.exercise import exercises, find
from tinygraph_course.grading.grading import graded
from tinygraph_course.grading.private import Pack

MAP, POOL = find("map"), find("pool")


def arguments_of(steps):
    return [launch.arguments for step in steps for launch in step.launches]


def test_a_pack_draws_the_same_again_and_another_one_something_else():
    one, again, other = (arguments_of(Pack.made(seed).of(MAP)) for seed in (5, 5, 6))
    assert len(one) >= len(MAP.steps)
    for mine, its in zip(one, again, strict=True):
        pairs = [pair for pair in zip(mine, its, strict=True) if pair[0] is not None]
        assert all(np.array_equal(*pair, equal_nan=True) for pair in pairs)
    assert [len(a) for a in one] != [len(a) for a in other] or any(
        not np.array_equal(np.shape(a[0]), np.shape(b[0])) for a, b in zip(one, other, strict=True)
    )


def test_private_blocks_are_others_than_the_public_ones():
    for name, macro in (("sums", "BLOCK"), ("gemm", "TILE")):
        exercise = find(name)
        public = {n.defines.get(macro) for s in exercise.steps for n in s.launches}
        hidden = {n.defines.get(macro) for s in Pack.made(3).of(exercise) for n in s.launches}
        assert hidden - public - {None}, name


def test_cases_are_as_many_as_asked_and_no_mistake_is_known_of_them():
    hidden = Pack.made(1, 8).of(MAP)
    assert all(isinstance(s, KernelStep) and len(s.launches) <= 2 for s in hidden)
    assert MAP.with_steps(hidden).mistakes == [] and MAP.mistakes


@pytest.mark.parametrize(
    "text", ["seed = 'a'", "seed = true", "seed = -1", "cases = 3", "seed = 1\nsed = 2", "seed ="]
)
def test_what_is_no_pack_is_said(text, tmp_path):
    with pytest.raises(ArgumentError, match="tinygraph course private SEED"):
        Pack.read(text)
    with pytest.raises(ArgumentError, match="tinygraph course private SEED"):
        Pack.load(tmp_path / "absent.toml")


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("exercise", exercises(), ids=lambda e: e.name)
def test_the_solution_passes_all_private_cases(exercise):
    """Of one seed: a pack is also tried when it is made."""
    found = graded(exercise, {exercise.file: exercise.solution.encode()}, Pack.made(1, 12))
    failed = {step: one for step, one in found["private"].items() if not one["ok"]}
    assert not failed and len(found["private"]) == len(found["has_private"]) > 0


def overfitted(exercise, old, new):
    """What the grader says of an edited solution, and which steps fail their private cases."""
    assert exercise.solution.count(old) == 1
    text = exercise.solution.replace(old, new)
    found = graded(exercise, {exercise.file: text.encode()}, Pack.made(7, 40))
    return found, [int(step) for step, one in found["private"].items() if not one["ok"]]


@pytest.mark.second
def test_a_kernel_for_the_sizes_that_were_seen_passes_the_public_cases_alone():
    found, failed = overfitted(
        MAP,
        "    if (i < n)\n        y[i] = x[i] <",
        "    if (i < n && n < 300)\n        y[i] = x[i] <",
    )
    assert found["public"]["ok"] and failed == [1]
    assert found["private"]["1"]["failure"]["mistake"] is None


def unseen(seed, count):
    """A private case of the first step that is none of the public ones."""
    public, private = POOL.steps[0], Pack.made(seed, count).of(POOL)[0]
    seen = {*public.cases, *drawn(public.drawn(), public.examples, public.seed)}
    return max(set(drawn(private.drawn(), private.examples, private.seed)) - seen)


@pytest.mark.second
def test_a_function_for_the_cases_that_were_seen_passes_the_public_ones_alone():
    case = unseen(7, 40)
    old, right = "return (size - kernel) // stride + 1", "(size - kernel) // stride + 1"
    found, failed = overfitted(
        POOL, old, f"return 99 if (size, kernel, stride) == {case} else {right}"
    )
    assert found["public"]["ok"] and failed == [1]
    assert "99" in found["private"]["1"]["failure"]["got"]


@pytest.mark.second
def test_what_the_code_prints_of_a_private_case_is_not_kept():
    right = "(size - kernel) // stride + 1"
    wrong = f"99 if (size, kernel, stride) == {unseen(7, 40)} else {right}"
    own = f"print('seen', size)\n    return {wrong}"
    text = POOL.solution.replace(f"return {right}", own, 1)
    found = graded(POOL, {POOL.file: text.encode()}, Pack.made(7, 40))
    assert "seen" in found["public"]["printed"]
    assert found["private"]["1"]["failure"]["got"] == "99"
    assert "seen" not in json.dumps(found["private"])


@pytest.mark.second
def test_a_pack_is_written_by_a_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "tinygraph_course.commands.teach.exercises", lambda: [POOL, find("gradcheck")]
    )
    assert main(["course", "private", "9", str(tmp_path / "pack.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["without"] for row in found["exercises"]] == [[], [3, 4]]
    assert Pack.load(tmp_path / "pack.toml").seed == 9
