"""Copies of nodes, by copy, deepcopy and pickle, of deep graphs and out of read-only memory."""

import copy
import io
import pickle
import sys

import joblib
import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import GraphError
from tinygraph.ops.leaves import copies

DEEP = 3000  # beyond Python's limit, which is 1000


def chain(w, times=DEEP):
    y = w
    for _ in range(times):
        y = y * 1.0001
    return y


def by_pickle(thing):
    return pickle.loads(pickle.dumps(thing))


def by_python(thing):
    """Written and read by the classes in Python, as joblib's are."""
    file = io.BytesIO()
    pickle._Pickler(file, 5).dump(thing)
    return pickle._loads(file.getvalue())


def by_joblib(thing):
    file = io.BytesIO()
    joblib.dump(thing, file)
    return joblib.load(io.BytesIO(file.getvalue()))


COPIES = [
    copy.deepcopy,
    by_pickle,
    pytest.param(by_python, marks=pytest.mark.second),
    pytest.param(by_joblib, marks=pytest.mark.second),
]


class Holds(nn.Module):
    """A module that keeps what it has computed, as programs do for a look at it later."""

    def __init__(self):
        self.w = nn.Parameter([1.0, 2.0])

    def forward(self, times=DEEP):
        self.last = chain(self.w, times)
        self.loss = self.last.sum()
        return self.loss


@pytest.mark.parametrize("made", COPIES)
def test_a_deep_graph_is_copied(made):
    assert sys.getrecursionlimit() < DEEP
    w = tg.Parameter([1.0, 2.0])
    loss = chain(w).sum()
    found = made(loss)
    assert found is not loss and found.item() == loss.item()
    assert len(tg.Graph(found).nodes) == len(tg.Graph(loss).nodes)
    found.backward()
    assert w.grad is None, "the copy has leaves of its own"
    (leaf,) = [x for x in tg.Graph(found).nodes if x.requires_grad and x.is_leaf]
    assert type(leaf) is tg.Parameter
    np.testing.assert_allclose(leaf.grad, np.full(2, 1.0001**DEEP), 1e-3)
    loss.backward()
    np.testing.assert_array_equal(w.grad, leaf.grad)


@pytest.mark.parametrize("made", COPIES)
def test_a_module_that_holds_its_loss(made):
    model = Holds()
    model()
    found = made(model)
    assert found.loss.inputs[0] is found.last, "a node that is met twice is one"
    found.loss.backward()
    assert found.w.grad is not None and model.w.grad is None
    found.w.value[...] = 5
    assert model.w.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(found(2).item(), 10 * 1.0001**2, 1e-5)


@pytest.mark.parametrize("made", COPIES)
def test_what_a_node_knows_is_kept(made):
    w = tg.Parameter([3.0], name="w")
    h = (w * 2).retain_grad()
    loss = (h * h + h).sum()
    both = made([loss, h])
    assert both[1] in tg.Graph(both[0]).nodes
    both[0].backward()
    assert both[1].grad.tolist() == [13.0] and h.grad is None
    with pytest.raises(GraphError, match="freed"):
        both[0].backward()
    freed = made(both[0])
    with pytest.raises(GraphError, match="freed"):
        freed.backward()
    (name,) = [x.name for x in tg.Graph(freed).nodes if x.requires_grad and x.is_leaf]
    assert name == "w"


@pytest.mark.parametrize("made", [copy.deepcopy, by_pickle])
def test_on_the_emulator(made):
    w = tg.Parameter([1.0, 2.0], device="emulator")
    found = made((w * w).sum())
    found.backward()
    (leaf,) = [x for x in tg.Graph(found).nodes if x.is_leaf]
    assert str(leaf.device) == "emulator" and leaf.device.to_numpy(leaf.grad).tolist() == [2.0, 4.0]


def test_a_write_to_a_leaf_is_noticed_in_a_copy():
    w = tg.Tensor([1.0, 2.0], requires_grad=True)
    found = by_pickle((w * w).sum())
    (leaf,) = [x for x in tg.Graph(found).nodes if x.is_leaf]
    with tg.no_grad():
        leaf -= 1.0
    with pytest.raises(GraphError, match="overwritten"):
        found.backward()


def test_a_shallow_copy_shares_what_is_below():
    w = tg.Parameter([1.0, 2.0])
    y = chain(w)
    found = copy.copy(y)
    assert found is not y and found.inputs is y.inputs and found.value is y.value
    found.sum().backward()
    assert w.grad is not None
    again = copy.copy(w)
    assert type(again) is tg.Parameter and again.value is w.value
    buffer = copy.copy(nn.Buffer([1.0], persistent=False))
    assert buffer.persistent is False


# ---- read-only memory ---------------------------------------------------------------------------


def network():
    tg.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))


X = np.random.default_rng(1).standard_normal((20, 4)).astype("f4")


