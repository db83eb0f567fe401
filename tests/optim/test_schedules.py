"""Schedules against their closed forms and PyTorch's rates; saving, resuming, chains, refusals."""

from __future__ import annotations

import json
import math
from functools import partial

import pytest

import tinygraph as tg
from tests.optim.expected import TORCH
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.optim import (
    SGD,
    Adagrad,
    Adam,
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LinearWarmup,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    Schedule,
    SequentialLR,
    StepLR,
)


def sgd(*rates):
    return SGD([{"params": [tg.Parameter([1.0])], "lr": lr} for lr in rates or (0.8,)], lr=9.0)


def rates(schedule, steps, group=0):
    """The learning rate before each step and after the last."""
    seen = [schedule.optimizer.groups[group]["lr"]]
    for _ in range(steps):
        schedule.step()
        seen.append(schedule.optimizer.groups[group]["lr"])
    return seen


@pytest.mark.parametrize("case", TORCH["schedules"], ids=lambda c: str(list(c.values())[:2]))
def test_equals_pytorch(case):
    schedule = getattr(tg.optim, case["schedule"])(sgd(), **case["settings"])
    assert rates(schedule, 12) == pytest.approx(case["rates"], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("case", TORCH["plateau"]["cases"], ids=lambda c: str(c["settings"]))
def test_plateau_equals_pytorch(case):
    schedule, seen = ReduceLROnPlateau(sgd(), **case["settings"]), []
    for metric in TORCH["plateau"]["metrics"]:
        schedule.step(metric)
        seen.append(schedule.optimizer.groups[0]["lr"])
    assert seen == pytest.approx(case["rates"], rel=1e-12)


@pytest.mark.parametrize("case", TORCH["one_cycle"], ids=lambda c: str(c["settings"]))
@pytest.mark.parametrize(("kind", "key"), [(SGD, "momentum"), (Adam, "betas")])
def test_one_cycle_equals_pytorch(case, kind, key):
    more = {"momentum": 0.9} if key == "momentum" else {}
    optimizer = kind([tg.Parameter([1.0])], lr=0.8, **more)
    schedule = OneCycleLR(optimizer, max_lr=2.0, **case["settings"])
    (group,) = optimizer.param_groups
    for step, (lr, momentum) in enumerate(case[key]):
        assert group["lr"] == pytest.approx(lr, rel=1e-12, abs=1e-12), step
        assert group[key] == pytest.approx(
            tuple(momentum) if key == "betas" else momentum, rel=1e-12
        ), step
        if step < 12:
            schedule.step()


def test_one_cycle_without_momentum_and_after_its_end():
    plain = sgd(1.0)
    adagrad = Adagrad([tg.Parameter([1.0])])
    with pytest.raises(ArgumentError, match=r"cycle_momentum: expected an optimizer with momentum"):
        OneCycleLR(adagrad, 1.0, 5)
    schedule = OneCycleLR(plain, [1.0], 3, cycle_momentum=False)
    rates(schedule, 2)
    with pytest.raises(ArgumentError, match="at most 2 steps, as total_steps says, got step 3"):
        schedule.step()


def sequence():
    optimizer = sgd(0.8)
    warm = LinearLR(optimizer, start_factor=0.1, total_iters=3)
    same = ConstantLR(optimizer, factor=1.0, total_iters=1)
    fall = ExponentialLR(optimizer, gamma=0.5)
    return SequentialLR(optimizer, [warm, same, fall], milestones=[3, 5])


def test_sequential_equals_pytorch():
    assert rates(sequence(), 12) == pytest.approx(TORCH["sequential"], rel=1e-12)


@pytest.mark.parametrize("done", [0, 2, 3, 6])
def test_sequential_goes_on_where_it_was_saved(done):
    whole, first, again = sequence(), sequence(), sequence()
    expected = rates(whole, 9)
    rates(first, done)
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert rates(again, 9 - done) == expected[done:]


def test_lambdas_one_for_all_groups_or_one_for_each():
    assert rates(LambdaLR(sgd(1.0), lambda t: 0.5**t), 2) == [1, 0.5, 0.25]
    each = LambdaLR(sgd(1.0, 2.0), [lambda t: t, lambda t: 1.0])
    each.step()
    assert each.get_last_lr() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda o: LambdaLR(o, [abs, abs]), "lr_lambda: expected a function, or 1, one for each"),
        (lambda o: LambdaLR(o, 3), "lr_lambda"),
        (lambda o: MultiStepLR(o, [1, -1]), "milestones"),
        (lambda o: OneCycleLR(o, 1.0), "expected total_steps, or epochs and steps_per_epoch"),
        (lambda o: OneCycleLR(o, [1.0, 2.0], 5), "max_lr: expected one number, or 1"),
        (lambda o: OneCycleLR(o, 1.0, 5, anneal_strategy="cosine"), "anneal_strategy"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)], [2]), "milestones: expected 0 rising"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)] * 3, [2, 2]), "milestones: expected 2 rising"),
        (lambda o: SequentialLR(o, [StepLR(sgd(1.0), 1)], []), "of the same optimizer"),
        (lambda o: SequentialLR(o, [ReduceLROnPlateau(o)], []), "in closed form"),
    ],
)
def test_settings_that_cannot_be(make, words):
    with pytest.raises(ArgumentError, match=words):
        make(sgd(1.0))


