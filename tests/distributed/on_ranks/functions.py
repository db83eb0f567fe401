"""Each function with its gradient, against differences of what numpy makes of all ranks' inputs.

The launch is one function: of the inputs of all ranks, with the sum of their losses as its value.
"""

import sys
import warnings

import numpy as np

import tinygraph as tg
from tinygraph.base.errors import DeviceError, DistributedError, GraphError, ShapeError
from tinygraph.distributed import functions

world = tg.distributed.init()
RANK, SIZE = world.rank, world.size
ROWS = [(3 * rank + 1) % 4 for rank in range(SIZE)]  # 1, 0, 3, 2, 1, ...
COLUMNS = [2 + rank % 2 for rank in range(SIZE)]
EVEN = [(7 * (rank + 1)) // SIZE - 7 * rank // SIZE for rank in range(SIZE)]


def cut(x, counts, rank, axis=0):
    ends = np.cumsum([0, *counts])
    return np.take(x, np.arange(ends[rank], ends[rank + 1]), axis)


# name -> (the shape of a rank's input; the function; what it makes of all inputs, by rank)
CASES = {
    "all_gather": (lambda r: (2, 3), functions.all_gather, lambda xs: [np.stack(xs)] * SIZE),
    "all_gather of numbers": (lambda r: (), functions.all_gather, lambda xs: [np.array(xs)] * SIZE),
    "reduce_scatter": (
        lambda r: (SIZE, 2, 3),
        functions.reduce_scatter,
        lambda xs: list(sum(xs)),
    ),
    "reduce_scatter, mean": (
        lambda r: (SIZE, 4),
        lambda x: functions.reduce_scatter(x, op="mean"),
        lambda xs: list(sum(xs) / SIZE),
    ),
    "all_to_all": (
        lambda r: (SIZE, 2),
        functions.all_to_all,
        lambda xs: [np.stack([x[r] for x in xs]) for r in range(SIZE)],
    ),
    "all_reduce": (lambda r: (3, 2), functions.all_reduce, lambda xs: [sum(xs)] * SIZE),
    "all_reduce, mean": (
        lambda r: (),
        lambda x: functions.all_reduce(x, "mean"),
        lambda xs: [sum(xs) / SIZE] * SIZE,
    ),
    "broadcast": (
        lambda r: (2, 3),
        lambda x: functions.broadcast(x, SIZE - 1),
        lambda xs: [xs[-1]] * SIZE,
    ),
    "all_gather_rows": (
        lambda r: (ROWS[r], 2),
        functions.all_gather_rows,
        lambda xs: [np.concatenate(xs)] * SIZE,
    ),
    "all_gather_rows, said": (
        lambda r: (ROWS[r], 2, 2),
        lambda x: functions.all_gather_rows(x, ROWS),
        lambda xs: [np.concatenate(xs)] * SIZE,
    ),
    "reduce_scatter_rows": (
        lambda r: (7, 2),
        functions.reduce_scatter_rows,
        lambda xs: [cut(sum(xs), EVEN, r) for r in range(SIZE)],
    ),
    "columns_to_rows": (
        lambda r: (sum(ROWS), 2, COLUMNS[r]),
        lambda x: functions.columns_to_rows(x, ROWS, COLUMNS),
        lambda xs: [cut(np.concatenate(xs, -1), ROWS, r) for r in range(SIZE)],
    ),
    "rows_to_columns": (
        lambda r: (ROWS[r], 2, sum(COLUMNS)),
        lambda x: functions.rows_to_columns(x, ROWS, COLUMNS),
        lambda xs: [cut(np.concatenate(xs), COLUMNS, r, -1) for r in range(SIZE)],
    ),
}


def ring(x):
    """Each rank gives its Tensor to the next one; the first one begins."""
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    if RANK == 0:
        sent = functions.send(x, to, tag=3)
        return functions.recv(source, x.shape, x.dtype, 3, after=sent)
    got = functions.recv(source, x.shape, x.dtype, 3)
    return got + functions.send(x, to, tag=3)


CASES["send and recv"] = (lambda r: (2, 3), ring, lambda xs: [xs[-1], *xs[:-1]])


def inputs_of(case, seed):
    shape, _, _ = CASES[case]
    return [np.random.default_rng([seed, r]).standard_normal(shape(r)) for r in range(SIZE)]


def upstream(case, outputs):
    return [
        np.random.default_rng([7, r]).standard_normal(np.shape(y)) for r, y in enumerate(outputs)
    ]


def loss_of_all(case, xs, gys):
    """sum of gy * y * (1 + y): nonlinear, so that values matter too."""
    ys = CASES[case][2]([np.tanh(x) for x in xs])
    return sum(float((gy * (y + y * y)).sum()) for gy, y in zip(gys, ys, strict=True))


def differences(case, xs, gys, step=1e-6):
    """The gradient of this rank's input, by central differences."""
    own = xs[RANK]
    found = np.zeros(own.shape)
    for at in np.ndindex(own.shape):
        ends = []
        for sign in (step, -step):
            moved = own.copy()
            moved[at] += sign
            ends.append(loss_of_all(case, [*xs[:RANK], moved, *xs[RANK + 1 :]], gys))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


def check(case, compiled):
    function, expected = CASES[case][1:]
    xs = inputs_of(case, 1)
    ys = expected([np.tanh(x) for x in xs])
    gys = upstream(case, ys)
    x = tg.Tensor(xs[RANK], requires_grad=True)

    def learn(x, gy):
        y = function(tg.tanh(x))
        (gy * (y + y * y)).sum().backward()
        return y

    learn = tg.compile(learn) if compiled else learn
    for _ in range(3 if compiled else 1):
        x.grad = None
        y = learn(x, tg.Tensor(gys[RANK]))
    np.testing.assert_array_equal(np.shape(y.value), np.shape(ys[RANK]), err_msg=case)
    np.testing.assert_allclose(y.value, ys[RANK], rtol=1e-12, atol=1e-12, err_msg=case)
    wanted = differences(case, xs, gys)
    np.testing.assert_allclose(x.grad, wanted, rtol=1e-6, atol=1e-7, err_msg=case)
    with tg.no_grad():  # nobody waits for a gradient
        np.testing.assert_allclose(function(tg.Tensor(xs[RANK])).value, expected(xs)[RANK])


def refused(call, error, words):
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(words)


def mistakes():
    """An error on all ranks, and then they go on."""
    x = tg.ones((2, 3))
    refused(lambda: functions.all_gather(tg.ones(RANK)), DistributedError, "equal shapes")
    refused(lambda: functions.reduce_scatter(x[:1]), ShapeError, f"{SIZE} parts on axis 0")
    refused(lambda: functions.all_to_all(x[:1]), ShapeError, f"{SIZE} parts on axis 0")
    refused(lambda: functions.all_gather_rows(x, [9] * SIZE), ShapeError, "9 rows, this rank's")
    refused(lambda: functions.all_gather_rows(x, [2]), ShapeError, f"{SIZE} counts")
    refused(lambda: functions.columns_to_rows(x, [1] * SIZE, [2] * SIZE), ShapeError, "expected")
    wrong = [2] * RANK + [2] + [3] * (SIZE - RANK - 1)  # each rank has its own idea of the others
    if SIZE > 1 and RANK == 0:
        expected = ShapeError
        refused(lambda: functions.all_gather_rows(x, wrong), expected, "rows of all ranks")
    else:
        functions.all_gather_rows(x, [2] * SIZE)
    if RANK == 0:
        functions.send(x, 1)
    if RANK == 1:
        refused(lambda: functions.recv(0, (3, 2)), ShapeError, "float32[3, 2]")
    twice = functions.all_reduce(tg.Tensor([1.0], requires_grad=True))
    twice.backward()
    refused(twice.backward, GraphError, "freed")


def asks_in_a_plan():
    """Rows that are not known are no part of a plan: it says so, and runs as it stands."""
    compiled = tg.compile(functions.all_gather_rows)
    rows = RANK + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert compiled(tg.ones((rows, 2))).shape == (SIZE * (SIZE + 1) // 2, 2)
    assert "asks the other ranks how many rows they have" in str(caught[0].message), caught


def on_gpus():
    """What ranks with GPUs can say, and what they are told of the rest."""
    tg.distributed.init("nccl")
    for name in ("all_gather", "all_to_all", "all_reduce", "all_reduce, mean"):
        function, expected = CASES[name][1:]
        xs = inputs_of(name, 1)
        gys = upstream(name, expected(xs))
        x = tg.Tensor(xs[RANK], requires_grad=True, device="cuda")
        y = function(x)
        np.testing.assert_allclose(y.numpy(), expected(xs)[RANK], rtol=1e-12, err_msg=name)
        y.backward(tg.Tensor(gys[RANK]).to("cuda").value)
        y = tg.Tensor(xs[RANK], requires_grad=True)  # the same on the host, which `check` checks
        with_host = function(y)
        with_host.backward(gys[RANK])
        np.testing.assert_allclose(x.device.to_numpy(x.grad), y.grad, rtol=1e-12, err_msg=name)
    x = tg.ones((SIZE, 3), device="cuda")
    refused(lambda: functions.all_gather_rows(x), DeviceError, "x.to('cpu')")
    refused(lambda: functions.broadcast(x), DeviceError, "x.to('cpu')")
    refused(lambda: tg.distributed.Linear(3, 4).to("cuda")(x), DeviceError, "x.to('cpu')")


if sys.argv[1:] == ["cuda"]:
    on_gpus()
    every = tg.distributed.all_gather_object("fine")
    print(*every if RANK == 0 else [], end="")
    sys.exit()

some = {"all_gather", "columns_to_rows", "broadcast", "send and recv"} if sys.argv[1:] else CASES
for name in CASES:
    check(name, compiled=False)
    if name in some and name != "all_gather_rows":
        check(name, compiled=True)
mistakes()
asks_in_a_plan()
x = tg.ones((2, 3)).to("emulator")
assert functions.all_gather(x).shape == (SIZE, 2, 3)
sent = world.bytes_sent
functions.all_gather(tg.ones((5, 2)))
assert world.bytes_sent - sent == (SIZE - 1) * 40, world.bytes_sent - sent
every = tg.distributed.all_gather_object("fine")
if RANK == 0:
    print(*every)
