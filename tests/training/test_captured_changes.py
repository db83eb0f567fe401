"""What a recorded step has taken over changes between steps: a new graph, or the bits of none."""

import numpy as np
import pytest

import tinygraph as tg
from tests.training.captured import batch, graph_of, losses, worker
from tinygraph.base.errors import CaptureWarning
from tinygraph.training import Trainer

pytestmark = [
    pytest.mark.second,
    pytest.mark.usefixtures("rehearsed_cuda"),
    pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning"),
]


def test_a_larger_batch_begins_a_new_graph():
    def losses(capture):
        trainer = worker(None, capture)
        trainer.model.train(True)
        return [trainer.step(*batch(size)) for size in (4, 16, 16, 16, 4, 16, 20, 20, 20, 20)]

    assert losses(True) == losses(False)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("change", ["frozen", "evaluated", "loaded", "precision"])
def test_what_a_graph_has_taken_over_may_change(change, compile):
    def results(capture):
        trainer = worker(None, capture, compile=compile)
        model = trainer.model
        model.train(True)
        found = [trainer.step(*batch()) for _ in range(4)]
        graph = graph_of(trainer) if capture else None
        if change == "frozen":
            next(model.parameters()).requires_grad = False
        elif change == "evaluated":
            model.train(False)
        elif change == "loaded":
            trainer.optimizer.load_state_dict(trainer.optimizer.state_dict())
        else:
            tg.set_float32_matmul_precision("medium")
        try:
            found += [trainer.step(*batch()) for _ in range(4)]
        finally:
            tg.set_float32_matmul_precision("highest")
        assert not capture or graph_of(trainer) is not graph is not None
        return found, [a.tobytes() for a in model.state_dict().values()]

    assert results(True) == results(False)


def test_a_layer_that_is_put_in_the_place_of_another():
    def replaced(trainer, step):
        if step == 5:
            setattr(trainer.model, "2", tg.nn.Tanh())

    captured = worker(None, None)
    assert losses(captured, 10, replaced) == losses(worker(None, False), 10, replaced)
    assert graph_of(captured) is not None


class Cooling(tg.nn.Module):
    """Its temperature is a number of Python's."""

    def __init__(self):
        self.temperature = 1.0

    def forward(self, x):
        return x * self.temperature


class Counting(Cooling):
    """A number that each call changes."""

    def forward(self, x):
        self.temperature *= 0.5
        return x * self.temperature


def test_a_number_of_a_module_that_changes_between_steps():
    def cools(trainer, step):
        if step == 5:
            list(trainer.model.modules())[-1].temperature = 0.25

    captured = worker(None, None, last=[Cooling()])
    assert losses(captured, 10, cools) == losses(worker(None, False, last=[Cooling()]), 10, cools)
    assert graph_of(captured) is not None


def test_a_number_of_a_module_that_every_step_changes():
    with pytest.warns(CaptureWarning, match="have changed 5 times before a replay"):
        found = losses(worker(None, None, last=[Counting()]), 8)
    assert found == losses(worker(None, False, last=[Counting()]), 8)


def test_batches_that_grow_and_grow():
    def grown(capture):
        trainer = worker(None, capture)
        trainer.model.train(True)
        return [trainer.step(*batch(4 + size)) for size in range(8)]

    with pytest.warns(CaptureWarning, match="sizes or settings have changed"):
        found = grown(None)
    assert found == grown(False)


class Plain(tg.optim.SGD):
    """A rule of one's own: its learning rate is an argument of the launch, not device memory."""

    def changing_of(self, device, parts):
        rates = [part.group["lr"] for part in parts]
        return device.constant(np.array(rates, parts[0].value.dtype))


class PlainAdam(Plain):
    """And it counts its steps by itself."""

    numbers = ("count",)

    def changing_of(self, device, parts):
        for part in parts:
            part.state["count"] = part.state.get("count", 0) + 1
        rates = [part.group["lr"] / part.state["count"] for part in parts]
        return device.constant(np.array(rates, parts[0].value.dtype))


def with_rule(rule, capture):
    tg.manual_seed(3)
    model = tg.nn.Linear(6, 2, bias=False).to("cuda")
    return Trainer(
        model,
        rule(model.parameters(), lr=0.1),
        tg.softmax_cross_entropy,
        progress=False,
        capture=capture,
    )


def test_a_learning_rate_that_is_an_argument_of_a_launch():
    def slower(trainer, step):
        trainer.optimizer.groups[0]["lr"] = 0.1 if step < 5 else 0.01

    captured = with_rule(Plain, None)
    assert losses(captured, 10, slower) == losses(with_rule(Plain, False), 10, slower)
    assert graph_of(captured) is not None


def test_a_rule_that_counts_on_the_host_is_no_part_of_a_graph():
    with pytest.warns(CaptureWarning, match="counts on the host"):
        found = losses(with_rule(PlainAdam, None))
    assert found == losses(with_rule(PlainAdam, False))
