"""tune=True: what is tried, that measuring changes nothing, and that a choice can be taken over."""

import json

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import images, network_with_statistics, small_network, step_of
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.plan import tuning
from tinygraph.plan.tuning import Candidate, Choice, Tuning, candidates_for


@pytest.fixture
def clock(monkeypatch):
    """Runs are not timed; the plan that a test prefers is said to be fast."""
    made = []

    def prefer(threads, tile):
        def seconds(plan, arguments):
            plan.rehearse(arguments)
            made.append(Candidate(plan.threads, plan.tile))
            return 1.0 if made[-1] == (threads, tile) else 2.0

        monkeypatch.setattr(tuning, "_timed", seconds)
        monkeypatch.setattr(tuning, "cores", lambda: 2)
        return made

    return prefer


def trained(make, batches=(20, 20, 13, 20), **options):
    tg.manual_seed(3)
    model = make()
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = tg.compile(step_of(model, rule), **options)
    losses = [run(*images(i, n)).item() for i, n in enumerate(batches)]
    return losses, [a.tobytes() for a in model.state_dict().values()], run


@pytest.mark.parametrize("threads, tile", [(1, 0), (2, 5), (2, 10), (1, 10)])
def test_measuring_changes_nothing(clock, threads, tile):
    """Dropout draws what it would have drawn, momentum and parameters move once for each step."""
    clock(threads, tile)
    found = trained(small_network, batches=(20, 20), tune=True)
    assert found[2].tuning.choices[0].threads == threads
    assert found[2].tuning.choices[0].tile == tile
    fixed = {"threads": threads, "tile": tile} if tile else {"tile": 20}
    assert found[:2] == trained(small_network, batches=(20, 20), **fixed)[:2]


def test_each_batch_size_is_tuned_once_and_the_table_tells(clock):
    made = clock(2, 5)
    run = trained(small_network, tune=True)[2]
    assert [c.arguments for c in run.tuning.choices] == [
        ("float32[20, 1, 8, 8]", "int64[20]"),
        ("float32[13, 1, 8, 8]", "int64[13]"),
    ]
    assert set(made) == {Candidate(2, 10), (2, 5), (1, 10), (1, 0), (2, 7), (2, 3), (1, 6)}
    second, first = run.explain().split("\n\n")
    assert "tuned: tiles of 5 on 2 threads; measured: " in first
    assert "the whole batch 2000 ms" in first and "tiles of 5 samples, 4 in all" in first
    assert "tuned: " in second


def test_threads_that_are_far_behind_are_tried_once(clock, monkeypatch):
    clock(0, 0)
    tried = []

    def seconds(plan, arguments):
        tried.append(Candidate(plan.threads, plan.tile))
        return 0.1 * plan.tile if plan.threads == 2 else 50.0

    monkeypatch.setattr(tuning, "_timed", seconds)
    run = trained(small_network, batches=(20,), tune=True)[2]
    (choice,) = run.tuning.choices
    assert (choice.threads, choice.tile) == (2, 5)
    # The whole batch comes first, when nothing is known yet; then one tile on one thread.
    assert tried.count(Candidate(1, 10)) == 1 and tried.count(Candidate(1, 0)) == 1 + tuning.ROUNDS
    assert choice.milliseconds == {
        "the whole batch": 50e3,
        "tiles of 10 on 2 threads": 1e3,
        "tiles of 5 on 2 threads": 500.0,
        "tiles of 10 on 1 thread": 50e3,
    }


def test_real_times_are_kept(monkeypatch):
    monkeypatch.setattr(tuning, "cores", lambda: 2)
    run = trained(small_network, batches=(20,), tune=True)[2]
    (choice,) = run.tuning.choices
    chosen = choice.milliseconds[str(Candidate(choice.threads, choice.tile))]
    assert 2 <= len(choice.milliseconds) <= 4 and 0 < chosen < 5e3


def test_a_choice_is_taken_over(clock, monkeypatch):
    clock(1, 10)
    first = trained(small_network, tune=True)
    saved = json.loads(json.dumps(first[2].tuning.to_list()))
    monkeypatch.setattr(tuning, "fastest", None)  # whoever measures fails

    tg.manual_seed(3)
    model = small_network()
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = tg.compile(step_of(model, rule), tune=True)
    run.tuning.load(saved)
    losses = [run(*images(i, n)).item() for i, n in enumerate((20, 20, 13, 20))]
    assert losses == first[0]
    assert [a.tobytes() for a in model.state_dict().values()] == first[1]
    assert run.tuning.to_list() == saved


def test_what_cannot_be_cut_is_not_tuned(monkeypatch):
    monkeypatch.setattr(tuning, "fastest", None)
    losses, _, run = trained(network_with_statistics, (20, 20), tune=True)
    assert losses == trained(network_with_statistics, (20, 20))[0]
    (choice,) = run.tuning.choices
    assert choice.reason == "batch_norm writes one of its inputs" and not choice.milliseconds
    assert run.explain().endswith(f"tuned: the whole batch; nothing to choose: {choice.reason}")
    again = Tuning()
    again.load(json.loads(json.dumps(run.tuning.to_list())))
    assert again.choices == [choice]


def test_gradients_that_are_added_up_and_several_backwards(clock):
    """A function that differentiates, and leaves the gradients that were there."""
    clock(2, 2)
    w = tg.Parameter(np.ones((1, 3)))
    w.grad = np.full((1, 3), 10.0)
    x = np.arange(24.0).reshape(8, 3)

    @tg.compile
    def plain(x):
        loss = tg.sum(tg.linear(x, w) * 2.0)
        loss.backward()
        return loss

    tuned = tg.compile(plain.fn, tune=True)
    tuned(x)
    np.testing.assert_array_equal(w.grad, 10 + 2 * x.sum(axis=0, keepdims=True))
    assert (tuned.tuning.choices[0].threads, tuned.tuning.choices[0].tile) == (2, 2)


def test_candidates(monkeypatch):
    monkeypatch.setattr(tuning, "cores", lambda: 6)
    run = trained(small_network, batches=(20,))[2]
    (found,) = run._found
    plan = found.plans[0]
    counts = {c.threads for c in candidates_for(plan, None, None) if c.tile}
    assert counts == {6, 4, 2, 1}
    assert {c.threads for c in candidates_for(plan, 3, None) if c.tile} == {3}
    assert {c.tile for c in candidates_for(plan, None, 2)} <= {plan.tile, 2}
    assert candidates_for(plan, None, None)[0] == (plan.threads, plan.tile)


@pytest.mark.parametrize(
    "saved, words",
    [
        (3, "TypeError"),
        ([{"threads": 2}], "KeyError"),
        (
            [{"threads": 0, "tile": 1, "code": "", "arguments": [], "milliseconds": {}}],
            "threads: expected an int of at least 1, got 0",
        ),
        (
            [{"threads": 1, "tile": 1, "code": "", "arguments": [], "milliseconds": [1]}],
            "Attribute",
        ),
    ],
)
def test_damaged_choices(saved, words):
    with pytest.raises(CheckpointError, match=words):
        Tuning().load(saved)


def test_nothing_left_to_tune():
    with pytest.raises(ArgumentError, match="threads or tile left open"):
        tg.compile(lambda x: x, tune=True, threads=2, tile=8)


def test_a_choice_in_words():
    choice = Choice(("float32[8, 2]",), "abc", 1, 0, {"the whole batch": 1.25})
    assert str(choice) == "tuned: the whole batch; measured: the whole batch 1.25 ms"
