"""What a compiled function takes and finds besides arrays tells its plans apart."""

import random
import re
import sys
import warnings
from dataclasses import dataclass, field
from functools import partial
from random import choice
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numpy import random as npr

import tinygraph as tg
from tests.plan.networks import F
from tinygraph import nn, optim
from tinygraph.base.errors import PlanWarning
from tinygraph.plan.bytecode import chains_of

ONES = np.ones(3, F)


# ---- arguments -----------------------------------------------------------------------------------


@dataclass
class Settings:
    scale: float
    names: list = field(default_factory=lambda: ["a"])


@dataclass(frozen=True)
class Frozen:
    scale: object
    inner: Settings


class Pair(NamedTuple):
    scale: float
    flag: bool = True


STRUCTURES = {
    "namespace": lambda s: SimpleNamespace(scale=s),
    "dataclass": Settings,
    "frozen dataclass": lambda s: Frozen(s, Settings(0.0)),
    "with an array": lambda s: Frozen(np.array(s, F), Settings(0.0)),
    "named tuple": Pair,
    "in a list in a dict": lambda s: Frozen([{"s": s}][0]["s"], Settings(2.0)),
}


@pytest.mark.parametrize("make", STRUCTURES.values(), ids=STRUCTURES)
def test_structures_are_taken_apart(make):
    """Made anew at each call: the memory of one that is gone may be that of the next."""
    run = tg.compile(lambda x, cfg: tg.sum(x * cfg.scale))
    assert [run(ONES, make(s)).item() for s in (1, 1, 5, 7, 5)] == [3, 3, 15, 21, 15]
    assert run.reasons == []


def test_structures_leave_as_they_came():
    run = tg.compile(lambda x: SimpleNamespace(y=x * 2, pair=Pair(x + 1, x)))
    for _ in range(3):
        out = run(ONES)
        assert out.y.numpy().tolist() == [2] * 3 and type(out.pair) is Pair
        assert out.pair.scale.numpy().tolist() == [2] * 3


def test_what_cannot_be_taken_apart_runs_as_it_stands_and_says_so_once():
    class Opaque:
        def __init__(self, scale):
            self.scale = scale

    run = tg.compile(lambda x, cfg: tg.sum(tg.mul(x, cfg.scale)))
    with pytest.warns(PlanWarning, match="its arguments hold a Opaque. Way out") as caught:
        assert [run(ONES, Opaque(s)).item() for s in (1, 1, 5, 7)] == [3, 3, 15, 21]
    assert len(caught) == 1 and caught[0].filename == __file__


def test_floats_that_are_equal_and_not_the_same():
    run = tg.compile(lambda x, s: x / s)
    assert [run(ONES, s).numpy()[0] for s in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]
    for _ in range(3):
        run(ONES, float("nan"))
    assert len(run._found) == 3


