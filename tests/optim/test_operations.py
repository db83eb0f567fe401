"""How many operations an optimiser states, beside a count of what its update really does."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.optim import SGD, Adadelta, Adagrad, Adam, AdamW, RMSprop, SrcnnSGD
from tinygraph.stopwatch import Stopwatch

SHAPE = (3, 5)
COUNTED = {np.add, np.subtract, np.multiply, np.divide, np.sqrt}
FREE = {np.maximum}


class Counting(np.ndarray):
    """An array whose arithmetic is counted, element by element."""

    done = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        assert method == "__call__" and ufunc in COUNTED | FREE, ufunc
        plain = [x.view(np.ndarray) if isinstance(x, Counting) else x for x in inputs]
        target = out[0].view(np.ndarray) if out else None
        found = ufunc(*plain, out=target, **options)
        if ufunc in COUNTED:
            Counting.done += found.size
        return out[0] if out else found.view(Counting)


def counted(kind, settings, steps):
    """Operations of the last of some updates, counted one by one; and the stated ones."""
    w = tg.Parameter(np.ones(SHAPE))
    rule = kind([w], **{"lr": 0.1, **settings})
    value, grad = np.ones(SHAPE).view(Counting), np.full(SHAPE, 0.5).view(Counting)
    scratch = [np.empty(SHAPE).view(Counting) for _ in range(rule.scratch_arrays)]
    state, group = {}, {name: x for name, x in rule.groups[0].items() if name != "params"}
    hyper = rule.prepare(group, w)
    for _ in range(steps):
        first = not state
        Counting.done = 0
        rule.update(value, grad, state, scratch, hyper)
    return Counting.done, rule.operations(group, first) * value.size


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
        (RMSprop, {}, (9, 9)),
        (RMSprop, {"centered": True, "momentum": 0.9, "weight_decay": 0.1}, (18, 18)),
        (SrcnnSGD, {"batch_size": 4}, (5, 5)),
        (SrcnnSGD, {"batch_size": 4, "weight_decay": 0.1}, (7, 7)),
    ],
)
def test_stated_are_those_that_are_done(kind, settings, by_hand, steps):
    done, stated = counted(kind, settings, steps)
    assert done == stated == by_hand[steps > 1] * 15


def lap_of(rule):
    with Stopwatch() as watch, watch.lap():
        rule.step()
    return watch.laps[0]


def test_a_step_counts_what_it_updates():
    """Groups with settings of their own; a parameter without a gradient is passed over."""
    a, b, c = (tg.Parameter(np.ones(n, np.float32)) for n in (3, 5, 7))
    rule = SGD([{"params": [a, c]}, {"params": [b], "weight_decay": 0.1}], lr=0.1, momentum=0.9)
    for p in (a, b):
        p.grad = np.ones(p.shape, np.float32)
    first, second = lap_of(rule), lap_of(rule)
    key = "update", "SGD"
    assert first.operations == {key: 2 * 3 + 4 * 5}
    assert second.operations == {key: 4 * 3 + 6 * 5}
    assert second.counts[key].bytes == 4 * 3 * (3 + 5)  # value, gradient and momentum of a and b


def test_a_rule_that_states_none():
    class Halve(tg.optim.Optimizer):
        def update(self, value, grad, state, scratch, hyper):
            np.multiply(value, 0.5, out=value)

    w = tg.Parameter([1.0])
    w.grad = np.ones(1, np.float32)
    assert lap_of(Halve([w])).operations == {("update", "Halve"): None}
