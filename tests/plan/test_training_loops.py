"""Training loops as people write them, compiled and not: parameters and results are the same."""

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F
from tinygraph import nn, optim


def data(seed, n=12, dtype=F):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6)).astype(dtype), rng.integers(0, 3, n)


def network(*between, dtype=F):
    return nn.Sequential(
        nn.Linear(6, 8, dtype=dtype), *between, nn.ReLU(), nn.Linear(8, 3, dtype=dtype)
    )


def update(model, rule):
    def step(x, y):
        rule.zero_grad()
        loss = tg.softmax_cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        return loss

    return step


def gradients_of_two_calls(compiled):
    """A flag decides whether the step is taken; the scale is a keyword argument."""
    model = network()
    rule = optim.Adam(model.parameters(), lr=0.05)

    @compiled
    def micro(x, y, last=False, *, scale):
        loss = tg.softmax_cross_entropy(model(x), y) * scale
        loss.backward()
        if last:
            rule.step()
            rule.zero_grad()
        return loss

    return model, [micro(*data(i), last=i % 2 == 1, scale=0.5).item() for i in range(8)]


def results_in_a_dict(compiled):
    """Logits leave the step, for a metric that is computed after it."""
    model = network()
    rule = optim.SGD(model.parameters(), lr=0.2)

    @compiled
    def step(batch):
        rule.zero_grad()
        logits = model(batch["x"])
        loss = tg.softmax_cross_entropy(logits, batch["y"])
        decay = sum(((p * p).sum() for p in model.parameters()), start=tg.Tensor(0.0)) * 1e-3
        (loss + decay).backward()
        rule.step()
        return {"loss": loss, "logits": logits, "more": (decay, None)}

    found = [step({"x": data(i)[0], "y": data(i)[1]}) for i in range(4)]
    right = [
        (out["logits"].numpy().argmax(axis=1) == data(i)[1]).sum() for i, out in enumerate(found)
    ]
    assert found[0]["more"][1] is None
    return model, [*right, *[out["loss"].item() + out["more"][0].item() for out in found]]


class TiedWords(nn.Module):
    """The embedding's matrix is the last layer's, too."""

    def __init__(self):
        self.words = nn.Embedding(11, 8)
        self.bias = nn.Parameter(np.zeros(11, F))

    def forward(self, ids):
        return tg.linear(tg.tanh(self.words(ids)).mean(axis=1), self.words.weight, self.bias)


def tied_weights_and_integers(compiled):
    model = TiedWords()
    step = compiled(update(model, optim.Adam(model.parameters(), lr=0.05)))
    rng = np.random.default_rng(0)
    return model, [
        step(rng.integers(0, 11, (9, 4)), rng.integers(0, 11, 9)).item() for _ in range(4)
    ]


def frozen_for_a_while(compiled):
    model = network()
    step = compiled(update(model, optim.SGD(model.parameters(), lr=0.2, momentum=0.9)))
    losses = []
    for i in range(6):
        for p in model[0].parameters():
            p.requires_grad = i >= 3
        losses.append(step(*data(i)).item())
    return model, losses


def a_state_is_loaded(compiled):
    """Back to the begin after three steps; the last batch of each three is smaller."""
    model = network(nn.BatchNorm1d(8), nn.Dropout(0.3))
    rule = optim.Adam(model.parameters(), lr=0.05)
    step = compiled(update(model, rule))
    look = compiled(lambda x: model(x))
    begin, losses = (model.state_dict(), rule.state_dict()), []
    for _ in range(2):
        model.load_state_dict(begin[0])
        rule.load_state_dict(begin[1])
        for i, n in enumerate((20, 20, 17)):
            losses.append(step(*data(i, n)).item())
        model.eval()
        with tg.no_grad():
            losses.append(float(look(data(9)[0]).numpy().sum()))
        model.train()
    return model, losses


def rates_from_outside(compiled):
    """In float64: set by hand, and by a schedule that sees the loss."""
    model = network(dtype=np.float64)
    rule = optim.SGD(model.parameters(), lr=0.3)
    plateau = optim.ReduceLROnPlateau(rule, factor=0.5, patience=0)
    step, losses = compiled(update(model, rule)), []
    for i in range(6):
        losses.append(step(*data(i, dtype=np.float64)).item())
        plateau.step(losses[-1])
        if i == 3:
            rule.groups[0]["lr"] = 0.25
    return model, losses


def two_networks_and_their_rules(compiled):
    make, judge = nn.Linear(2, 6), nn.Linear(6, 1)
    rules = optim.Adam(make.parameters(), lr=0.02), optim.Adam(judge.parameters(), lr=0.02)
    loss = tg.binary_cross_entropy_with_logits

    @compiled
    def judging(x, z):
        rules[1].zero_grad()
        found = loss(judge(x), tg.ones((12, 1))) + loss(judge(make(z).detach()), tg.zeros((12, 1)))
        found.backward()
        rules[1].step()
        return found

    @compiled
    def making(z):
        rules[0].zero_grad()
        found = loss(judge(make(z)), tg.ones((12, 1)))
        found.backward()
        rules[0].step()
        return found

    losses = []
    for i in range(4):
        z = data(i + 7)[0][:, :2]
        losses += [judging(data(i)[0], z).item(), making(z).item()]
    return nn.Sequential(make, judge), losses


def a_norm_is_returned(compiled):
    """What clipping returns is a number of each step."""
    model = network()
    rule = optim.SGD(model.parameters(), lr=0.5)

    @compiled
    def step(x, y):
        rule.zero_grad()
        loss = tg.softmax_cross_entropy(model(x), y)
        loss.backward()
        norm = optim.clip_grad_norm(model.parameters(), 0.1)
        rule.step()
        return loss, {"norm": norm}

    found = [step(*data(i)) for i in range(4)]
    norms = [out[1]["norm"] for out in found]
    assert all(type(norm) is float for norm in norms) and len(set(norms)) == 4
    return model, [*norms, *[out[0].item() for out in found]]


def moved_and_back(compiled):
    model, losses = network(), []

    @compiled
    def differentiate(x, y):
        model.zero_grad()
        loss = tg.softmax_cross_entropy(model(x), y)
        loss.backward()
        return loss

    for i, device in enumerate(("cpu", "emulator", "emulator", "cpu")):
        model.to(device)
        rule = optim.SGD(model.parameters(), lr=0.1)
        losses.append(differentiate(*data(i)).item())
        rule.step()
    return model, losses


LOOPS = [
    gradients_of_two_calls,
    results_in_a_dict,
    tied_weights_and_integers,
    frozen_for_a_while,
    a_state_is_loaded,
    rates_from_outside,
    two_networks_and_their_rules,
    a_norm_is_returned,
    moved_and_back,
]


@pytest.mark.parametrize("loop", LOOPS, ids=[loop.__name__ for loop in LOOPS])
def test_a_loop_ends_with_the_numbers_of_the_graph(loop):
    made = []

    def compiled(fn):
        made.append(tg.compile(fn))
        return made[-1]

    tg.manual_seed(4)
    ours, found = loop(compiled)
    tg.manual_seed(4)
    theirs, expected = loop(lambda fn: fn)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    for name, array in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name], array, rtol=1e-4, atol=1e-6)
    assert all("as it stands" not in run.explain() and run._found for run in made)
