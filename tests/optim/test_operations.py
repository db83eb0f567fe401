"""How many operations an update is counted to do, beside the count of its formula by hand."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.optim import SGD, Adadelta, Adagrad, Adam, AdamW, Lion, RMSprop
from tinygraph.watch.stopwatch import Stopwatch


def operations(lap):
    return {key: cost.operations for key, cost in lap.costs.items()}


def lap_of(rule):
    with Stopwatch() as lap:
        rule.step()
    return lap


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    "kind, settings, by_hand",
    [
        (SGD, {}, (2, 2)),  # lr * d, value - that
        (SGD, {"weight_decay": 0.1}, (4, 4)),
        (SGD, {"momentum": 0.9}, (2, 4)),  # at first b = g
        (SGD, {"momentum": 0.9, "dampening": 0.5}, (2, 5)),
        (SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, (6, 8)),
        (Adam, {}, (12, 12)),
        (Adam, {"amsgrad": True, "weight_decay": 0.1}, (14, 14)),
        (AdamW, {"weight_decay": 0.0}, (12, 12)),
        (AdamW, {}, (13, 13)),
        (Adadelta, {}, (16, 16)),
        (Adadelta, {"weight_decay": 0.1}, (18, 18)),
        (Adagrad, {}, (7, 7)),
        (Adagrad, {"weight_decay": 0.1, "lr_decay": 0.1}, (9, 9)),
        (Lion, {}, (8, 8)),
        (Lion, {"weight_decay": 0.1}, (9, 9)),
        (RMSprop, {}, (9, 9)),
        (RMSprop, {"centered": True, "momentum": 0.9, "weight_decay": 0.1}, (18, 18)),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_those_of_an_update_are_those_of_its_formula(kind, settings, by_hand, steps, device):
    w = tg.Parameter(np.ones((3, 5)), device=device)
    w.grad = np.full((3, 5), 0.5)
    rule = kind([w], **{"lr": 0.1, **settings})
    laps = [lap_of(rule) for _ in range(steps)]
    assert operations(laps[-1]) == {("update", kind.__name__): by_hand[steps > 1] * 15}


def test_counting_changes_nothing():
    """A step that is counted leaves the bits of one that is not."""
    found = []
    for count in (False, True):
        w = tg.Parameter(np.arange(5.0))
        rule = Adam([w])
        for _ in range(3):
            w.grad = np.arange(5.0) - 2
            lap_of(rule) if count else rule.step()
        found.append([w.value.tobytes(), rule.state_dict()])
    np.testing.assert_equal(found[0], found[1])


def test_a_step_counts_what_it_updates():
    """Groups with settings of their own; a parameter without a gradient is passed over."""
    a, b, c = (tg.Parameter(np.ones(n, np.float32)) for n in (3, 5, 7))
    rule = SGD([{"params": [a, c]}, {"params": [b], "weight_decay": 0.1}], lr=0.1, momentum=0.9)
    for p in (a, b):
        p.grad = np.ones(p.shape, np.float32)
    first, second = lap_of(rule), lap_of(rule)
    key = "update", "SGD"
    assert operations(first) == {key: 2 * 3 + 4 * 5}
    assert operations(second) == {key: 4 * 3 + 6 * 5}
    assert second.costs[key].bytes == 4 * 3 * (3 + 5)  # value, gradient and momentum of a and b


def test_a_rule_of_a_user_is_counted_unless_it_does_more_than_arithmetic():
    class Halve(tg.optim.Optimizer):
        def update(self, value, grad, state, scratch, hyper):
            np.multiply(value, 0.5, out=value)

    class Normed(tg.optim.Optimizer):
        def update(self, value, grad, state, scratch, hyper):
            value -= grad / np.sqrt(np.sum(grad**2))

    w = tg.Parameter([1.0, 2.0])
    w.grad = np.ones(2, np.float32)
    assert operations(lap_of(Halve([w]))) == {("update", "Halve"): 2}
    assert operations(lap_of(Normed([w]))) == {("update", "Normed"): None}
