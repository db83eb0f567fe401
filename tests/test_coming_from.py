"""The table of PyTorch's names: complete, true, and compared with PyTorch where it is installed."""

import importlib
import inspect
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import tinygraph as tg
from tests.test_docs import script
from tinygraph.interop import torch_names as coming_from

names_table = script("names_table")
PLACES = list(coming_from.HERE)
MODULES = {
    "torch": ["torch"],
    "Tensor": ["torch.Tensor"],
    "nn": ["torch.nn"],
    "nn.functional": ["torch.nn.functional"],
    "optim": ["torch.optim", "torch.optim.lr_scheduler", "torch.nn.utils"],
    "utils.data": ["torch.utils.data"],
}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")


def theirs(place):
    """What has the names of a place in PyTorch."""
    for path in MODULES[place]:
        yield torch_tensor() if path == "torch.Tensor" else importlib.import_module(path)


def torch_tensor():
    return importlib.import_module("torch").Tensor


# ---- the table -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_no_row_is_stale(place):
    """What is other, or ours alone, is there.  A row of what is absent counts until it comes."""
    where = names_table.home(place)
    other = [n for n in coming_from.rows("other") if names_table.in_place(n, place)]
    assert not [n for n in other if not hasattr(where, n.rpartition(".")[2])]
    assert not [n for n in coming_from.sections()[f"ours {place}"].split() if not hasattr(where, n)]


def test_every_absent_method_has_a_way_out():
    methods = coming_from.sections()["methods"].split()
    assert len(methods) == len(set(methods))
    assert not [n for n in methods if not coming_from.way_out("Tensor", n)]
    rows = {n.rpartition(".")[2] for n in coming_from.rows("absent") if n.startswith("Tensor.")}
    assert rows <= set(methods)