def test_a_second_schedule_begins_where_the_first_one_began():
    """Not at the rate that the first one has set: as in PyTorch."""
    optimizer = sgd(1.0)
    LinearLR(optimizer, start_factor=0.1)
    assert ExponentialLR(optimizer, 0.5).base_rates == [1.0]


def test_every_group_has_a_base_of_its_own():
    optimizer = sgd(1.0, 0.5)
    schedule = StepLR(optimizer, step_size=2, gamma=0.1)
    assert rates(schedule, 4, group=1) == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005])
    assert optimizer.groups[0]["lr"] == pytest.approx(0.01)


def test_the_cosine_rises_again_after_its_end():
    assert rates(CosineAnnealingLR(sgd(1.0), 2, eta_min=0.25), 5) == pytest.approx(
        [1.0, 0.625, 0.25, 0.625, 1.0, 0.625]
    )


def resumed(make, done):
    """A schedule of a run that goes on: its groups say what their rates were at first."""
    optimizer = sgd()
    optimizer.groups[0] |= {"lr": 77.0, "initial_lr": 0.8}
    return make(optimizer, last_epoch=done - 1)


@pytest.mark.parametrize("done", [1, 4])
@pytest.mark.parametrize(
    "make",
    [
        partial(StepLR, step_size=2),
        partial(MultiStepLR, milestones=[0, 2, 3]),
        partial(ExponentialLR, gamma=0.9),
        partial(CosineAnnealingLR, T_max=6),
        partial(LinearLR, total_iters=5),
        partial(ConstantLR, total_iters=3),
        partial(PolynomialLR, total_iters=6),
        partial(LambdaLR, lr_lambda=lambda t: 1 / (1 + t)),
        partial(OneCycleLR, max_lr=1.0, total_steps=9),
    ],
    ids=lambda make: make.func.__name__,
)
def test_last_epoch_begins_in_the_middle(make, done):
    whole, rest = make(sgd()), resumed(make, done)
    assert (whole.last_epoch, rest.last_epoch) == (0, done)
    assert rates(rest, 3) == pytest.approx(rates(whole, done + 3)[done:], rel=1e-12)


def test_last_epoch_needs_the_rates_of_the_beginning():
    words = r"StepLR: last_epoch: expected -1, or 'initial_lr' .* Way out: schedule.load_state_dict"
    with pytest.raises(ArgumentError, match=words):
        StepLR(sgd(), 2, last_epoch=3)
    with pytest.raises(ArgumentError, match="last_epoch: expected an int of at least -1"):
        StepLR(sgd(), 2, last_epoch=-2)
    optimizer = sgd()
    StepLR(optimizer, 1).step()
    assert StepLR(optimizer, 2, last_epoch=3).get_last_lr() == pytest.approx([0.8 * 0.1**2])
    given = SGD([{"params": [tg.Parameter([1.0])], "initial_lr": 0.5}], lr=0.25)
    assert ExponentialLR(given, 0.5, last_epoch=0).get_last_lr() == [0.25]


def test_a_milestone_at_the_beginning_counts_at_once():
    """As in PyTorch, whose rates of milestones [0, 3] from 0.5 are these."""
    assert rates(MultiStepLR(sgd(0.5), [0, 3], gamma=0.5), 3) == [0.25, 0.25, 0.25, 0.125]


def test_warmup_alone():
    expected = [0.8 * (1 / 3 + 2 / 3 * min(t, 5) / 5) for t in range(9)]
    assert rates(LinearWarmup(sgd(), 5), 8) == pytest.approx(expected, rel=1e-12)
    assert rates(LinearWarmup(sgd(), 2, start_factor=0.0), 3) == pytest.approx([0, 0.4, 0.8, 0.8])


def test_warmup_before_a_cosine():
    optimizer = sgd(1.0, 0.5)
    schedule = LinearWarmup(optimizer, 4, 0.2, then=CosineAnnealingLR(optimizer, 6, eta_min=0.1))
    line = [0.2, 0.4, 0.6, 0.8]
    curve = [0.1 + 0.9 * (1 + math.cos(math.pi * t / 6)) / 2 for t in range(7)]
    assert rates(schedule, 10) == pytest.approx([*line, *curve], rel=1e-12)


def test_warmup_before_a_warmup_before_a_staircase():
    optimizer = sgd(1.0)
    inner = LinearWarmup(optimizer, 2, 0.5, then=StepLR(optimizer, 1, 0.5))
    schedule = LinearWarmup(optimizer, 2, 0.0, then=inner)
    assert rates(schedule, 6) == pytest.approx([0.0, 0.5, 0.5, 0.75, 1.0, 0.5, 0.25])


def test_warmup_before_a_plateau():
    optimizer = sgd(1.0)
    plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    schedule, seen = LinearWarmup(optimizer, 2, 0.5, then=plateau), []
    for metric in (9.0, 9.0, 5.0, 5.0, 5.0):
        schedule.step(metric)
        seen.append(optimizer.groups[0]["lr"])
    assert seen == [0.75, 1.0, 1.0, 0.5, 0.25], "metrics of the warm-up do not count"


