"""Exercise 15: its step is that of one worker."""

import numpy as np
import pytest

import tinygraph as tg
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
