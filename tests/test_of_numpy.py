"""What numpy's functions do with a Tensor, and what they say."""

import operator

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import DtypeError, GraphError

OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.matmul, operator.eq, operator.ne),
    *(operator.lt, operator.le, operator.gt, operator.ge),
]


def plain():
    return tg.Tensor([[1.0, 2.0], [3.0, 4.0]])


def trained():
    return tg.Parameter([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("sign", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("left", [np.full((2, 2), 3, "f4"), np.float32(3), np.array(3, "f4")])
def test_an_array_and_a_tensor_make_a_node(sign, left):
    if sign is operator.matmul and not left.ndim:
        return
    y = sign(left, trained())
    assert type(y) is tg.Tensor and y.op is not None
    np.testing.assert_array_equal(y.value, sign(left, plain().numpy()))


@pytest.mark.parametrize("sign", [operator.and_, operator.or_, operator.xor])
def test_bits_of_an_array_and_a_tensor(sign):
    a, b = np.array([12, 10]), np.array([10, 7])
    y = sign(a, tg.tensor(b))
    assert type(y) is tg.Tensor and y.tolist() == sign(a, b).tolist()


def test_the_gradient_goes_through_the_operator_of_an_array():
    w = trained()
    (np.full((2, 2), 3, "f4") * w).sum().backward()
    assert w.grad.tolist() == [[3, 3], [3, 3]]


UFUNCS = {
    "exp": "tg.exp",
    "sqrt": "tg.sqrt",
    "tanh": "tg.tanh",
    "isnan": "tg.isnan",
    "absolute": "tg.absolute",
    "sign": "tg.sign",
    "negative": "tg.negative",
    "logical_not": "tg.logical_not",
    "rint": "tg.round",
    "invert": "~x",
    "cosh": "x.numpy()",
    "cbrt": "x.numpy()",
}


@pytest.mark.parametrize("make", [plain, trained])
@pytest.mark.parametrize("name", UFUNCS)
def test_a_ufunc_names_the_function_of_ours(name, make):
    with pytest.raises(DtypeError) as refusal:
        getattr(np, name)(make())
    assert str(refusal.value).startswith(f"np.{name}: ") and isinstance(refusal.value, TypeError)
    assert str(refusal.value).split("Way out: ")[1].startswith(UFUNCS[name])


def test_ufuncs_of_two_operands_and_their_methods():
    for call in (
        lambda: np.maximum(plain(), 1.0),
        lambda: np.arctan2(plain(), 1.0),
        lambda: np.add.reduce(plain()),
        lambda: np.multiply.outer(np.ones(2), plain()),
        lambda: np.add.at(np.ones(2), [0], plain()),
        lambda: divmod(np.ones((2, 2)), plain()),
        lambda: np.add(np.ones((2, 2)), plain(), out=np.ones((2, 2))),
        lambda: np.add(np.ones((2, 2)), plain(), dtype="f8"),
    ):
        with pytest.raises(
            DtypeError, match="Way out: (tg.maximum|x.numpy|x // y|array = |tg.add)"
        ):
            call()


def test_an_array_is_not_changed_in_place():
    array = np.ones((2, 2))
    with pytest.raises(DtypeError, match=r"np\.add: .*Way out: array = array \+ x"):
        array += plain()
    assert array.tolist() == [[1, 1], [1, 1]]


REDUCED = ("mean", "sum", "prod", "std", "var", "max", "min")


@pytest.mark.parametrize("name", REDUCED)
def test_a_function_that_numpy_cannot_call_names_ours(name):
    with pytest.raises(DtypeError, match=rf"np\.{name}: .*a Tensor.*Way out: tg\.{name}"):
        getattr(np, name)(plain())
    with pytest.raises(GraphError, match=rf"np\.{name}: .*gradient.*Way out: tg\.{name}"):
        getattr(np, name)(trained())


DETACHING = {
    "stack": (lambda x: np.stack([x, x]), "tg.stack"),
    "stack of some": (lambda x: np.stack([np.ones((2, 2)), x]), "tg.stack"),
    "concatenate": (lambda x: np.concatenate((x, x)), "tg.concatenate"),
    "vstack": (lambda x: np.vstack([x, x]), "tg.vstack"),
    "where": (lambda x: np.where(x.numpy() > 1, x, 0.0), "tg.where"),
    "dot": (lambda x: np.dot(x, x), "tg.dot|x.numpy|x.detach"),
    "einsum": (lambda x: np.einsum("ij,ij", x, x), "tg.einsum"),
    "clip": (lambda x: np.clip(x, 0, 1), "tg.clip"),
    "cumsum": (lambda x: np.cumsum(x), "tg.cumsum"),
    "linalg.norm": (lambda x: np.linalg.norm(x), "tg.norm"),
    "linalg.det": (lambda x: np.linalg.det(x), r"x\.detach\(\)\.numpy\(\)"),
    "expand_dims": (lambda x: np.expand_dims(x, 0), "tg.unsqueeze"),
    "median": (lambda x: np.median(x), r"x\.detach\(\)\.numpy\(\)"),
    "by name": (lambda x: np.sort(a=x), "tg.sort"),
}


@pytest.mark.parametrize("name", DETACHING)
def test_a_function_does_not_end_the_graph_in_silence(name):
    call, instead = DETACHING[name]
    with pytest.raises(GraphError, match=f"gradient.*Way out: ({instead})"):
        call(trained())
    with pytest.raises(GraphError, match="gradient"):
        call(trained() * 2)


@pytest.mark.parametrize("name", DETACHING)
def test_without_a_gradient_numpy_computes(name):
    """What no backward will ask for: data, and anything under no_grad."""
    call, _ = DETACHING[name]
    expected = call(np.array([[1.0, 2.0], [3.0, 4.0]], "f4")) if name != "where" else None
    with tg.no_grad():
        found = [call(plain()), call(trained()), call(trained() * 1)]
    if name == "where":
        expected = np.array([[0.0, 2.0], [3.0, 4.0]], "f4")
    for array in found:
        np.testing.assert_allclose(np.asarray(array), expected, rtol=1e-6)
    assert type(call(plain())) is type(found[0])


def test_what_has_no_gradient_is_computed_of_parameters():
    w = trained()
    assert np.shape(w) == (2, 2) and np.ndim(w) == 2 and np.size(w) == 4
    assert np.allclose(w, w.value) and np.array_equal(w, w) and np.argmax(w) == 3
    assert np.argsort(w[0]).tolist() == [0, 1] and np.zeros_like(w).shape == (2, 2)
    assert np.count_nonzero(w) == 4
    np.testing.assert_allclose(w, w.value)


def test_the_numbers_are_given_where_they_are_asked_for():
    """`np.asarray(x)` is `x.numpy()`, whether x requires a gradient or not."""
    w = trained()
    assert np.asarray(w) is not None and np.shares_memory(np.asarray(w), w.numpy())
    assert np.array(w).tolist() == w.tolist() and np.array([w, w]).shape == (2, 2, 2)
    assert np.asarray(w, np.float64).dtype == np.float64


def test_operands_in_a_list_do_not_lose_their_gradient():
    w = tg.Parameter([1.0, 2.0])
    for call in (lambda: tg.mean([w, w]), lambda: tg.add([w, w], 1.0), lambda: tg.as_tensor([w])):
        with pytest.raises(GraphError, match=r"gradient.*Way out: tg\.stack"):
            call()
    assert tg.tensor([w, w]).tolist() == [[1, 2], [1, 2]]  # a copy, as of one tensor
    with tg.no_grad():
        assert tg.mean([w, w]).item() == 1.5
    assert tg.mean([tg.ones(2), tg.ones(2)]).item() == 1