def test_models_and_optimisers_as_arguments():
    def step(model, rule, x, factor):
        loss = tg.sum(model(x) * factor)
        rule.zero_grad()
        loss.backward()
        rule.step()
        return loss

    def trained(run):
        tg.manual_seed(0)
        models = [nn.Linear(3, 2), nn.Linear(3, 2)]
        rules = [optim.SGD(m.parameters(), lr=0.1) for m in models]
        found = [run(models[i % 2], rules[i % 2], ONES[None], i < 3).item() for i in range(8)]
        return found, [p.value for m in models for p in m.parameters()]

    run = tg.compile(step)
    (ours, mine), (theirs, want) = trained(run), trained(step)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for a, b in zip(mine, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert run.reasons == [] and len(run._found) == 4


# ---- what is found elsewhere ---------------------------------------------------------------------

factor = 1.0  # what the functions below read
config = {"rate": 1.0, "more": [1.0]}


class Slotted:
    __slots__ = ("factor",)


class Found:
    """Places where a function may find a number."""

    of_class = 1.0

    def __init__(self):
        self.factor, self.inner, self.items = 1.0, SimpleNamespace(factor=1.0), [1.0]
        self.slotted = Slotted()
        self.slotted.factor = 1.0
        self.model = nn.Sequential(nn.Dropout(0.0), nn.Linear(3, 3))

    @property
    def twice(self):
        return 2 * self.factor

    def scaled(self, x):
        return x * self.factor

    def __call__(self, x):
        return self.scaled(x)


def scaled_by(holder, x):
    return x * holder.factor


def change_global(_):
    globals()["factor"] = 3.0


def change_config(_):
    config["rate"] = 3.0


def alias(f):
    def run(x):
        inner = f.inner
        return x * inner.factor

    return run


def closure(f):
    factor = 1.0

    def inner(x):
        return x * factor

    def change(_):
        nonlocal factor
        factor = 3.0

    return (lambda x: inner(x)), change


def branch(f):
    return lambda x: x * 3.0 if f.factor > 2 else x


def attribute(name, value=3.0):
    return lambda f: setattr(f, name, value)


WAYS = {
    "global": (lambda f: lambda x: x * factor, change_global),
    "element of a dict": (lambda f: lambda x: x * config["rate"], change_config),
    "attribute": (lambda f: lambda x: x * f.factor, attribute("factor")),
    "branch": (branch, attribute("factor")),
    "attribute of an attribute": (
        lambda f: lambda x: x * f.inner.factor,
        lambda f: setattr(f.inner, "factor", 3.0),
    ),
    "another object": (
        lambda f: lambda x: x * f.inner.factor,
        attribute("inner", SimpleNamespace(factor=3.0)),
    ),
    "local variable": (alias, lambda f: setattr(f.inner, "factor", 3.0)),
    "element of a list": (
        lambda f: lambda x: x * f.items[0],
        lambda f: f.items.__setitem__(0, 3.0),
    ),
    "slot": (
        lambda f: lambda x: x * f.slotted.factor,
        lambda f: setattr(f.slotted, "factor", 3.0),
    ),
    "of the class": (lambda f: lambda x: x * f.of_class, attribute("of_class")),
    "property": (lambda f: lambda x: x * f.twice, attribute("factor")),
    "method": (lambda f: lambda x: f.scaled(x), attribute("factor")),
    "the function's own object": (lambda f: f, attribute("factor")),
    "bound method": (lambda f: f.scaled, attribute("factor")),
    "argument of a function": (lambda f: lambda x: scaled_by(f, x), attribute("factor")),
    "partial": (lambda f: partial(scaled_by, f), attribute("factor")),
    "comprehension": (
        lambda f: lambda x: sum((x * f.factor for _ in range(2)), start=np.zeros(3, F)),
        attribute("factor"),
    ),
    "a layer's setting": (lambda f: f.model, lambda f: setattr(f.model[0], "p", 0.5)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("when", [2, 3, 5])
def test_a_value_that_changes_is_seen_at_the_next_call(way, when, monkeypatch):
    monkeypatch.setitem(globals(), "factor", 1.0)
    monkeypatch.setitem(config, "rate", 1.0)
    make, change = way

    def results(compiled):
        globals()["factor"] = config["rate"] = 1.0
        tg.manual_seed(1)
        found = Found()
        run = tg.compile(make(found)) if compiled else make(found)
        values = []
        for call in range(7):
            if call == when:
                change(found)
            tg.manual_seed(call)
            values.append(np.asarray(run(ONES)))
        return values, run

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours, run = results(True)
    for a, b in zip(ours, results(False)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert not np.array_equal(ours[0], ours[-1]) and len(run._found) == 2


def test_a_closure_variable_that_changes():
    inner, change = closure(None)
    run = tg.compile(inner)
    assert [run(ONES).numpy()[0] for _ in range(3)] == [1.0] * 3
    change(None)
    assert [run(ONES).numpy()[0] for _ in range(3)] == [3.0] * 3


def test_another_optimiser():
    w = tg.Parameter([1.0])
    owner = SimpleNamespace(rule=optim.SGD([w], lr=1.0))

    @tg.compile
    def step():
        owner.rule.zero_grad()
        loss = tg.sum(w * 1.0)
        loss.backward()
        owner.rule.step()
        return loss

    for _ in range(3):
        step()
    assert w.value == -2
    owner.rule = optim.SGD([w], lr=10.0)
    step()
    assert w.value == -12 and len(step._found) == 2


def test_a_rate_that_a_schedule_changes_makes_no_other_plan():
    w = tg.Parameter([1.0])
    rule = optim.SGD([w], lr=1.0, momentum=0.5)
    schedule = optim.StepLR(rule, step_size=1, gamma=0.5)

    @tg.compile
    def step(x):
        rule.zero_grad()
        loss = tg.sum(w * x)
        loss.backward()
        rule.step()
        return loss

    for _ in range(20):
        step(np.ones(1, F))
        schedule.step()
    assert len(step._found) == 1 and step.reasons == []


def test_a_number_that_is_another_one_at_each_call_is_told_once():
    anneal = SimpleNamespace(weight=0.0)
    run = tg.compile(lambda x: x * anneal.weight)
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlanWarning)
        for i in range(40):
            anneal.weight = float(i)
            found.append(run(ONES).numpy()[0])
    assert found == list(range(40)) and len(run._found) == 4
    (said,) = [str(w.message) for w in caught]
    assert "more than 4 plans" in said and "(anneal.weight is another one in each)" in said


class Noisy:
    def __init__(self):
        self.python, self.numpy = random.Random(0), np.random.default_rng(0)


noisy = Noisy()
DRAWS = {
    "random.random": lambda x: x * (random.random() < 0.1),
    "choice": lambda x: x * choice([1.0, 1.0, 1.0, 2.0]),
    "np.random.rand": lambda x: x * (np.random.rand() < 0.1),
    "npr.randint": lambda x: x * npr.randint(1, 9),
    "noisy.python.uniform": lambda x: x * (noisy.python.uniform(0, 1) < 0.1),
    "noisy.numpy.integers": lambda x: x * (noisy.numpy.integers(9) < 1),
}


@pytest.mark.parametrize("named", DRAWS)
def test_what_draws_from_a_generator_is_no_plan(named):
    """A coin that mostly falls on one side could go unnoticed for long."""
    run = tg.compile(DRAWS[named])
    with pytest.warns(PlanWarning, match=re.escape(f"it draws from a generator ({named}), which")):
        run(ONES)
    assert "as it stands" in run.explain()


def test_a_generator_that_is_made_with_a_seed_is_no_draw():
    def fixed(x):
        a = np.random.default_rng(3).random() + random.Random(3).random()
        return x * a * np.random.RandomState(3).rand()

    run = tg.compile(fixed)
    assert [run(ONES).numpy()[0] for _ in range(3)] == [fixed(ONES)[0].astype(F)] * 3
    assert run.reasons == []


def test_only_what_has_changed_is_named():
    """Several layers read names that are alike."""
    layers, count = [nn.Linear(3, 3), nn.Linear(3, 3)], {"now": 0}

    def both(x):
        return layers[1](layers[0](x)) * count["now"]

    run = tg.compile(both)
    with pytest.warns(
        PlanWarning, match=re.escape("besides (count['now'] is another one in each)")
    ):
        for count["now"] in range(6):
            run(np.ones((2, 3), np.float32))


def test_beside_a_profiler_changes_are_noticed_when_it_is_traced_again():
    """Readings take the place of a profiler, and leave one that is there alone."""
    found = Found()
    run = tg.compile(lambda x: x * found.factor)
    events = []
    sys.setprofile(lambda *event: events.append(event))
    try:
        run(ONES)
    finally:
        sys.setprofile(None)
    assert events
    found.factor = 3.0
    with pytest.warns(PlanWarning, match="mul took 1.0 at one call and 3.0"):
        assert run(ONES).numpy()[0] == 3.0
    run(ONES)
    assert sys.getprofile() is None


def told_of(function, is_target=False):
    return [
        (c.kind, ".".join([c.name, *[str(key) for _, key in c.steps]]))
        for c in chains_of(function.__code__)
        if c.is_target is is_target
    ]


def test_chains_that_are_written():
    def write(self, other):
        global factor
        self.inner.calls += 1
        config["rate"] = other.a
        del self.b
        factor = other.c

    reads = [("local", "self.inner.calls"), ("local", "other.a"), ("local", "other.c")]
    assert told_of(write) == reads
    assert told_of(write, is_target=True) == [
        ("global", "config.rate"),
        ("local", "self.b"),
        ("global", "factor"),
    ]


def test_chains_of_bytecode():
    def read(self, x):
        inner = self.inner
        x = x + inner.a.b + factor
        for self_made in x:
            self_made.c()
        return config["more"][0] + self.inner["k"].d

    assert told_of(read) == [
        ("local", "self.inner"),
        ("local", "self.inner.a.b"),
        ("global", "factor"),
        ("global", "config.more.0"),
        ("local", "self.inner.k.d"),
    ]
