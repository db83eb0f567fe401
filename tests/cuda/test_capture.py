"""A training step as a CUDA graph, on the stand-in for CuPy: the numbers of eager steps."""

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.test_rehearsed_cuda import OPTIMIZERS, batches, network
from tinygraph.base.errors import DeviceError, GraphError
from tinygraph.engine.device import get_device
from tinygraph.engine.tensor import leaf

pytestmark = pytest.mark.second


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def schedule(optimizer, step):
    """Another learning rate for each step."""
    optimizer.groups[0]["lr"] = 0.05 / (1 + step)


class Training:
    """A model that learns batch by batch, with or without a graph."""

    def __init__(self, make, capture):
        self.model = network("cuda")
        self.optimizer = make(self.model.parameters())
        self.step = tg.cuda.capture(self.learn) if capture else self.eager

    def learn(self, x, t):
        loss = tg.softmax_cross_entropy(self.model(x), t)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def eager(self, x, t):
        return self.learn(tg.Tensor(x, device="cuda"), tg.Tensor(t, device="cuda"))


def train(make, capture, steps=6, before=schedule):
    training, losses = Training(make, capture), []
    for number, (x, t) in enumerate(batches(steps)):
        before(training.optimizer, number)
        losses.append(training.step(x, t).item())
    return losses, training


def assert_equal(one, other):
    assert one[0] == other[0]
    one, other = one[1], other[1]
    for key, array in one.model.state_dict().items():
        assert array.tobytes() == other.model.state_dict()[key].tobytes(), key
    mine, theirs = one.optimizer.state_dict()["state"], other.optimizer.state_dict()["state"]
    assert mine.keys() == theirs.keys()
    for parameter, state in mine.items():
        for key, value in state.items():
            np.testing.assert_array_equal(theirs[parameter][key], value)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_replays_give_the_bits_of_eager_steps(name):
    """Dropout draws anew, the learning rate changes, bias corrections move on."""
    captured = train(OPTIMIZERS[name], True)
    assert captured[1].step.captured
    assert_equal(captured, train(OPTIMIZERS[name], False))


@pytest.mark.stand_in
def test_a_replay_launches_what_was_captured_and_nothing_else(cupy):
    from cupy._module import launches

    _, training = train(OPTIMIZERS["adam"], True, steps=4)
    graph = training.step._recording.graph
    del launches[:]
    training.step(*batches()[0])
    assert training.step._recording.graph is graph and not launches
    assert len(graph.work) > 15


def test_a_batch_of_another_shape_is_learnt_from_without_the_graph():
    def steps(capture):
        losses, training = train(OPTIMIZERS["adam"], capture, steps=4)
        for batch in (*batches(1, size=3), *batches(2)):
            losses.append(training.step(*batch).item())
        return losses, training

    assert_equal(steps(True), steps(False))


def test_what_another_shape_gave_is_not_overwritten_by_replays():
    @tg.cuda.capture
    @tg.no_grad()  # what is on the way is freed at once, and written by the graph nevertheless
    def step(x):
        return x * x * 3 + x

    whole, some = np.full((20, 50), 2, "f4"), np.full((3, 50), 5, "f4")
    for _ in range(4):
        step(whole)
    kept = [step(some) for _ in range(4)]
    assert step(whole).numpy().tolist() == np.full((20, 50), 14).tolist()
    for result in kept:
        assert result.numpy().tolist() == np.full((3, 50), 80).tolist()


@pytest.fixture
def squares():
    """A step that is captured."""
    step = tg.cuda.capture(tg.no_grad()(lambda x, y: x * x + y))
    for _ in range(3):
        step(np.zeros((4, 300), "f4"), tg.zeros(4, 300, device="cuda"))
    assert step.captured
    return step


@pytest.mark.stand_in
def test_inputs_of_the_host_go_through_pinned_memory_without_a_wait(squares, cupy):
    """They may be changed at once; the host waits for the copy before alone."""
    from cupy._stream import waits

    x, y = np.full((4, 300), 3, "f4"), tg.ones(4, 300, device="cuda")
    cupy.cuda.Device().synchronize()
    del waits[:]
    first = squares(x, y).detach() * 1
    x[...] = 4
    second = squares(x, y).detach() * 1
    x[...] = 5
    assert waits == ["event.synchronize"]
    assert first.numpy().max() == 10 and second.numpy().min() == 17


def test_inputs_that_are_not_contiguous(squares):
    x = np.arange(1200, dtype="f4").reshape(300, 4).T
    y = tg.transpose(tg.Tensor(x.T, device="cuda"))
    np.testing.assert_array_equal(squares(x, y).numpy(), x * x + x)


def test_a_step_that_is_dropped_has_copied_its_inputs():
    """Its pinned memory is handed out again at once."""
    from cupyx import empty_pinned

    step = tg.cuda.capture(lambda x: x * 2)
    kept = step(np.full((4, 300), 3, "f4"))
    del step
    empty_pinned((4, 300), "f4")[...] = 9
    assert kept.numpy().max() == 6


def other_momentum(optimizer, step):
    optimizer.groups[0]["momentum"] = 0.9 if step < 4 else 0.5