@pytest.mark.parametrize("place", PLACES)
def test_names_of_the_table_are_pytorchs(place, torch):
    rows = [*coming_from.rows("absent"), *coming_from.rows("other")]
    names = {n.rpartition(".")[2] for n in rows if names_table.in_place(n, place)}
    names |= set(names_table.same(place))
    there = list(theirs(place))
    names -= {"grad_fn"}  # which PyTorch's class does not show
    unknown = {n for n in names if not any(hasattr(module, n) for module in there)}
    assert not unknown, "put ours into torch_names.txt"
    ours = {n for n in coming_from.sections()[f"ours {place}"].split() if hasattr(there[0], n)}
    assert not ours - {"data", "training", "load", "saved", "values"}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda: tg.torchvision,
            r"^tg.torchvision: stands beside PyTorch.* tg.data.mnist",
        ),
        (lambda: tg.optim.swa_utils, r"^tg.optim.swa_utils: .* Way out: a second model"),
        (lambda: tg.data.distributed, r"^tg.data.distributed: .* Way out: DataLoader"),
        (lambda: tg.is_floating_point, r"^tg.is_floating_point: .* Way out: x.dtype.kind == 'f'"),
        (lambda: tg.ones(2).fmod, r"^Tensor.fmod: .* Way out: x - y \* tg.trunc"),
        (lambda: tg.ones(2).log1p_, r"^Tensor.log1p_: .* Way out: a new node"),
        (lambda: tg.tensordot, r"^tg.tensordot: PyTorch has it, .* Way out: tg.einsum"),
        (lambda: tg.soft_max, r"^tg has no attribute 'soft_max'; did you mean 'softmax'\?$"),
        (lambda: tg.ones(2).add_, r"^Tensor.add_: PyTorch has it, .* Way out: a new node"),
        (lambda: tg.Tensor.cumprod, r"^Tensor.cumprod: .* Way out: x.log\(\).cumsum"),
        (lambda: tg.nn.CTCLoss, r"^tg.nn.CTCLoss: .* Way out: add it as an op"),
        (lambda: tg.nn.Linea, r"^tg.nn has no attribute 'Linea'; did you mean 'Linear'\?$"),
        (lambda: tg.nn.functional.grid_sample, r"^tg.nn.functional.grid_sample: .* Way"),
        (lambda: tg.optim.LBFGS, r"^tg.optim.LBFGS: .* Way out: a subclass"),
        (lambda: tg.optim.lr_scheduler.CyclicLR, r"^tg.optim.lr_scheduler.CyclicLR: .* Way out: a"),
        (lambda: tg.optim.lr_scheduler.StepRL, r"^tg.optim.lr_scheduler has no .* mean 'StepLR'"),
        (lambda: tg.nn.init.dirac_, r"^tg.nn.init.dirac_: PyTorch has it, .* Way out: p.value ="),
        (
            lambda: tg.nn.init.xavier_normal,
            r"^tg.nn.init.xavier_normal: .* Way out: the name with _",
        ),
        (lambda: tg.nn.utils.weight_norm, r"^tg.nn.utils.weight_norm: .* Way out: compute the"),
        (lambda: tg.nn.utils.clip_grad_nrom_, r"^tg.nn.utils .* did you mean 'clip_grad_norm_'"),
        (lambda: tg.autograd.Function, r"^tg.autograd.Function: .* Way out: a subclass of tg.Op"),
        (lambda: tg.cuda.synchronize, r"^tg.cuda.synchronize: .* Way out: x.item\(\)"),
        (lambda: tg.testing.assert_close, r"^tg.testing.assert_close: .* Way out: np.testing"),
        (lambda: tg.ones(2).ceil_, r"^Tensor.ceil_: PyTorch has it, .* Way out: a new node"),
        (lambda: tg.ones(2).copy, r"^Tensor.copy: numpy has it, .* Way out: x.clone\(\)$"),
        (lambda: tg.data.IterableDataset, r"^tg.data.IterableDataset: .* Way out: a Dataset"),
    ],
)
def test_a_name_that_is_not_there_says_ours(ask, words):
    with pytest.raises(AttributeError, match=words):
        ask()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("from tinygraph import tensordot", r"^tg.tensordot: .* Way out: tg.einsum"),
        ("from tinygraph.optim import swa_utils", r"^tg.optim.swa_utils: .* Way out: a second"),
        ("from tinygraph.nn.functional import grid_sample", r"^tg.nn.functional.grid_sample: "),
        ("from tinygraph.nn.utils import spectral_norm", r"^tg.nn.utils.spectral_norm: .* Way"),
        ("from tinygraph.optim.lr_scheduler import StepRL", r"did you mean 'StepLR'"),
    ],
)
def test_an_import_of_such_a_name_says_ours(line, words):
    with pytest.raises(ImportError, match=words):
        exec(line)


def test_the_places_of_pytorchs_are_modules():
    for place in coming_from.HERE | coming_from.SMALL:
        name = {"torch": "", "Tensor": "", "utils.data": ".data"}.get(place, f".{place}")
        importlib.import_module(f"tinygraph{name}")
    from tinygraph.nn.utils import clip_grad_norm_

    assert clip_grad_norm_ is tg.nn.utils.clip_grad_norm_


def test_python_itself_says_which_method_is_near(capsys):
    """A `__getattr__` of Tensor would make each attribute of each node slower."""
    with pytest.raises(AttributeError) as caught:
        tg.ones(2).unsqeeze(0)
    sys.__excepthook__(caught.type, caught.value, caught.tb)
    assert "no attribute 'unsqeeze'. Did you mean: 'unsqueeze'?" in capsys.readouterr().err


@pytest.mark.parametrize("place", coming_from.SMALL)
def test_a_small_place_has_rows_of_pytorchs_names_alone(place, torch):
    rows = {
        n.rpartition(".")[2] for n in coming_from.rows("absent") if names_table.in_place(n, place)
    }
    theirs = importlib.import_module(f"torch.{place}")
    assert not [n for n in rows if not hasattr(theirs, n) and not find_spec(f"torch.{place}.{n}")]
    ours = importlib.import_module(
        {"nn.utils": "tinygraph.nn.vectors"}.get(place, f"tinygraph.{place}")
    )
    assert not [n for n in rows if hasattr(ours, n)]


def test_numbers_and_the_new_axis_have_their_names():
    assert (tg.pi, tg.e, tg.inf) == (np.pi, np.e, np.inf) and np.isnan(tg.nan)
    assert tg.ones(2)[:, tg.newaxis].shape == (2, 1)


