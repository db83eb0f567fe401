"""Exercise 14: it is what the framework computes; other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

TRAIN = find("train")
CLOSE = {"rtol": 1e-9, "atol": 1e-12}

FORWARD = """
        if self.running:
            mean = np.asarray(self.running[0], dtype=x.dtype)
            var = np.asarray(self.running[1], dtype=x.dtype)
        else:
            mean = x.sum(0) / len(x)
            var = ((x - mean) ** 2).sum(0) / len(x)
        centred = x - mean
        inverse = (var + self.eps) ** -0.5
        return centred * inverse * w + b, (centred, inverse, w)
"""
BACKWARD = """
        centred, inverse, w = saved
        N = len(gy)
        gz = gy * w
        if self.running:
            gx = gz * inverse
        else:
            gvar = (gz * centred * -0.5 * inverse**3).sum(0)
            gmean = (-gz * inverse).sum(0) + gvar * (-2 * centred).sum(0) / N
            gx = gz * inverse + gvar * 2 * centred / N + gmean / N
        return [gx, (gy * centred * inverse).sum(0), gy.sum(0)]
"""
PAPER = f"""{FORWARD}
    def backward(self, mem, gy, saved, needs):
        "As the paper has it."{BACKWARD}"""
RUNNING = """
    n = batch.shape[0]
    new = batch.sum(axis=0) / n
    square = ((batch - new) ** 2).sum(axis=0) / (n - 1)
    return mean + momentum * (new - mean), var + momentum * (square - var)
"""
MASKED = """
    keep = uniform(x.shape) >= p
    y = np.zeros_like(x)
    y[keep] = x[keep] / (1 - p)
    def backward(gy):
        gx = np.zeros_like(gy)
        gx[keep] = gy[keep] / (1 - p)
        return gx
    return y, backward
"""
LAMBDA = """
    dropped = uniform(x.shape) < p
    scale = np.where(dropped, 0, 1 / (1 - p)).astype(x.dtype)
    return scale * x, lambda gy: scale * gy
"""
SCRATCH = """
        step, = scratch
        np.multiply(state["buffer"], hyper["momentum"], out=state["buffer"])
        np.add(state["buffer"], grad, out=state["buffer"])
        np.multiply(state["buffer"], hyper["lr"], out=step)
        value[...] = value - step
"""
NEW_ARRAY = """
        state["buffer"] = hyper["momentum"] * state["buffer"] + grad
        value[:] = value - hyper["lr"] * state["buffer"]
"""
ADAM = """
    first = m + (1 - beta1) * (g - m)
    second = v + (1 - beta2) * (g * g - v)
    rate = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
    below = np.sqrt(second) + eps * np.sqrt(1 - beta2**t)
    return (p - (rate * first / below).astype(p.dtype), first, second)
"""
ADADELTA = """
    eg = eg * rho + g * g * (1 - rho)
    step = g * ((ed + eps) / (eg + eps)) ** 0.5
    return [p - step, eg, ed * rho + step * step * (1 - rho)]
"""
RIGHT = {
    "the gradients of the paper": ("forward", PAPER),
    "moved towards the new ones": ("running", RUNNING),
    "elements that stay, by index": ("dropout", MASKED),
    "a lambda": ("dropout", LAMBDA),
    "with scratch": ("update", SCRATCH),
    "a new array in the state": ("update", NEW_ARRAY),
    "a rate that is corrected": ("adam", ADAM),
    "one root": ("adadelta", ADADELTA),
}
WRONG = {  # (function, body, name of the mistake)
    "eps behind the root": (
        "forward",
        PAPER.replace("(var + self.eps) ** -0.5", "1 / (var**0.5 + self.eps)"),
        "eps-outside",
    ),
    "N - 1 in the batch": (
        "forward",
        PAPER.replace("** 2).sum(0) / len(x)", "** 2).sum(0) / (len(x) - 1)"),
        "unbiased-in-the-batch",
    ),
    "no gradient of the variance": (
        "forward",
        PAPER.replace(" + gvar * 2 * centred / N", ""),
        "variance-path-missing",
    ),
    "no gradient of the mean": (
        "forward",
        PAPER.replace(" + gmean / N", ""),
        "mean-path-missing",
    ),
    "one backward for both": (
        "forward",
        PAPER.replace("if self.running:\n            gx", "if False:\n            gx"),
        "evaluated-as-trained",
    ),
    "sums that are means": (
        "forward",
        PAPER.replace("inverse).sum(0), gy.sum(0)", "inverse).mean(0), gy.mean(0)"),
        "means-for-sums",
    ),
    "towards the old ones": (
        "running",
        RUNNING.replace("momentum *", "(1 - momentum) *"),
        "momentum-weighs-the-old",
    ),
    "over n": ("running", RUNNING.replace("/ (n - 1)", "/ n"), "biased"),
    "zeros alone": ("dropout", MASKED.replace("x[keep] / (1 - p)", "x[keep]"), "not-made-larger"),
    "another draw": (
        "dropout",
        LAMBDA.replace(
            "lambda gy: scale * gy", "lambda gy: gy * (uniform(gy.shape) >= p) / (1 - p)"
        ),
        "new-mask-on-the-way-back",
    ),
    "what is 0 was dropped": (
        "dropout",
        MASKED.replace("gx[keep] = gy[keep] / (1 - p)", "gx[y != 0] = gy[y != 0] / (1 - p)"),
        "mask-of-y",
    ),
    "p stays": ("dropout", LAMBDA.replace("< p", ">= p"), "others-dropped"),
    "one buffer in the class": (
        "update",
        """
        if not hasattr(self, "v"):
            self.v = np.zeros(value.shape)
        self.v *= hyper["momentum"]
        self.v += grad
        value -= hyper["lr"] * self.v
