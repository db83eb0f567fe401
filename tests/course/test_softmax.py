"""Exercise 6: it is the framework's loss."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.softmax.steps import DIGITS, GOOD, SEEDS, near

SOFTMAX = find("softmax")

LOOP = """
    total = 0.0
    for row, label in zip(log_softmax(z), labels):
        total -= row[label]
    return total / len(labels)
"""
ONEHOT = """
    onehot = np.eye(z.shape[1], dtype=z.dtype)[labels]
    e = np.exp(z - z.max(1)[:, None])
    return (e / e.sum(1)[:, None] - onehot) / z.shape[0]
"""
SAVED = """
        p = np.exp(log_softmax(z))
        loss = np.array(cross_entropy(z, labels))
        return loss, (p, labels)

    def backward(self, mem, gy, saved, needs):
        p, labels = saved
        onehot = np.eye(p.shape[1], dtype=p.dtype)[labels]
        return [gy * (p - onehot) / len(p), None]
"""
BY_HAND = """
    losses = []
    for x, labels in batches:
        logits = model(x)
        losses.append(float(cross_entropy(logits.numpy(), labels)))
        logits.backward(gradient(logits.numpy(), labels))
        optimizer.step()
        optimizer.zero_grad()
    return losses
"""
LEARN = """
    epoch = 0
    while epoch < epochs:
        losses = train(model, batches, optimizer)
        epoch += 1
    x, labels = test
    right = 0
    for row, label in zip(model(x).tolist(), labels):
        right += row.index(max(row)) == label
    return right / len(labels)