def trained(model, optimizer):
    optimizer.zero_grad()
    (model(X) ** 2).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return model.state_dict()


def from_read_only(thing):
    """Unpickled onto memory that belongs to somebody else."""
    buffers = []
    text = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    found = pickle.loads(text, buffers=[bytes(each) for each in buffers])
    assert buffers
    return found


@pytest.mark.parametrize(
    "kind", [tg.optim.Adam, tg.optim.RMSprop, lambda ps, lr: tg.optim.SGD(ps, lr, momentum=0.9)]
)
@pytest.mark.parametrize("begun", [False, True])
def test_training_goes_on_from_read_only_memory(kind, begun):
    model = network()
    optimizer = kind(model.parameters(), lr=0.1)
    if begun:
        trained(model, optimizer)
    found, its_own = from_read_only((model, optimizer))
    wanted, got = trained(model, optimizer), trained(found, its_own)
    assert its_own.parameters["0.weight"] is found[0].weight
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)
    found[1].running_mean.value[...] = 0  # by hand, too


def test_a_module_that_joblib_maps(tmp_path):
    model = nn.Linear(300, 300)
    x = np.ones((2, 300), "f4")
    model(x).sum().backward()
    joblib.dump(model, tmp_path / "model")
    found = joblib.load(tmp_path / "model", mmap_mode="r")
    found(x).sum().backward()  # added to the gradient that was there
    np.testing.assert_array_equal(found.weight.grad, 2 * model.weight.grad)
    tg.optim.SGD(found.parameters(), lr=0.5).step()
    wanted = model.weight.value - 0.5 * 2 * model.weight.grad
    np.testing.assert_allclose(found.weight.value, wanted, 1e-6)
    again = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(again.weight.value, model.weight.value)


def _a_step(model):
    model(np.ones((2, 600), "f4")).sum().backward()
    tg.optim.SGD(model.parameters(), lr=1.0).step()
    return float(model.bias.value[0])


@pytest.mark.second
def test_joblibs_processes_train_a_module_of_more_than_a_megabyte():
    model = nn.Linear(600, 600)
    jobs = [joblib.delayed(_a_step)(model) for _ in range(2)]
    found = joblib.Parallel(n_jobs=2)(jobs)
    assert found == [pytest.approx(float(model.bias.value[0]) - 2.0)] * 2


def test_a_tensor_alone():
    x = from_read_only(tg.Tensor(np.ones(3, "f4"), requires_grad=True))
    with tg.no_grad():
        x -= 0.5
    assert x.tolist() == [0.5] * 3


READ_ONLY = np.full(2, 3.0, "f4")
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize("grad", [READ_ONLY, np.broadcast_to(np.float32(3), (2,))])
def test_gradients_that_cannot_be_written_to(grad):
    w = tg.Parameter([1.0, 1.0])
    w.grad = grad
    (w * w).sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]
    w.grad = grad
    assert nn.utils.clip_grad_norm_(w, 1.0) == pytest.approx(18**0.5)
    np.testing.assert_allclose(w.grad, [0.5**0.5] * 2, 1e-5)
    w.grad = grad
    nn.utils.clip_grad_value_(w, 1.0)
    assert w.grad.tolist() == [1.0, 1.0] and np.all(np.asarray(grad) == 3)


@pytest.mark.parametrize("make", [tg.from_numpy, tg.as_tensor])
def test_writing_to_a_shared_array_that_cannot_be_written_to(make):
    x = make(READ_ONLY)
    for write in (lambda: x.__isub__(1.0), lambda: nn.init.zeros_(x)):
        with tg.no_grad(), pytest.raises(GraphError, match=r"read-only.*x\.value = x\.numpy\(\)"):
            x.requires_grad_()
            write()
    x.value = x.numpy().copy()
    with tg.no_grad():
        x -= 1.0
    assert x.tolist() == [2.0, 2.0] and READ_ONLY.tolist() == [3.0, 3.0]
    for p in (tg.Parameter(READ_ONLY), tg.Parameter(make(READ_ONLY)), tg.tensor(READ_ONLY)):
        p.value[...] = 0  # these are copies


@pytest.mark.parametrize("kind", [tg.Tensor, tg.Parameter])
def test_a_pickle_of_when_the_slots_had_other_names_is_read(kind):
    """They were `value`, `grad` and `requires_grad`."""
    x = kind([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    own, slots = copies.reduced(x, 2)[2]
    former = {
        name.removeprefix("_") if name != "__weakref__" else name: v for name, v in slots.items()
    }
    assert {"value", "grad", "requires_grad"} <= former.keys()
    y = kind.__new__(kind)
    copies.restore(y, (own, former))
    assert y.requires_grad and y.tolist() == [1.0, 2.0] and y.grad.tolist() == [3.0, 3.0]