CHAINS = {
    "StepLR": lambda o: StepLR(o, 3),
    "CosineAnnealingLR": lambda o: CosineAnnealingLR(o, 7),
    "LinearWarmup": lambda o: LinearWarmup(o, 4, then=CosineAnnealingLR(o, 3)),
    "Plateau": lambda o: LinearWarmup(o, 2, then=ReduceLROnPlateau(o, patience=1)),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("stop", [0, 3, 6])
def test_a_resumed_schedule_equals_one_that_never_stopped(chain, stop):
    metrics = [5.0, 5.0, 5.0, 5.0, 4.0, 6.0, 6.0, 6.0, 6.0, 6.0]
    straight = CHAINS[chain](sgd(0.8, 0.2))
    first = CHAINS[chain](sgd(0.8, 0.2))
    for metric in metrics[:stop]:
        straight.step(metric)
        first.step(metric)
    saved = json.loads(json.dumps(first.state_dict()))
    second = CHAINS[chain](sgd(77.0, 78.0))
    second.load_state_dict(saved)
    for metric in [*metrics[stop:], None]:
        for a, b in zip(second.optimizer.groups, straight.optimizer.groups, strict=True):
            assert a["lr"] == b["lr"]
        if metric is not None:
            second.step(metric)
            straight.step(metric)


def test_resuming_after_the_optimizers_own_state_was_loaded():
    """The optimiser's state holds the present rate; the schedule's holds the base."""
    optimizer = sgd(1.0)
    schedule = StepLR(optimizer, 1, 0.5)
    schedule.step()
    again = sgd(1.0)
    again.load_state_dict(optimizer.state_dict())
    resumed = StepLR(again, 1, 0.5)
    resumed.load_state_dict(schedule.state_dict())
    assert again.groups[0]["lr"] == 0.5
    resumed.step()
    assert again.groups[0]["lr"] == 0.25


@pytest.mark.parametrize(
    "saved",
    [
        None,
        {},
        {"schedule": "CosineAnnealingLR", "steps": 1, "base_rates": [1.0]},
        {"schedule": "StepLR", "steps": 1, "base_rates": [1.0, 2.0]},
        {"schedule": "StepLR", "steps": 1, "base_rates": [1.0], "then": None},
    ],
)
def test_states_that_do_not_fit(saved):
    schedule = StepLR(sgd(), 2)
    with pytest.raises(CheckpointError, match="StepLR: saved"):
        schedule.load_state_dict(saved)
    assert schedule.steps == 0 and schedule.optimizer.groups[0]["lr"] == 0.8


def test_a_chain_that_does_not_fit_changes_nothing():
    optimizer, other = sgd(), sgd()
    schedule = LinearWarmup(optimizer, 2, 0.5, then=StepLR(optimizer, 1))
    saved = LinearWarmup(other, 2, then=CosineAnnealingLR(other, 5)).state_dict()
    for state in (saved, LinearWarmup(other, 2).state_dict()):
        with pytest.raises(CheckpointError):
            schedule.load_state_dict({**state, "steps": 7})
        assert schedule.steps == 0 and optimizer.groups[0]["lr"] == pytest.approx(0.4)
    with pytest.raises(CheckpointError, match="nothing after"):
        LinearWarmup(other, 2).load_state_dict(saved)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda o: StepLR(3, 1), "StepLR: optimizer: expected an Optimizer"),
        (lambda o: StepLR(o, 0), "step_size: expected an int of at least 1, got 0"),
        (lambda o: StepLR(o, 2.5), "step_size"),
        (lambda o: StepLR(o, 1, gamma=-1), "gamma: expected a number of at least 0"),
        (lambda o: CosineAnnealingLR(o, None), "T_max"),
        (lambda o: CosineAnnealingLR(o, 1, eta_min="a"), "eta_min"),
        (lambda o: LinearWarmup(o, -1), "total_iters"),
        (lambda o: LinearWarmup(o, 1, 1.5), "start_factor: expected a number from 0 to 1"),
        (lambda o: LinearWarmup(o, 1, then=StepLR(sgd(), 1)), "same optimizer"),
        (lambda o: LinearWarmup(o, 1, then=o), "same optimizer"),
        (
            lambda o: ReduceLROnPlateau(o, mode="least"),
            "mode: expected 'min' or 'max', got 'least'",
        ),
        (lambda o: ReduceLROnPlateau(o, threshold_mode="x"), "threshold_mode"),
        (lambda o: ReduceLROnPlateau(o, factor=1.0), "factor: expected a number from 0 to below 1"),
        (lambda o: ReduceLROnPlateau(o, patience=-1), "patience"),
        (lambda o: ReduceLROnPlateau(o, min_lr=-1), "min_lr"),
        (lambda o: ReduceLROnPlateau(o).step(), "metric: expected a number, got none"),
        (lambda o: Schedule(o).step(), "define rate"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ArgumentError, match=words):
        make(sgd())