"""
WRONG = {  # (function, body, name of the mistake)
    "exp, sum, log": (
        "log_softmax",
        "\n    e = np.exp(z)\n    return z - np.log(e.sum(1)[:, None])\n",
        "no-shift",
    ),
    "a quotient, and its log": (
        "log_softmax",
        "\n    e = np.exp(z)\n    return np.log(e / e.sum(1, keepdims=True))\n",
        "no-shift",
    ),
    "np.max of everything": (
        "log_softmax",
        "\n    z = z - np.max(z)\n    return z - np.log(np.sum(np.exp(z), 1))[:, np.newaxis]\n",
        "shift-over-the-batch",
    ),
    "maxima laid along the classes": (
        "log_softmax",
        "\n    s = z - z.max(-1)\n    return s - np.log(np.exp(s).sum(-1))[:, None]\n",
        "axes-lost",
    ),
    "a softmax that is stable, then log": (
        "log_softmax",
        "\n    e = np.exp(z - z.max(1)[:, None])\n    return np.log(e / e.sum(1)[:, None])\n",
        "log-of-rounded-zero",
    ),
    "p clipped": (
        "log_softmax",
        "\n    e = np.exp(z - z.max(1)[:, None])\n"
        "    return np.log(np.clip(e / e.sum(1)[:, None], 1e-12, 1))\n",
        "something-added",
    ),
    "a one-hot product, and its mean": (
        "cross_entropy",
        "\n    onehot = np.eye(z.shape[1], dtype=z.dtype)[labels]\n"
        "    return np.mean(-onehot * log_softmax(z))\n",
        "over-classes-too",
    ),
    "a sum in a loop": (
        "cross_entropy",
        LOOP.replace(" / len(labels)", ""),
        "not-over-n",
    ),
    "columns alone": (
        "cross_entropy",
        "\n    return np.mean(-log_softmax(z)[:, labels])\n",
        "all-pairs",
    ),
    "take_along_axis without a mean": (
        "cross_entropy",
        "\n    return -np.take_along_axis(log_softmax(z), labels[:, None], axis=1)[:, 0]\n",
        "of-each-sample",
    ),
    "onehot less p": (
        "gradient",
        ONEHOT.replace("(e / e.sum(1)[:, None] - onehot)", "(onehot - e / e.sum(1)[:, None])"),
        "uphill",
    ),
    "one-hot rows, not divided": (
        "gradient",
        ONEHOT.replace(" / z.shape[0]", ""),
        "gradient-not-over-n",
    ),
    "no shift in the gradient": (
        "gradient",
        ONEHOT.replace("z - z.max(1)[:, None]", "z"),
        "overflow-in-the-gradient",
    ),
    "p is saved, and gy forgotten": ("forward", SAVED.replace("gy * ", ""), "upstream-ignored"),
    "without the op, and no zero_grad": (
        "train",
        BY_HAND.replace("        optimizer.zero_grad()\n", ""),
        "gradients-pile-up",
    ),
    "zero_grad once": (
        "train",
        BY_HAND.replace("        optimizer.zero_grad()\n", "").replace(
            "    losses = []\n", "    losses = []\n    optimizer.zero_grad()\n"
        ),
        "gradients-pile-up",
    ),
    "no backward": (
        "train",
        "\n    losses = []\n    for x, y in batches:\n        optimizer.zero_grad()\n"
        "        losses.append(SoftmaxCrossEntropy()(model(x), y).item())\n"
        "        optimizer.step()\n    return losses\n",
        "weights-stay",
    ),
    "step, then backward": (
        "train",
        "\n    losses = []\n    for x, y in batches:\n        optimizer.zero_grad()\n"
        "        loss = SoftmaxCrossEntropy()(model(x), y)\n        losses.append(loss.item())\n"
        "        optimizer.step()\n        loss.backward()\n    return losses\n",
        "step-before-backward",
    ),
    "the best so far": (
        "learn",
        "\n    shares = []\n    for _ in range(epochs):\n        train(model, batches, optimizer)\n"
        "        shares.append((model(test[0]).numpy().argmax(1) == test[1]).mean())\n"
        "    return float(max(shares))\n",
        "best-epoch-by-test",
    ),
    "all training data, counted": (
        "learn",
        "\n    for _ in range(epochs):\n        train(model, batches, optimizer)\n"
        "    right = total = 0\n    for x, labels in batches:\n"
        "        right += (model(x).numpy().argmax(1) == labels).sum()\n"
        "        total += len(labels)\n    return float(right / total)\n",
        "scored-on-training-data",
    ),
    "while without its last round": (
        "learn",
        LEARN.replace("epoch = 0", "epoch = 1"),
        "an-epoch-less",
    ),
}


def with_body(function, body):
    """The solution with another body of one function, or of what follows in its class."""
    text = SOFTMAX.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n\n", start)  # between methods there is a line less
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + (text[end:] if end >= 0 else "")


@pytest.mark.parametrize("gap", [5.0, 20.0, 30.0, 500.0])
def test_what_rounding_leaves_of_a_network_that_is_sure_is_no_mistake(gap):
    """p - 1 is 1e-13 here, of which three digits are right."""
    z, labels, solution = np.array([[0.3, gap]]), np.array([1]), module(SOFTMAX.solution)
    e = np.exp(z - z.max())
    assert near(e / e.sum() - [[0, 1]], solution.gradient(z, labels)) == ""
    assert near(-np.log(e / e.sum())[0, 1], solution.cross_entropy(z, labels)) == ""
    assert near(e / e.sum(), solution.gradient(z, labels)) == "values"


@pytest.mark.second
def test_a_step_before_its_backward_is_told_with_the_words_of_the_framework_and_the_line(tmp_path):
    text = with_body(*WRONG["step, then backward"][:2])
    failure = of(SOFTMAX, text, tmp_path).failure
    assert failure.source == "loss.backward()" and "they were overwritten since" in failure.text
    assert text.splitlines()[failure.line - 1].strip() == failure.source


@pytest.mark.second
def test_networks_that_do_not_learn_digits_are_not_passed(tmp_path):
    """An optimizer that is let down where batches are large: no small case shows it."""
    body = BY_HAND.replace(
        "        optimizer.step()\n", "        if len(x) < 20:\n            optimizer.step()\n"
    )
    failure = of(SOFTMAX, with_body("train", body), tmp_path).failure
    assert failure.text.startswith(f"of {SEEDS} networks the middle one gets")
    assert failure.mistake is None and "on digits" in failure.case


def test_the_worked_example_of_the_text():
    solution = module(SOFTMAX.solution + SOFTMAX.harness)
    z, labels = np.array([[2.0, 0.0]]), np.array([0])
    assert solution.log_softmax(z).round(3).tolist() == [[-0.127, -2.127]]
    assert round(solution.cross_entropy(z, labels), 3) == 0.127
    assert solution.gradient(z, labels).round(3).tolist() == [[-0.119, 0.119]]
    batches = [(np.array([[2.0]]), labels)]
    losses, (w,) = solution.tg_train([np.zeros((2, 1))], batches, 0.5)
    assert losses == pytest.approx([np.log(2)]) and w.tolist() == [[0.5], [-0.5]]


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_loss_of_the_framework(seed):
    draw, solution = np.random.default_rng(seed), module(SOFTMAX.solution)
    (N, C), size = draw.integers(1, 6, 2), draw.choice([1.0, 30.0, 1000.0])
    z = tg.Tensor(draw.standard_normal((N, C)) * size, requires_grad=True)
    labels = draw.integers(0, C, N)
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(solution.log_softmax(z.value), tg.log_softmax(z, 1).value, **close)
    loss = tg.cross_entropy(z, labels)
    assert solution.cross_entropy(z.value, labels) == pytest.approx(loss.item(), rel=1e-9)
    loss.backward(np.array(3.0))
    np.testing.assert_allclose(3 * solution.gradient(z.value, labels), z.grad, **close)
    made, none = solution.SoftmaxCrossEntropy().backward(
        None, np.array(3.0), (z.value, labels), (True, False)
    )
    np.testing.assert_allclose(made, z.grad, **close)
    assert none is None


@pytest.mark.second
def test_the_framework_s_own_training_gives_the_same(tmp_path):
    """By `tg.cross_entropy` and a loop of the test."""
    solution = module(SOFTMAX.solution + SOFTMAX.harness)
    starts, batches, test, lr, epochs = DIGITS
    shares = solution.tg_learn(*DIGITS)
    assert len(shares) == SEEDS and np.median(shares) >= GOOD
    model = solution.tg_Model(starts[0])
    optimizer = tg.optim.SGD(model.parameters(), lr=lr)
    for x, labels in batches * epochs:
        optimizer.zero_grad()
        tg.cross_entropy(model(x), labels).backward()
        optimizer.step()
    share = (model(test[0]).numpy().argmax(1) == test[1]).mean()
    assert share == pytest.approx(shares[0], abs=0.01)