""",
        "state-shared",
    ),
    "a new value": (
        "update",
        NEW_ARRAY.replace("value[:] =", "value ="),
        "value-not-in-place",
    ),
    "the buffer by name": (
        "update",
        """
        b = state["buffer"]
        b = b * hyper["momentum"] + grad
        value -= b * hyper["lr"]
""",
        "buffer-not-kept",
    ),
    "velocity": (
        "update",
        """
        state["buffer"][...] = hyper["momentum"] * state["buffer"] - hyper["lr"] * grad
        value += state["buffer"]
""",
        "rate-in-the-buffer",
    ),
    "no correction": (
        "adam",
        "\n    m = beta1 * m + g * (1 - beta1)\n    v = beta2 * v + g * g * (1 - beta2)\n"
        "    return p - lr * m / (v**0.5 + eps), m, v\n",
        "not-corrected",
    ),
    "eps in the root": (
        "adam",
        ADAM.replace(
            "np.sqrt(second) + eps * np.sqrt(1 - beta2**t)",
            "(second + eps * (1 - beta2**t)) ** 0.5",
        ),
        "eps-inside",
    ),
    "a step less": ("adam", ADAM.replace("**t", "**(t - 1)"), "steps-counted-from-zero"),
    "RMSprop": (
        "adadelta",
        ADADELTA.replace("((ed + eps) / (eg + eps)) ** 0.5", "(1 / (eg + eps)) ** 0.5"),
        "of-the-gradient-alone",
    ),
    "squares of gradients twice": (
        "adadelta",
        ADADELTA.replace("step * step", "g * g"),
        "ed-of-gradients",
    ),
    "no root at all": ("adadelta", ADADELTA.replace(" ** 0.5", ""), "roots-missing"),
}
OUTSIDE = {  # (function, body): of these the case is told, and no sure name
    "the median": ("forward", PAPER.replace("x.sum(0) / len(x)", "np.median(x, axis=0)")),
    "half of gw": ("forward", PAPER.replace("(gy * centred", "0.5 * (gy * centred")),
    "n - 2": ("running", RUNNING.replace("/ (n - 1)", "/ max(n - 2, 1)")),
    "the largest": ("running", RUNNING.replace("batch.sum(axis=0) / n", "batch.max(axis=0)")),
    "noise in the place of zeros": ("dropout", MASKED.replace("np.zeros_like(x)", "x * 0.1")),
    "one number for each row": (
        "dropout",
        LAMBDA.replace("uniform(x.shape)", "uniform(x.shape)[..., :1]"),
    ),
    "momentum squared": (
        "update",
        SCRATCH.replace('hyper["momentum"], out', 'hyper["momentum"] ** 2, out'),
    ),
    "the sign of the buffer": (
        "update",
        NEW_ARRAY.replace('"lr"] * state["buffer"]', '"lr"] * np.sign(state["buffer"])'),
    ),
    "amsgrad": (
        "adam",
        ADAM.replace("    rate =", "    second = np.maximum(second, v)\n    rate ="),
    ),
    "a cube root": ("adadelta", ADADELTA.replace("** 0.5", "** (1 / 3)")),
}


def with_body(function, body):
    """The solution with another body of one function, or of what follows in its class."""
    text = TRAIN.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n\n", start)  # between methods there is a line less
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + (text[end:] if end >= 0 else "")


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(TRAIN, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(TRAIN, with_body(function, body), tmp_path).failure
    assert failure is not None and failure.mistake is not None, failure
    assert failure.mistake.name == name and failure.sure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_a_mistake_outside_of_the_catalogue_has_no_sure_name(style, tmp_path):
    failure = of(TRAIN, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and (failure.mistake is None or not failure.sure), failure


def test_the_worked_example_of_the_text():
    solution = module(TRAIN.solution)
    op, one = solution.BatchNorm(3.0), np.ones(1)
    y, saved = op.forward(None, np.array([[1.0], [3.0]]), one, 0 * one)
    assert y.tolist() == [[-0.5], [0.5]]
    gx, gw, gb = op.backward(None, np.array([[1.0], [8.0]]), saved, (True,) * 3)
    assert (gx.tolist(), gw.tolist(), gb.tolist()) == ([[-1.3125], [1.3125]], [3.5], [9])
    r = np.array([0.7, 0.2, 0.9, 0.5])
    y, _ = solution.dropout(np.array([1.0, 2, 3, 4]), 0.5, lambda shape: r)
    assert y.tolist() == [2, 0, 6, 8]
    p, m, v = solution.adam(0 * one, 2 * one, 0 * one, 0 * one, 1, 1.0, 0.75, 0.75, 0.0)
    assert (p, m, v) == (-1, 0.5, 1)
    p, eg, ed = solution.adadelta(0 * one, 2 * one, 0 * one, 0 * one, 0.75, 1.0)
    assert (round(-p.item(), 3), eg, round(ed.item(), 3)) == (1.414, 1, 0.5)


@pytest.mark.parametrize("seed", range(10))
def test_the_solution_is_batch_norm_of_the_framework(seed):
    draw, solution = np.random.default_rng(seed), module(TRAIN.solution)
    N, C = draw.integers(2, 7), draw.integers(1, 5)
    arrays = [draw.standard_normal(shape) for shape in ((N, C), (C,), (C,), (N, C))]
    mean, var = draw.standard_normal(C), draw.uniform(0.5, 2, C)
    for training in (True, False):
        leaves = [tg.Tensor(a, requires_grad=True) for a in arrays[:3]]
        kept = mean.copy(), var.copy()
        y = tg.batch_norm(*leaves, *kept, training=training, momentum=0.3, eps=0.1)
        y.backward(arrays[3])
        op = solution.BatchNorm(0.1, None if training else (tuple(mean), tuple(var)))
        made, saved = op.forward(None, *arrays[:3])
        np.testing.assert_allclose(made, y.value, **CLOSE)
        for got, leaf in zip(op.backward(None, arrays[3], saved, (True,) * 3), leaves, strict=True):
            np.testing.assert_allclose(got, leaf.grad, **CLOSE)
        if training:
            moved = solution.running(mean, var, arrays[0], 0.3)
            np.testing.assert_allclose(moved, kept, **CLOSE)


def test_the_solution_drops_what_the_framework_drops():
    solution, x = module(TRAIN.solution), np.arange(1.0, 41).reshape(5, 8)
    tg.manual_seed(3)
    leaf = tg.Tensor(x, requires_grad=True)
    y = tg.dropout(leaf, 0.25)
    y.backward(x)
    r = np.where(y.value == 0, 0.0, 0.5)
    got, backward = solution.dropout(x, 0.25, lambda shape: r)
    np.testing.assert_allclose(got, y.value, **CLOSE)
    np.testing.assert_allclose(backward(x), leaf.grad, **CLOSE)


@pytest.mark.parametrize("name", ["Momentum", "adam", "adadelta"])
def test_the_solution_takes_the_steps_of_the_framework(name):
    draw, solution = np.random.default_rng(14), module(TRAIN.solution)
    start, zeros = draw.standard_normal((2, 3)), np.zeros((2, 3))
    ours, theirs = tg.Parameter(start.copy()), tg.Parameter(start.copy())
    optimizers = {
        "Momentum": tg.optim.SGD([theirs], lr=0.3, momentum=0.8),
        "adam": tg.optim.Adam([theirs], lr=0.3),
        "adadelta": tg.optim.Adadelta([theirs]),
    }
    momentum = solution.Momentum([ours], 0.3, 0.8)
    p, one, other = start, zeros, zeros
    for t in range(1, 8):
        ours.grad = theirs.grad = g = draw.standard_normal((2, 3))
        optimizers[name].step()
        if name == "Momentum":
            momentum.step()
            p = ours.value
        elif name == "adam":
            p, one, other = solution.adam(p, g, one, other, t, lr=0.3)
        else:
            p, one, other = solution.adadelta(p, g, one, other)
        np.testing.assert_allclose(p, theirs.value, **CLOSE)


def test_a_momentum_of_the_solution_is_saved_and_loaded():
    solution = module(TRAIN.solution + TRAIN.harness)
    case = [np.zeros(2)], [[np.ones(2)]] * 4, [0.5] * 4, 0.9
    assert [a[0].tolist() for a in solution.tg_momentum(*case, 2)[0]] == [
        a[0].tolist() for a in solution.tg_momentum(*case, 99)[0]
    ]