def loaded_state(optimizer, step):
    if step == 4:
        optimizer.load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize("change", [other_momentum, loaded_state])
def test_what_a_graph_has_taken_over_may_change(change):
    captured = train(OPTIMIZERS["sgd"], True, 9, change)
    assert captured[1].step.captured
    assert_equal(captured, train(OPTIMIZERS["sgd"], False, 9, change))


def broken(what):
    x = tg.Tensor(np.ones((4, 4), "f4"), requires_grad=True, device="cuda")
    kept = []

    def step(y):
        loss = (x * y).sum()
        if what == "reads":
            loss.item()
        elif what == "waits":
            x.device.synchronize()
        elif what == "copies":
            tg.Tensor(np.ones(3, "f4"), device="cuda")
        else:
            kept.append(x.device.empty((100 * (1 + len(kept)), 7), "f4"))
        return loss

    return tg.cuda.capture(step)


@pytest.mark.parametrize("what", ["reads", "waits", "copies"])
def test_a_step_that_is_no_graph(what):
    step = broken(what)
    for _ in range(2):
        step(np.ones((4, 4), "f4"))
    for _ in range(2):
        with pytest.raises(GraphError, match="capture: step: expected launches alone"):
            step(np.ones((4, 4), "f4"))
        assert not step.captured


def test_a_graph_may_ask_for_memory_that_the_pool_has_not():
    """CuPy records in relaxed mode, in which cudaMalloc is no part of the graph."""
    step = broken("grows")
    for _ in range(4):
        assert step(np.ones((4, 4), "f4")).item() == 16
    assert step.captured


def test_a_number_that_a_failed_recording_met_is_not_kept():
    """Its fill was recorded, and never ran."""
    gpu, seen = get_device("cuda"), []

    @tg.cuda.capture
    def step(x):
        seen.append(len(seen))
        if len(seen) == 3:
            gpu.constant(np.array([7.5], "f4"))
            gpu.synchronize()
        return x * x

    for _ in range(2):
        step(np.ones(4, "f4"))
    with pytest.raises(GraphError, match="waited for the GPU"):
        step(np.ones(4, "f4"))
    assert gpu.to_numpy(gpu.constant(np.array([7.5], "f4"))).tolist() == [7.5]


def test_a_number_that_a_recording_met_is_filled_at_each_launch():
    gpu, seen = get_device("cuda"), []

    @tg.cuda.capture
    def step(x):
        seen.append(gpu.constant(np.array([len(seen)], "f4")))
        return x * leaf(seen[-1], gpu)

    assert [step(np.ones(1, "f4")).item() for _ in range(4)] == [0, 1, 2, 2]
    assert gpu.to_numpy(gpu.constant(np.array([2], "f4"))).tolist() == [2]


def lets_go(sizes):
    """A step that uses arrays of so many bytes, one after the other."""
    x = tg.Tensor(np.ones(4, "f4"), device="cuda")

    def step(y):
        for size in sizes if step.records else ():
            x.device.full((size,), "u1", 7)
        return (x * y).sum()

    step.records = False
    return step


def test_what_a_graph_writes_is_not_given_back_while_it_is_recorded(cupy):
    """A limit makes CuPy's pools free what is cached, which the launches before write to."""
    tg.cuda.set_memory_limit(1 << 20)
    function = lets_go([600_000, 700_000])
    step = tg.cuda.capture(function)
    for _ in range(2):
        step(np.ones(4, "f4"))
    function.records = True
    with pytest.raises(DeviceError, match="limit of 1,048,576 bytes"):
        step(np.ones(4, "f4"))
    assert not step.captured
    function.records = False
    assert [step(np.ones(4, "f4")).item() for _ in range(2)] == [4, 4] and step.captured


def test_the_limit_is_that_of_both_pools(cupy):
    tg.cuda.set_memory_limit(1_800_000)
    cached = tg.zeros(300_000, device="cuda")
    step = tg.cuda.capture(lambda x: x * 2)
    with pytest.raises(DeviceError, match="limit of 1,800,000 bytes"):
        step(np.ones(100_000, "f4"))
    del cached  # then the default pool gives it back
    for _ in range(4):
        assert step(np.ones(100_000, "f4")).numpy().sum() == 200_000
    assert cupy.get_default_memory_pool().total_bytes() < 100_000


def test_nothing_takes_memory_from_a_graphs_pool():
    _, training = train(OPTIMIZERS["adam"], True, steps=4)
    pool = training.step._memory.pool
    used = pool.used_bytes()
    kept = [training.step(*batch) for batch in (*batches(2, size=3), *batches(2, size=40))]
    kept += [training.step(*batch) for batch in batches(2)]
    assert pool.used_bytes() <= used and len(kept) == 6


def test_a_bad_label_in_a_replay_is_named():
    _, training = train(OPTIMIZERS["sgd"], True, steps=4)
    x, t = batches()[0]
    with pytest.raises(tg.errors.ArgumentError, match="class numbers from 0 to 3, got 9"):
        training.step(x, np.where(t == t[0], 9, t)).item()
