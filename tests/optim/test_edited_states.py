"""States that were edited: refused by name, and nothing is changed."""

import copy
import math

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import CheckpointError

NO_COUNT = [math.nan, -5, "x", None, [], True, math.inf]


def trained(kind=tg.optim.Adam):
    model = tg.nn.Linear(2, 1)
    optimizer = kind(model.parameters(), lr=0.1)
    tg.sum(model(np.ones((3, 2), np.float32))).backward()
    optimizer.step()
    return model, optimizer


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def edited_optimizer(state, edit):
    changed = copy.deepcopy(state)
    edit(changed)
    return changed


OPTIMIZER = {
    **{
        f"step {value!r}": lambda s, value=value: s["state"]["weight"].update(step=value)
        for value in NO_COUNT
    },
    "groups 5": lambda s: s.update(groups=5),
    "groups of numbers": lambda s: s.update(groups=[5]),
    "a group without its list": lambda s: s["groups"][0].update(params=None),
    "lr NaN": lambda s: s["groups"][0].update(lr=math.nan),
    "lr -1": lambda s: s["groups"][0].update(lr=-1.0),
    "state 5": lambda s: s.update(state=5),
    "state of a parameter 5": lambda s: s["state"].update(weight=5),
    "an array that is none": lambda s: s["state"]["weight"].update(exp_avg=[1.0, 2.0]),
    "no groups": lambda s: s.pop("groups"),
}


@pytest.mark.parametrize("rates", [[], [0.1, 0.2]])
def test_rates_of_another_number_of_groups(rates):
    """It was a ValueError of zip()."""
    _, optimizer = trained()
    schedule = tg.optim.ReduceLROnPlateau(optimizer)
    before = schedule.state_dict()
    with pytest.raises(CheckpointError, match="ReduceLROnPlateau of 1 groups"):
        schedule.load_state_dict({**before, "rates": rates})
    assert schedule.state_dict() == before


@pytest.mark.parametrize("name", OPTIMIZER)
def test_states_of_optimisers(name):
    _, optimizer = trained()
    before = optimizer.state_dict()
    with pytest.raises(CheckpointError, match=r"load_state_dict|Adam"):
        optimizer.load_state_dict(edited_optimizer(before, OPTIMIZER[name]))
    assert same(optimizer.state_dict(), before)
    optimizer.load_state_dict(before)


SCHEDULES = {
    "StepLR": lambda o: tg.optim.StepLR(o, 2),
    "cosine": lambda o: tg.optim.CosineAnnealingLR(o, 10),
    "plateau": lambda o: tg.optim.ReduceLROnPlateau(o),
    "chain": lambda o: tg.optim.SequentialLR(
        o, [tg.optim.StepLR(o, 2), tg.optim.StepLR(o, 3)], [4]
    ),
}
KEYS = {"steps": NO_COUNT, "base_rates": [5, [math.nan], [-1.0], ["x"], None, [], [True]]}
KEYS |= {"schedule": [5, None, "Other"], "each": [5, None, [5], []]}
KEYS |= {"bad_steps": NO_COUNT, "best": ["x", [], True], "rates": [[math.nan], 3]}


@pytest.mark.parametrize("name", SCHEDULES)
def test_states_of_schedules(name):
    _, optimizer = trained(tg.optim.SGD)
    schedule = SCHEDULES[name](optimizer)
    schedule.step(1.0)
    before, rate = schedule.state_dict(), optimizer.groups[0]["lr"]
    for key in before.keys() & KEYS.keys():
        for bad in KEYS[key]:
            with pytest.raises(CheckpointError, match="saved"):
                schedule.load_state_dict({**before, key: bad})
            assert repr(schedule.state_dict()) == repr(before)
            assert optimizer.groups[0]["lr"] == rate
    for bad in (5, None, {}, []):
        with pytest.raises(CheckpointError, match="saved"):
            schedule.load_state_dict(bad)
    schedule.load_state_dict(before)


GENERATORS = [{}, 5, None, {"seed": 1}, {"seed": -1, "stream": 0}, {"seed": 0, "stream": 1.5}]
GENERATORS += [{"seed": 0, "stream": math.nan}, {"seed": True, "stream": 0}]
GENERATORS += [{"seed": 2**64, "stream": 0}, {"seed": "1", "stream": 0}]


@pytest.mark.parametrize("bad", GENERATORS)
def test_states_of_generators(bad):
    generator = tg.Generator(seed=3)
    generator.next_stream()
    with pytest.raises(CheckpointError, match="seed and stream"):
        generator.load_state_dict(bad)
    assert generator.state_dict() == {"seed": 3, "stream": 1}
