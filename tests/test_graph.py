"""The engine: order, fan-out, freeing, feeds, no_grad, threads, depth; with ops made for it."""

import threading

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DtypeError, GraphError, ShapeError
from tinygraph.engine.graph import topological_order


class Scale(tg.Op):
    """y = factor * x, counting its backward calls."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, mem, x):
        return np.multiply(x, x.dtype.type(self.factor), out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem, grad, saved, needs):
        return (grad * grad.dtype.type(self.factor),)


class Product(tg.Op):
    """y = a * b for two arrays of one shape; remembers which gradients it was asked for."""

    asked: list = []

    def forward(self, mem, a, b):
        return a * b, (a, b)

    def backward(self, mem, grad, saved, needs):
        Product.asked.append(needs)
        a, b = saved
        return (grad * b if needs[0] else None, grad * a if needs[1] else None)


class Identity(tg.Op):
    """Returns its input and its upstream gradient themselves, as an op may."""

    def forward(self, mem, x):
        return x, None

    def backward(self, mem, grad, saved, needs):
        return (grad,)


class Twice(tg.Op):
    """y = a + b, whose backward returns the upstream gradient for both inputs."""

    def forward(self, mem, a, b):
        return a + b, None

    def backward(self, mem, grad, saved, needs):
        return grad, grad


def leaf(*values, **options):
    return tg.Tensor(np.array(values), requires_grad=True, **options)


def test_inputs_come_before_users():
    x, w = leaf(1.0, name="x"), leaf(2.0, name="w")
    a = Product()(x, w)
    b = Scale(2)(a)
    c = Product()(a, b)
    order = topological_order([c, b])
    assert list(map(id, order)) == list(map(id, (x, w, a, b, c)))


def test_fan_out_sums_over_all_uses():
    """y = x * (3 x) + x: dy/dx = 6 x + 1."""
    x = leaf(5.0, -2.0)
    y = Twice()(Product()(x, Scale(3)(x)), x)
    y.backward(np.ones(2))
    np.testing.assert_array_equal(x.grad, [31, -11])


def test_a_node_used_three_times_as_the_same_input():
    x = leaf(2.0)
    Twice()(Twice()(x, x), x).backward()
    np.testing.assert_array_equal(x.grad, [3])


def test_leaves_accumulate_in_place_over_backward_calls():
    x = leaf(1.0, 2.0)
    Scale(3)(x).backward([1.0, 1.0])
    first = x.grad
    Scale(4)(x).backward([1.0, 10.0])
    assert x.grad is first
    np.testing.assert_array_equal(x.grad, [7, 43])


def test_stored_gradients_share_no_memory():
    a, b, g = leaf(1.0), leaf(1.0), np.ones(1)
    y = Twice()(Identity()(a), Identity()(b)).retain_grad()
    y.backward(g)
    grads = [a.grad, b.grad, y.grad, g]
    assert not any(np.shares_memory(p, q) for i, p in enumerate(grads) for q in grads[:i])


def test_upstream_gradients_survive_fan_out():
    x, g = leaf(1.0), np.ones(1)
    a = Identity()(x)
    Twice()(Twice()(a, a), a).backward(g)
    assert g == 1 and x.grad == 3


def test_only_wanted_gradients_are_computed():
    Product.asked.clear()
    x, w = tg.Tensor([2.0]), leaf(3.0, dtype=np.float32)
    Product()(Product()(x, x), w).backward()
    assert Product.asked == [(False, True)]  # the product of two constants is not visited
    assert x.grad is None


def test_a_second_backward_over_freed_values():
    x = leaf(2.0)
    y = Product()(x, x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad == 8
    with pytest.raises(GraphError, match="product saved was freed.*retain_graph=True"):
        y.backward()
    assert x.grad == 8, "a refused backward changes nothing"


def test_a_freed_part_is_refused_before_anything_changes():
    x = leaf(2.0)
    shared = Product()(x, x)
    Scale(1)(shared).backward()
    x.grad = None
    with pytest.raises(GraphError, match="freed"):
        Twice()(Scale(2)(shared), x).backward()
    assert x.grad is None


def test_nothing_requires_a_gradient():
    with pytest.raises(GraphError, match="requires_grad=True"):
        Scale(2)(tg.Tensor([1.0])).backward()


def test_an_upstream_gradient_that_does_not_fit():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match=r"shape \(2,\), got none"):
        Scale(2)(x).backward()
    with pytest.raises(ShapeError, match=r"expected shape \(2,\), got \(3,\)"):
        Scale(2)(x).backward(np.ones(3))


def test_no_grad_forgets_and_saves_nothing():
    x = leaf(1.0)
    with tg.no_grad():
        y = Product()(x, x)
    assert y.op is None and y.inputs == () and y.saved is None and not y.requires_grad
    assert Product()(x, x).requires_grad, "the mode is back"

    @tg.no_grad()
    def evaluate():
        return Product()(x, x)

    assert not evaluate().requires_grad


def test_no_grad_is_per_thread():
    inside = {}

    def other():
        inside["requires_grad"] = Scale(1)(leaf(1.0)).requires_grad

    with tg.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert inside["requires_grad"]


def test_threads_equal_the_serial_bits():
    def run(seed, results, n=60):
        rng = np.random.default_rng(seed)
        x = tg.Tensor(rng.standard_normal(50), requires_grad=True)
        for _ in range(n):
            Product()(Scale(1.1)(x), x).backward(rng.standard_normal(50))
        results[seed] = x.grad.tobytes()

    serial, parallel = {}, {}
    for seed in range(4):
        run(seed, serial)
    threads = [threading.Thread(target=run, args=(seed, parallel)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parallel == serial


def test_detach_cuts_the_graph_and_shares_the_value():
    x = leaf(3.0)
    y = Scale(2)(x)
    d = y.detach()
    assert d.op is None and not d.requires_grad and d.value is y.value
    Product()(y, d).backward()
    assert x.grad == 12  # 2 x times the constant 6, not the derivative of 4 x**2


def test_retain_grad_keeps_the_gradient_of_an_inner_node():
    x = leaf(3.0)
    y = Scale(2)(x).retain_grad()
    Product()(y, y).backward()
    assert y.grad == 12 and x.grad == 24
    assert Scale(2)(x).grad is None


@pytest.mark.second
def test_a_chain_of_100_000_nodes():
    x = node = leaf(1.0)
    for _ in range(100_000):
        node = Identity()(node)
    node.backward()
    assert x.grad == 1
    assert len(tg.Graph(node).nodes) == 100_001


def test_graph_forward_evaluates_again_with_another_batch_size():
    x = tg.Tensor(np.ones((2, 3), np.float32), name="x")
    w = tg.Parameter(np.full((1, 3), 2.0, np.float32), name="w")
    graph = tg.Graph(tg.linear(x, w))
    (y,) = graph.forward({"x": np.full((5, 3), 3.0, np.float32)})
    assert y is graph.outputs[0]
    np.testing.assert_array_equal(y.value, np.full((5, 1), 18))
    graph.backward(np.ones((5, 1)))
    np.testing.assert_array_equal(w.grad, [[15, 15, 15]])
    graph.forward({x: np.zeros((1, 3), np.float32)})
    graph.backward([np.ones((1, 1))])  # a new forward saved anew
    np.testing.assert_array_equal(w.grad, [[15, 15, 15]])


def test_graph_with_several_outputs():
    x = leaf(2.0)
    graph = tg.Graph(Scale(2)(x), Product()(x, x))
    graph.backward()
    assert x.grad == 6
    graph.forward()
    with pytest.raises(GraphError, match="2, one for each output"):
        graph.backward([np.ones(1)])
    graph.backward([np.array([10.0]), None])
    assert x.grad == 6 + 20 + 4


def test_an_output_that_is_an_inner_node_of_another():
    x = leaf(2.0)
    y = Scale(3)(x)
    tg.Graph(y, Product()(y, y)).backward()
    assert x.grad == 3 + 2 * 6 * 3


def test_labels_are_fed_like_any_leaf():
    logits = tg.Tensor([[0.0, 10.0]], name="logits")
    labels = tg.tensor([0], name="labels")
    graph = tg.Graph(tg.softmax_cross_entropy(logits, labels))
    (loss,) = graph.forward({"labels": np.array([1])})
    assert loss.item() < 1e-3
    with pytest.raises(DtypeError, match="feed of labels: expected int64, got float64"):
        graph.forward({"labels": np.array([0.5])})
    assert labels.value == 1, "a refused feed changes nothing"


def test_feeds_that_name_no_leaf():
    a, b = tg.Tensor([1.0], name="image"), tg.Tensor([1.0], name="image")
    graph = tg.Graph(Product()(a, b))
    with pytest.raises(GraphError, match="did you mean 'image'"):
        graph.forward({"imge": np.ones(1)})
    with pytest.raises(GraphError, match="more than one leaf"):
        graph.forward({"image": np.ones(1)})
    with pytest.raises(GraphError, match="no leaf of this graph"):
        graph.forward({tg.Tensor([1.0]): np.ones(1)})


def test_a_forward_without_grad_cannot_be_walked_back():
    x = leaf(2.0)
    graph = tg.Graph(Product()(x, x))
    with tg.no_grad():
        graph.forward()
    with pytest.raises(GraphError, match="no_grad"):
        graph.backward()


def test_graph_needs_tensors():
    with pytest.raises(GraphError, match="at least one"):
        tg.Graph()
    with pytest.raises(GraphError, match="ndarray"):
        tg.Graph(np.ones(1))


def test_random_ops_draw_anew_at_each_evaluation_and_repeat_with_the_seed():
    class Noise(tg.Op):
        def forward(self, mem, x):
            return x + mem.random(x.shape, x.dtype), None

    def run():
        tg.manual_seed(7)
        graph = tg.Graph(Noise()(tg.zeros(4)))
        first = graph.outputs[0].value
        graph.forward()
        return first, graph.outputs[0].value

    (a, b), (c, d) = run(), run()
    np.testing.assert_array_equal([a, b], [c, d])
    assert not np.array_equal(a, b)