def test_absent_methods_are_not_listed():
    x = tg.ones(2)
    assert not hasattr(x, "add_") and "add_" not in dir(x) and "add" in dir(x)


# ---- the same, called on both --------------------------------------------------------------

X = np.array([[0.5, 1.5, 0.25], [2.0, 0.75, 1.25]], np.float32)
Y = np.array([[1.0, 0.5, 0.25], [2.0, 3.0, 1.25]], np.float32)
IMAGE = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
WEIGHT = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
ROWS, TAPS = IMAGE[:, :, 0], WEIGHT[:, :, 0]
LABELS = np.array([0, 2])
INDEX = np.array([[0, 2], [1, 1]])

BINARY = """add sub subtract mul multiply div divide true_divide pow maximum minimum eq ne gt lt le
    ge not_equal greater greater_equal less less_equal floor_divide remainder mse_loss l1_loss
    huber_loss smooth_l1_loss"""
CASES = {  # arguments in PyTorch's order, where they are not (X) or (X, Y)
    "adaptive_avg_pool1d": [(IMAGE[0], 1), (IMAGE[0], 3)],
    "adaptive_avg_pool2d": [(IMAGE, 1), (IMAGE, (3, 5)), (IMAGE, (None, 2))],
    "all": [(X > 1,), (X > 1, 1)],
    "any": [(X > 1,), (X > 1, 1)],
    "arange": [(5,), (1, 7, 2)],
    "binary_cross_entropy": [(X / 4, Y / 4), (X / 4, Y / 4, X)],
    "binary_cross_entropy_with_logits": [(X, Y / 4), (X, Y / 4, X)],
    "bmm": [(IMAGE[0], IMAGE[1])],
    "cat": [([X, Y],), ([X, Y], 1)],
    "chunk": [(X, 2), (X, 2, 1)],
    "clamp": [(X, 0.5), (X, 0.5, 1.0)],
    "conv1d": [(ROWS, TAPS), (ROWS, TAPS, WEIGHT[:, 0, 0, 0], 2, 1)],
    "conv_transpose1d": [(WEIGHT[0], IMAGE[0]), (WEIGHT[0], IMAGE[0], X[0, :1].repeat(4), 2, 1)],
    "conv_transpose2d": [(WEIGHT, WEIGHT), (WEIGHT, WEIGHT, X[0], 2, 1, 1)],
    "conv2d": [(IMAGE, WEIGHT), (IMAGE, WEIGHT, WEIGHT[:, 0, 0, 0], 2, 1)],
    "cross_entropy": [(X, LABELS), (X, Y / 4), (X, LABELS, Y[0]), (X[0], LABELS[1]), (X[0], Y[0])],
    "cumsum": [(X, 1), (X, 0)],
    "dropout": [(X, 0.0, True), (X, 0.5, False)],
    "eye": [(3,), (2, 3)],
    "embedding": [(INDEX, X.T.copy()), (INDEX, X.T.copy(), 1)],
    "expand": [(X[:1], 4, 3), (X[:1], (4, 3))],
    "expand_as": [(X[:1], Y)],
    "flip": [(X, (1,)), (X, (0, 1))],
    "flatten": [(IMAGE,), (IMAGE, 1), (IMAGE, 1, 2)],
    "full": [((2, 3), 1.5), ((2,), 3)],
    "full_like": [(X, 1.5), (INDEX, 3)],
    "gather": [(X, 1, INDEX), (X, 1, INDEX[:1]), (X, 0, LABELS[None] // 2)],
    "topk": [(X, 2), (X, 1, 0, False)],
    "group_norm": [(IMAGE, 1), (IMAGE, 1, WEIGHT[0, :, 0, 0])],
    "rms_norm": [(X, (3,)), (X, (3,), Y[0], 0.5)],
    "hstack": [([X, Y],)],
    "item": [(X[0, 0],)],
    "interpolate": [(IMAGE, None, 2.0), (IMAGE, (3, 5), None, "bilinear", True)],
    "layer_norm": [(X, (3,)), (X, (3,), X[0], X[1])],
    "linear": [(X, Y), (X, Y, X[:, 0])],
    "linspace": [(0, 1, 5), (3, -1, 2)],
    "log_softmax": [(X, 1)],
    "matmul": [(X, Y.T.copy())],
    "max": [(X,), (X, 1), (X, 0, True), (X, Y)],
    "avg_pool1d": [(ROWS, 2), (ROWS, 3, 1, 1)],
    "max_pool1d": [(ROWS, 2), (ROWS, 2, 1, 1, 2)],
    "max_pool2d": [(IMAGE, 2), (IMAGE, 3, 1, 1), (IMAGE, 2, 1, 1, 2, True)],
    "avg_pool2d": [(IMAGE, 2), (IMAGE, 3, 1, 1)],
    "mean": [(X,), (X, 1), (X, (0, 1), True)],
    "movedim": [(IMAGE, 1, 3)],
    "nll_loss": [(-X, LABELS), (-X, LABELS, Y[0]), (-X[0], LABELS[1], Y[0])],
    "batch_norm": [(X, Y[0], Y[1], X[0], X[1])],
    "ones": [(2, 3), ((2, 3),)],
    "pad": [(X, (1, 2)), (X, (1, 2, 0, 1), "constant", 7.0), (IMAGE, (1, 2, 0, 3), "reflect")],
    "permute": [(IMAGE, (0, 2, 3, 1))],
    "prod": [(X,), (X, 1)],
    "repeat": [(X, 2, 1), (X, 2, 1, 3)],
    "repeat_interleave": [(X, 2), (X, 2, 1), (X, LABELS, 0)],
    "reshape": [(X, (3, 2)), (X, (-1,))],
    "roll": [(X, 1), (X, 2, 1), (X, (1, -1), (0, 1))],
    "scaled_dot_product_attention": [
        (IMAGE, IMAGE, IMAGE),
        (IMAGE, -IMAGE, IMAGE, IMAGE[0]),
        (IMAGE, -IMAGE, IMAGE, np.tri(4) > 0),
    ],
    "softmax": [(X, 1), (X, 0)],
    "split": [(X, 2, 1), (X, [1, 2], 1)],
    "squeeze": [(X[:1],), (X[:1], 0)],
    "stack": [([X, Y],), ([X, Y], 1)],
    "std": [(X,), (X, 1)],
    "sum": [(X,), (X, 1), (X, (0, 1), True)],
    "tensor_split": [(X, 2, 1), (X, [1], 1)],
    "tensor": [([1.0, 2.5],), (3,), ([[True]],)],
    "tile": [(X, (2, 2)), (X, (2,))],
    "to": [(X, "cpu")],
    "transpose": [(IMAGE, 1, 3), (X, 0, 1)],
    "type_as": [(X, LABELS)],
    "unbind": [(X,), (X, 1)],
    "unflatten": [(X, 1, (3, 1)), (X, 0, (1, -1))],
    "unsqueeze": [(X, 0), (X, -1)],
    "view": [(X, 3, 2), (X, (-1,)), (X, -1)],
    "view_as": [(X, Y.T)],
    "vstack": [([X, Y],)],
    "where": [(X > 1, X, Y)],
    "zeros": [(2, 3), ((2, 3),)],
}
CASES |= {name: [(X, Y)] for name in BINARY.split()}
CASES |= {"new_zeros": [(X, 2, 3), (INDEX, (2,))], "new_ones": [(X, 2), (INDEX, (2, 1))]}
CASES |= {"new_full": [(X, (2,), 3), (INDEX, (2, 1), 7)], "new_tensor": [(X, [1, 2]), (INDEX, 3)]}
OF_FLOATS = "cos erf exp expm1 log log1p log2 reciprocal rsqrt sigmoid sin sqrt tanh"
CASES |= {name: [(X,), (INDEX,), (X > 1,)] for name in OF_FLOATS.split()}  # these are made floats
WHOLE = "ceil floor relu relu6 round sign trunc"
CASES |= {name: [(X - 1,), (INDEX - 1,)] for name in WHOLE.split()}  # integers stay integers
CASES |= {"hardtanh": [(X - 1,), (INDEX - 1, -0.5, 1.5)], "softsign": [(X,), (INDEX,)]}
CASES["avg_pool2d"].append((IMAGE, 3, 2, 1, True, True, 5))
CASES |= {"logsumexp": [(X, 1), (X, 0, True), (INDEX, 1)]}
BITS = [(INDEX, INDEX[:1]), (X > 1, Y > 1)]
CASES |= {f"bitwise_{name}": BITS for name in ("and", "or", "xor")}
CASES |= {f"logical_{name}": [*BITS, (X, Y)] for name in ("and", "or", "xor")}
CASES |= {"bitwise_not": [(INDEX,), (X > 1,)], "logical_not": [(X,), (INDEX,), (X > 1,)]}
CASES |= {"dot": [(X[0], Y[1])], "mv": [(X, Y[0])], "outer": [(X[0], Y[:, 0])]}
CASES |= {
    "einsum": [
        ("ij, kj -> ik", X, Y),
        ("ij,ij", X, Y),
        ("...j->j", X),
        ("ii", X[:, :2]),
        ("ii->i", IMAGE[0, 0]),
    ]
}
CASES |= {"cosine_similarity": [(X, Y), (X, Y, 0)], "glu": [(IMAGE,), (IMAGE, 2)]}
CASES |= {"masked_fill": [(X, X > 1, -1.0)], "one_hot": [(LABELS,), (LABELS, 5)]}
CASES |= {"prelu": [(X - 1, Y[0]), (X - 1, Y[0, :1])]}
CASES |= {"tril": [(X,), (X, -1)], "triu": [(X,), (X, 1)]}
CASES |= {"sort": [(X,), (X, 0, True)], "argsort": [(X,), (X, 0, True)]}
CASES |= {"var": CASES["std"], "var_mean": CASES["std"], "std_mean": CASES["std"]}
CASES |= {"min": CASES["max"], "amax": CASES["mean"], "amin": CASES["mean"], "mm": CASES["matmul"]}
CASES |= {"argmax": [(X,), (X, 1)], "argmin": [(X,), (X, 1)], "reshape_as": CASES["view_as"]}
CASES |= {"concat": CASES["cat"], "concatenate": CASES["cat"], "clip": CASES["clamp"]}
CASES |= {"moveaxis": CASES["movedim"], "swapaxes": CASES["transpose"]}
CASES |= {"swapdims": CASES["transpose"]}
OF_METHODS = {"where": [(X, X > 1, Y)], "permute": [(IMAGE, 0, 2, 3, 1)], "dropout": []}

# Called by tests of their own, for numbers are drawn, or nothing comes back.
ELSEWHERE = """bernoulli multinomial new_empty
    no_grad get_float32_matmul_precision set_float32_matmul_precision promote_types
    result_type from_numpy from_dlpack empty empty_like rand randn randint randperm rand_like
    randn_like cuda backward detach requires_grad_ retain_grad register_hook data"""


def compared(name, ours, theirs, args, torch):
    """Both results, flat lists of arrays."""
    mine = ours(*changed(args, tg.Tensor))
    reference = theirs(*changed(args, lambda a: torch.tensor(np.asarray(a))))
    return flat(mine), flat(reference)


def changed(args, make):
    if isinstance(args, (tuple, list)):
        return type(args)(changed(each, make) for each in args)
    return make(args) if isinstance(args, (np.ndarray, np.generic)) else args


def flat(result):
    if isinstance(result, (tuple, list)):
        return [array for each in result for array in flat(each)]
    return [result.numpy() if hasattr(result, "numpy") else np.asarray(result)]


def agree(name, ours, theirs, torch, cases):
    for args in cases:
        mine, reference = compared(name, ours, theirs, args, torch)
        assert len(mine) == len(reference), name
        for a, b in zip(mine, reference, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, (name, a.dtype, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)


# Other at edges alone, where equal elements share a gradient or something is NaN.
ALIKE = "amax amin cosine_similarity maximum minimum sign"


def callables(place):
    where = names_table.home(place)
    other = [
        n.rpartition(".")[2] for n in coming_from.rows("other") if names_table.in_place(n, place)
    ]
    same = [n for n in names_table.same(place) if n not in ELSEWHERE.split()]
    same += [n for n in other if n in ALIKE.split()]
    return [n for n in same if inspect.isroutine(inspect.getattr_static(where, n, None))]


@pytest.mark.parametrize("name", callables("torch"))
def test_a_function_is_the_same(name, torch):
    agree(name, getattr(tg, name), getattr(torch, name), torch, CASES.get(name, [(X,)]))


@pytest.mark.parametrize("name", callables("nn.functional"))
def test_a_function_of_nn_is_the_same(name, torch):
    theirs = getattr(torch.nn.functional, name)
    agree(name, getattr(tg.nn.functional, name), theirs, torch, CASES.get(name, [(X,)]))


@pytest.mark.parametrize("name", callables("Tensor"))
def test_a_method_is_the_same(name, torch):
    cases = OF_METHODS.get(name, CASES.get(name, [(X,)]))
    agree(name, getattr(tg.Tensor, name), getattr(torch.Tensor, name), torch, cases)


@pytest.mark.parametrize(
    "name", [n for n in names_table.same("Tensor") if n not in callables("Tensor")]
)
def test_an_attribute_is_there_in_both(name, torch):
    assert hasattr(tg.Tensor(X), name) and hasattr(torch.tensor(X), name)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.amax(),
        lambda x: x.amin((0, 1)),
        lambda x: x.amax(1).sum(),
        lambda x: x.max(),
        lambda x: x.min(),
        lambda x: x.max(1).values.sum(),
        lambda x: x.min(0).values.sum(),
        lambda x: x.norm(float("inf")),
        lambda x: x.norm(float("inf"), 1).sum(),
        lambda x: x.norm(-float("inf")),
    ],
)
def test_equal_elements_share_the_gradient_as_in_pytorch(call, torch):
    tied = np.float32([[2.0, -2.0, 2.0, 1.0], [0.5, 0.5, -0.5, 0.5]])
    mine, reference = tg.Tensor(tied, requires_grad=True), torch.tensor(tied, requires_grad=True)
    call(mine).backward()
    call(reference).backward()
    np.testing.assert_allclose(mine.grad, reference.grad.numpy(), rtol=1e-6)


def test_mT_and_T(torch):
    for name, array in (("T", X), ("mT", IMAGE)):
        mine, reference = getattr(tg.Tensor(array), name), getattr(torch.tensor(array), name)
        np.testing.assert_array_equal(mine.value, reference.numpy())


@pytest.mark.parametrize("name", names_table.same("nn"))
def test_a_layer_takes_its_arguments_by_pytorchs_names(name, torch):
    """Each parameter of ours that PyTorch's layer has stands at the same place among these."""
    mine = inspect.signature(getattr(tg.nn, name)).parameters
    theirs = list(inspect.signature(getattr(torch.nn, name)).parameters)
    shared = [p for p in mine if p in theirs and mine[p].kind is not mine[p].KEYWORD_ONLY]
    assert shared == sorted(shared, key=theirs.index)


@pytest.mark.parametrize("row", coming_from.rows("numpy"))
def test_a_name_of_numpys_says_ours(row):
    place, _, name = row.partition(".")
    ours, theirs, mine = {
        "numpy": ("tg", np, tg),
        "ndarray": ("Tensor", np.ndarray, tg.Tensor),
    }[place]
    # numpy 2 has left row_stack, and has cumulative_sum from 2.1 on
    assert hasattr(theirs, name) or name in ("row_stack", "cumulative_sum")
    with pytest.raises(AttributeError, match=f"^{ours}.{name}: numpy has it, .* Way out: "):
        getattr(mine, name)


def test_what_is_taken_for_pytorchs_sake():
    assert tg.nn.Embedding(3, 2, sparse=True).weight.shape == (3, 2)
    image = tg.ones((1, 1, 4, 5))
    assert tg.conv2d(image, tg.ones((1, 1, 3, 3)), padding="valid").shape == (1, 1, 2, 3)
    assert tg.nn.Conv1d(1, 1, 3, padding="valid")(tg.ones((1, 1, 5))).shape == (1, 1, 3)
