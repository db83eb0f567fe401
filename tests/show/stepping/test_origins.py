"""Where numbers come from, against differences of the op's own values."""

import numpy as np
import pytest

import tinygraph as tg
from tests.show.stepping.pages import data_of, numbers_by_name, rows_of, whole
from tinygraph.engine.random import default_generator


def by_differences(function, arrays, k, step=1e-6):
    """d function / d arrays[k], rows of outputs, columns of elements; by central differences."""
    found = []
    for at in range(arrays[k].size):
        ends = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[k].flat[at] += sign * step
            ends.append(function(*map(tg.Tensor, moved)).numpy().ravel())
        found.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(found, axis=1)


class Saxpy(tg.Op):
    """An op of a user's: y = a * x + z."""

    def __init__(self, a):
        self.a = a

    def forward(self, mem, x, z):
        return self.a * x + z, None

    def backward(self, mem, grad, saved, needs):
        return self.a * grad, grad


CASES = {
    "linear": (lambda x, w, b: tg.linear(x, w, b), [(3, 4), (2, 4), (2,)]),
    "conv2d": (lambda x, w: tg.conv2d(x, w, padding=1), [(2, 1, 4, 4), (3, 1, 3, 3)]),
    "broadcast": (lambda x, y: x * y, [(3, 2), (2,)]),
    "softmax": (lambda x: tg.softmax(x, axis=1), [(3, 4)]),
    "max_pool2d": (lambda x: tg.max_pool2d(x, 2), [(1, 1, 4, 4)]),
    "users": (lambda x, z: Saxpy(2.5)(x, z), [(2, 3), (2, 3)]),
    "mean": (lambda x: x.mean(), [(5,)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("leaves", [tg.Tensor, tg.Parameter])
def test_rows_are_those_of_the_jacobian(tmp_path, case, leaves):
    function, shapes = CASES[case]
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    y = function(*[leaves(a, name=f"x{k}") for k, a in enumerate(arrays)])
    data = data_of(tg.show.steps(y, tmp_path / "s.html"))
    node = data["nodes"][str(len(data["nodes"]))]
    found = rows_of(node["origins"], shapes)
    assert node["origins"]["rows"] == y.size and node["origins"]["hidden"] == 0
    for k, rows in enumerate(found):
        np.testing.assert_allclose(rows, by_differences(function, arrays, k), atol=1e-5)


def test_dropout_shows_the_elements_that_it_has_kept_and_draws_nothing(tmp_path):
    tg.manual_seed(4)
    x = tg.Parameter(np.arange(1.0, 9.0), name="x")
    y = tg.dropout(x, 0.5)
    before = default_generator.state_dict()
    data = data_of(tg.show.steps(y, tmp_path / "s.html"))
    assert default_generator.state_dict() == before
    (rows,) = rows_of(data["nodes"]["2"]["origins"], [(8,)])
    np.testing.assert_array_equal(rows @ x.numpy(), y.numpy())
    # what a leaf without a gradient was multiplied with is known to nobody
    data = data_of(tg.show.steps(tg.dropout(tg.Tensor([1.0, 2.0]), 0.5), tmp_path / "s.html"))
    assert data["nodes"]["2"]["origins"] is None
    assert default_generator.next_stream() == before["stream"] + 1


def test_running_statistics_are_not_moved_again(tmp_path):
    mean, var = tg.Tensor(np.zeros(2)), tg.Tensor(np.ones(2))
    x = tg.Tensor(np.random.default_rng(0).standard_normal((4, 2)), name="x")
    y = tg.batch_norm(x, running_mean=mean, running_var=var, training=True)
    before = mean.numpy().copy()
    tg.show.steps(y, tmp_path / "s.html")
    np.testing.assert_array_equal(mean.numpy(), before)


def test_an_op_that_cannot_be_asked_has_no_origins_and_the_page_is_there(tmp_path):
    class Stubborn(tg.Op):
        def forward(self, mem, x):
            return x + 1, None

    data = data_of(tg.show.steps(Stubborn()(tg.Tensor([1.0])), tmp_path / "s.html"))
    assert data["nodes"]["2"]["origins"] is None


@pytest.mark.second
def test_of_a_large_batch_the_first_rows_are_known(tmp_path):
    rng = np.random.default_rng(3)
    x = tg.Tensor(rng.standard_normal((2000, 1, 12, 12)), name="x")
    w = tg.Parameter(rng.standard_normal((8, 1, 3, 3)), name="w")
    data = data_of(tg.show.steps(tg.conv2d(x, w), tmp_path / "s.html"))
    origins = data["nodes"]["3"]["origins"]
    found = rows_of(origins, [(4, 1, 12, 12), (8, 1, 3, 3)])
    assert origins["rows"] > 100
    for row in range(origins["rows"]):
        n, o, u, v = np.unravel_index(row, (4, 8, 10, 10))
        window = x.numpy()[n, 0, u : u + 3, v : v + 3].ravel()
        np.testing.assert_allclose(found[1][row].reshape(8, 9)[o], window, rtol=1e-6)
        assert np.count_nonzero(found[1][row]) == 9


def test_the_three_forms_of_a_convolution(tmp_path):
    rng = np.random.default_rng(6)
    x = tg.Tensor(rng.standard_normal((2, 2, 5, 5)), name="x")
    w = tg.Parameter(rng.standard_normal((3, 2, 3, 3)), name="w")
    y = tg.conv2d(x, w, stride=2, padding=1)
    data = data_of(tg.show.steps(y, tmp_path / "s.html"))
    forms = data["nodes"][numbers_by_name(data)["conv2d"]]["forms"]
    image, columns, filters, product = (whole(data, form["array"]) for form in forms)
    padded = np.pad(x.numpy()[0], ((0, 0), (1, 1), (1, 1)))
    windows = [
        padded[:, 2 * u : 2 * u + 3, 2 * v : 2 * v + 3].ravel() for u in range(3) for v in range(3)
    ]
    np.testing.assert_array_equal(image, x.numpy()[0])
    np.testing.assert_array_equal(columns, np.stack(windows, axis=1))
    np.testing.assert_array_equal(filters, w.numpy().reshape(3, 18))
    np.testing.assert_allclose(product, y.numpy()[0].reshape(3, 9))
    assert [form["of"] for form in forms] == [[], [0], [], [2, 1]]
    (rows,) = rows_of(forms[1]["origins"], [image.shape])
    known = forms[1]["origins"]["rows"]
    np.testing.assert_allclose(rows @ image.ravel(), columns.ravel()[:known])
    assert known == columns.size
