"""Exercise 15: its step is that of one worker; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

PARALLEL = find("parallel")
SOLUTION = module(PARALLEL.solution + PARALLEL.harness)


def with_body(function, body):
    """The solution with another body of one function."""
    text = PARALLEL.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


RIGHT = {
    "shards by numpy": (
        "shard",
        """
    found = np.array_split(np.arange(n), workers)
    ends = np.cumsum([len(some) for some in found])
    return [(int(end) - len(some), int(end)) for some, end in zip(found, ends)]
""",
    ),
    "shards one after the other": (
        "shard",
        """
    pairs, begin = [], 0
    for left in range(workers, 0, -1):
        end = begin + -(-(n - begin) // left)
        pairs.append([begin, end])
        begin = end
    return pairs
""",
    ),
    "a running sum": (
        "combine",
        """
    out = [np.zeros_like(g) for g in gradients[0]]
    for own, n in zip(gradients, sizes):
        for k, g in enumerate(own):
            out[k] += n * g
    return [g / sum(sizes) for g in out]
""",
    ),
    "moments from sums of squares": (
        "moments",
        """
    n = np.array(sizes)[:, None]
    mean = (n * np.array(means)).sum(0) / n.sum()
    squares = (n * (np.array(variances) + np.array(means) ** 2)).sum(0) / n.sum()
    return mean, squares - mean ** 2
""",
    ),
    "in place, and counted downwards": (
        "ring",
        """
    W = len(parts)
    after, before = (rank + 1) % W, rank - 1 if rank else W - 1
    at = rank
    for _ in range(1, W):
        send(after, parts[at])
        at = (at or W) - 1
        parts[at] += receive(before)
    for _ in range(1, W):
        send(after, parts[at])
        at = (at or W) - 1
        parts[at] = receive(before)
    return parts
""",
    ),
    "one loop, received from anybody": (
        "ring",
        """
    W, mine = len(parts), dict(enumerate(parts))
    for t in range(2 * (W - 1)):
        send((rank + 1) % W, mine[(rank - t) % W])
        k = (rank - t - 1) % W
        came = receive()
        mine[k] = came if t >= W - 1 else came + mine[k]
    return [mine[k] for k in range(W)]
""",
    ),
    "the parts lie otherwise": (
        "ring",
        """
    W, parts = len(parts), list(parts)
    for t in range(W - 1):
        send((rank + 1) % W, parts[rank - t - 1])
        parts[rank - t - 2] = parts[rank - t - 2] + receive((rank - 1) % W)
    for t in range(W - 1):
        send((rank + 1) % W, parts[(rank - t) % W])
        parts[(rank - t - 1) % W] = receive((rank - 1) % W)
    return parts
""",
    ),
    "parameters and buffers one by one": (
        "broadcast",
        """
    first = [*models[0].parameters(), *models[0].buffers()]
    for model in models:
        for mine, its in zip([*model.parameters(), *model.buffers()], first):
            mine.value[...] = its.value
""",
    ),
    "the sum of squares, weighed before": (
        "step",
        """
    total = None
    for model, (a, b) in zip(models, shard(len(y), len(models))):
        model.zero_grad()
        loss = tg.mse_loss(model(x[a:b]), y[a:b], reduction="sum") / y.size
        loss.backward()
        own = [p.grad.copy() for p in model.parameters()]
        total = own if total is None else [s + g for s, g in zip(total, own)]
    for model in models:
        with tg.no_grad():
            for p, g in zip(model.parameters(), total):
                p.value = p.value - lr * g
""",
    ),
    "an optimizer for each": (
        "step",
        """
    bounds = shard(len(x), len(models))
    for model, (a, b) in zip(models, bounds):
        model.zero_grad()
        tg.mse_loss(model(x[a:b]), y[a:b]).backward()
    mean = combine([[p.grad for p in m.parameters()] for m in models], [b - a for a, b in bounds])
    for model in models:
        optimizer = tg.optim.SGD(model.parameters(), lr=lr)
        for p, g in zip(model.parameters(), mean):
            p.grad = g
        optimizer.step()
""",
    ),
}
WRONG = {  # function, body, name of the mistake
    "as many for each": (
        "shard",
        "\n    k = n // workers\n    return [(i, i + k) for i in range(0, k * workers, k)]\n",
        "remainder-dropped",
    ),
    "the last takes the rest": (
        "shard",
        """
    pairs = [(w * (n // workers), (w + 1) * (n // workers)) for w in range(workers)]
    pairs[-1] = (pairs[-1][0], n)
    return pairs
""",
        "remainder-to-the-last",
    ),
    "numpy's mean over workers": (
        "combine",
        "\n    return [np.mean(some, axis=0) for some in zip(*gradients)]\n",
        "mean-of-means",
    ),
    "numpy's sum over workers": (
        "combine",
        "\n    return [np.sum(some, axis=0) for some in zip(*gradients)]\n",
        "sum",
    ),
    "variances averaged by size": (
        "moments",
        "\n    return (np.average(means, 0, sizes), np.average(variances, 0, sizes))\n",
        "mean-of-variances",
    ),
    "what shard 0 has": (
        "moments",
        "\n    return np.array(means[0]), np.array(variances[0])\n",
        "one-shard",
    ),
    "waits at the top of the loop": (
        "ring",
        """
    W = len(parts)
    for t in range(2 * W - 2):
        new = receive((rank - 1) % W)
        k = (rank - 1 - t) % W
        parts[k] = new + parts[k] if t < W - 1 else new
        send((rank + 1) % W, parts[k])
    return parts
""",
        "receive-first",
    ),
    "half a ring": (
        "ring",
        """
    W, out = len(parts), [part.copy() for part in parts]
    for t in range(1, W):
        send((rank + 1) % W, out[(rank - t + 1) % W])
        out[(rank - t) % W] += receive((rank - 1) % W)
    return out
""",
        "not-handed-round",
    ),
    "all to all, whoever comes": (
        "ring",
        """
    others = [w for w in range(len(parts)) if w != rank]
    for w in others:
        send(w, parts[w])
    whole = parts[rank]
    for _ in others:
        whole = receive() + whole
    for w in others:
        send(w, whole)
    return [whole if w == rank else receive(w) for w in range(len(parts))]
""",
        "order-by-arrival",
    ),
    "a server": (
        "ring",
        """
    workers = range(1, len(parts))
    if rank:
        for part in parts:
            send(0, part)
        return [receive(0) for _ in parts]
    whole = list(parts)
    for w in workers:
        for k in range(len(parts)):
            whole[k] = whole[k] + receive(w)
    for w in workers:
        for part in whole:
            send(w, part)
    return whole
""",
        "all-through-rank-0",
    ),
    "only what learns": (
        "broadcast",
        """
    for model in models:
        for mine, its in zip(model.parameters(), models[0].parameters()):
            mine.value[...] = its.value
""",
        "buffers-forgotten",
    ),
    "the same entry in the list": (
        "broadcast",
        "\n    for k in range(len(models)):\n        models[k] = models[0]\n",
        "one-model-for-all",
    ),
    "an optimizer on its own gradient": (
        "step",
        """
    for model, (a, b) in zip(models, shard(len(x), len(models))):
        optimizer = tg.optim.SGD(model.parameters(), lr=lr)
        optimizer.zero_grad()
        tg.mse_loss(model(x[a:b]), y[a:b]).backward()
        optimizer.step()
""",
        "own-gradient",
    ),
    "the first one learns": (
        "step",
        """
    gradients, sizes = [], []
    for model, (a, b) in zip(models, shard(len(x), len(models))):
        for p in model.parameters():
            p.grad = None
        tg.mse_loss(model(x[a:b]), y[a:b]).backward()
        gradients.append([p.grad for p in model.parameters()])
        sizes.append(b - a)
    for p, g in zip(models[0].parameters(), combine(gradients, sizes)):
        p.value = p.value - lr * g
""",
        "rank-0-alone",
    ),
}
OUTSIDE = {  # wrong, and like none of the catalogue
    "every second sample": (
        "shard",
        "\n    return [(w, n - workers + w + 1) for w in range(workers)]\n",
    ),
    "the median": ("combine", "\n    return [np.median(some, 0) for some in zip(*gradients)]\n"),
    "the largest variance": (
        "moments",
        "\n    (mean,) = combine([[m] for m in means], sizes)\n"
        "    return mean, np.max(variances, 0) + 1\n",
    ),
    "the parts reversed": (
        "ring",
        """
    W, found = len(parts), [parts[rank]]
    for part in parts:
        send((rank + 1) % W, part)
    return [receive((rank - 1) % W) for _ in parts][::-1]
""",
    ),
    "half of the first": (
        "broadcast",
        """
    for model in models[1:]:
        for mine, its in zip(model.parameters(), models[0].parameters()):
            mine.value[...] = 0.5 * its.value
""",
    ),
    "the square of the rate": (
        "step",
        """
    for model in models:
        model.zero_grad()
        tg.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.value -= lr * lr / 3 * p.grad
""",
    ),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(PARALLEL, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(PARALLEL, with_body(function, body), tmp_path).failure
    assert failure.mistake is not None and failure.mistake.name == name, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_is_not_in_the_catalogue_is_not_named_surely(style, tmp_path):
    failure = of(PARALLEL, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and (failure.mistake is None or not failure.sure), failure


# ---- the framework ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_that_of_one_worker_with_the_framework(seed):
    draw = np.random.default_rng(seed)
    workers, n = int(draw.integers(1, 5)), int(draw.integers(5, 12))
    x, y = draw.standard_normal((n, 3)), draw.standard_normal((n, 2))
    models = [tg.nn.Linear(3, 2).double() for _ in range(workers + 1)]
    SOLUTION.broadcast(models)
    alone, *together = models
    optimizer = tg.optim.SGD(alone.parameters(), lr=0.1)
    for _ in range(3):
        SOLUTION.step(together, x, y, 0.1)
        optimizer.zero_grad()
        tg.mse_loss(alone(x), y).backward()
        optimizer.step()
    for model in together:
        for mine, its in zip(model.parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(mine.value, its.value, rtol=1e-10)
        for mine, its in zip(model.parameters(), together[0].parameters(), strict=True):
            np.testing.assert_array_equal(mine.value, its.value)


@pytest.mark.parametrize("seed", range(5))
def test_shards_and_moments_are_those_of_numpy(seed):
    draw = np.random.default_rng(seed)
    workers, n = int(draw.integers(1, 6)), int(draw.integers(6, 30))
    x = draw.standard_normal((n, 3))
    pieces = [x[slice(*bounds)] for bounds in SOLUTION.shard(n, workers)]
    for mine, its in zip(pieces, np.array_split(x, workers), strict=True):
        np.testing.assert_array_equal(mine, its)
    means, variances = [p.mean(0) for p in pieces], [p.var(0) for p in pieces]
    mean, variance = SOLUTION.moments(means, variances, [len(p) for p in pieces])
    np.testing.assert_allclose(mean, x.mean(0), atol=1e-12)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-12)
