"""Answers of the framework, and tricks, in exercises 1 to 4, 6 and 12 to 16: none gains a step."""

import pytest

from tests.course.test_exercises import of
from tinygraph_course.content.exercise import find
from tinygraph_course.content.marks import with_body

LOSS = """
    import tinygraph as tg
    a = tg.Tensor(np.column_stack([np.ones(len(x)), x]))
    p = tg.Tensor(w, requires_grad=True)
    loss = tg.sum((a @ p - tg.Tensor(y)) ** 2) * 0.5
"""
DELTAS = """
    import tinygraph as tg
    a = tg.Tensor(np.log(o / (1 - o)), requires_grad=True)
    loss = tg.sum((tg.sigmoid(a) - tg.Tensor(y)) ** 2) * 0.5
"""
LEAVES = """
    leaves = [n for n in order([output]) if not n.inputs and n.requires_grad]
"""
SHARED = """
    known = shard.known if hasattr(shard, "known") else {}
    known[rank] = [part.copy() for part in parts]
    shard.known = known
"""
SUM = "[sum(known[r][k] for r in sorted(known)) for k in range(len(parts))]"
CHEATS = {  # exercise, step, the body of its gap
    "the neuron of a recipe": (
        "neuron",
        2,
        "    import tinygraph as tg\n"
        "    return tg.recipes.perceptron.Perceptron(w).update(x, y, eta)",
    ),
    "a name that fits every weight": (
        "neuron",
        4,
        "    class Same(int):\n        def __eq__(self, other):\n            return True\n"
        "    return Same(0), Same(1)",
    ),
    "backward of a loss": ("line", 3, f"{LOSS}    loss.backward()\n    return p.grad"),
    "its gradient by name": (
        "line",
        3,
        f"{LOSS}    return tg.autograd.grad(loss, p)[0].value",
    ),
    "the walk behind backward": (
        "line",
        3,
        f"{LOSS}    tg.graph.run_backward([loss], [np.ones(())], False, False)\n    return p.grad",
    ),
    "backward below a sigmoid": (
        "mlp",
        2,
        f"{DELTAS}    loss.backward()\n    return a.grad @ W2 * h * (1 - h), a.grad",
    ),
    "the local gradients of a node": (
        "mlp",
        2,
        f"{DELTAS}    d = tg.autograd.local_gradients(loss, np.ones(()))\n    return d[0], d[0]",
    ),
    "the order of the framework": (
        "graph",
        1,
        "    import tinygraph as tg\n    return list(tg.graph.topological_order(outputs))",
    ),
    "gradients that nobody has passed on": (
        "graph",
        2,
        f"{LEAVES}    import tinygraph as tg\n"
        "    found = tg.autograd.grad(output, leaves, np.ones_like(output.value))\n"
        "    return {leaf: g.value for leaf, g in zip(leaves, found)}",
    ),
    "backward of the output": (
        "graph",
        2,
        f"{LEAVES}    output.backward(np.ones_like(output.value))\n"
        "    return {leaf: leaf.grad for leaf in leaves}",
    ),
    "log_softmax of a tensor": ("softmax", 1, "    return tg.Tensor(z).log_softmax(1).value"),
    "log_softmax of the framework": (
        "softmax",
        1,
        "    return tg.nn.functional.log_softmax(tg.Tensor(z), 1).value",
    ),
    "the loss of the framework": (
        "softmax",
        2,
        "    return float(tg.nn.CrossEntropyLoss()(tg.Tensor(z), labels).value)",
    ),
    "a share from memory": ("softmax", 6, "    return 0.95"),
    "the mean and the variance of a layer": (
        "train",
        2,
        "    layer = tg.nn.BatchNorm1d(batch.shape[1], momentum=momentum)\n"
        "    layer(tg.Tensor(batch))\n    return layer.running_mean.value, layer.running_var.value",
    ),
    "the optimizer of the framework": (
        "train",
        5,
        "    q = tg.Parameter(p)\n    adam = tg.optim.Adam([q], lr=lr)\n    q.grad = g\n"
        "    adam.step()\n    return q.value, m, v",
    ),
    "workers that share a dict": ("parallel", 4, f"{SHARED}    return {SUM}"),
    "workers that share a dict, and send for the look of it": (
        "parallel",
        4,
        f"{SHARED}    W = len(parts)\n    for _ in range(2 * W - 2):\n"
        "        send((rank + 1) % W, parts[0])\n        receive((rank - 1) % W)\n"
        f"    return {SUM}",
    ),
    "a clock that is never read": ("projects", 6, "    return 2.0"),
    "the quality of nothing": ("projects", 5, "    return 1, 1.0"),
    "sums by atomics": (
        "conv_cuda",
        2,
        "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < N * C * H * W)\n        image[i] = 0.0f;\n    __syncthreads();\n"
        "    if (i < N * C * OH * OW)\n        atomicAdd(&image[i], cols[i]);",
    ),
    "one thread does it all": (
        "fusion",
        1,
        "    if (blockIdx.x == 0 && threadIdx.x == 0)\n"
        "        for (int i = 0; i < N * C * P; ++i)\n"
        "            y[i] = fmaxf(x[i] + b[i / P % C], 0.0f);",
    ),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gains_no_step(cheat, tmp_path):
    name, step, body = CHEATS[cheat]
    exercise = find(name)
    outcome = of(
        exercise, with_body(exercise.marked, step, body.strip("\n").splitlines()), tmp_path
    )
    assert step not in outcome.passed and outcome.failure is not None
