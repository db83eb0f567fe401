"""data_parallel and trainings in shards: the same bits on any number of ranks."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.distributed import trainings
from tests.distributed.launch import launch, needs_mpi
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, GraphError
from tinygraph.distributed.shards import parts_of, rows_of

MAIN = "from tests.distributed.trainings import main; main()"


@pytest.fixture(scope="module")
def alone():
    """The digests of one process."""
    return trainings.digests()


def on(ranks):
    ended = launch(MAIN, ranks)
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out)


@needs_mpi
@pytest.mark.parametrize(
    "ranks",
    [2, pytest.param(3, marks=pytest.mark.second), pytest.param(4, marks=pytest.mark.second)],
)
def test_every_training_has_the_bits_of_one_process(alone, ranks):
    assert on(ranks) == alone


def test_what_the_trainings_add_makes_a_difference(alone):
    """Else equal digests would say nothing: each is one of its own."""
    same = {"compiled"}  # a plan of so small a network adds as the graph does
    different = [digest for name, digest in alone.items() if name not in same]
    assert len(set(different)) == len(different)


# ---- one process, against the whole batch at once -----------------------------------------------


def learner(model):
    def learn(x, t):
        loss = tg.cross_entropy(model(x), t)
        loss.backward()
        return loss, int((model(x).numpy().argmax(1) == np.asarray(t)).sum())

    return learn


@given(samples=st.integers(1, 12), shards=st.integers(1, 9))
def test_shards_add_up_to_the_batch(samples, shards):
    tg.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.4), nn.Linear(6, 3))
    rng = np.random.default_rng(samples)
    x, t = rng.standard_normal((samples, 4)).astype(np.float32), rng.integers(0, 3, samples)
    tg.manual_seed(2)
    loss, hits = learner(model)(x, t)
    expected = [p.grad for p in model.parameters()]
    stream = tg.random.default_generator.stream
    tg.manual_seed(2)
    gradients = tg.distributed.data_parallel(learner(model), model, shards)
    got_loss, got_hits = gradients(x, t)
    assert got_loss == pytest.approx(float(loss.item()), rel=1e-5) and got_hits == hits
    for parameter, wanted in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(parameter.grad, wanted, rtol=2e-5, atol=1e-6)
    assert tg.random.default_generator.stream == stream


@pytest.mark.filterwarnings("ignore:batch norm is training on fewer")
def test_running_statistics_are_the_weighted_mean_of_those_of_the_shards():
    """Each shard starts from those before the step, as naive code does it here."""
    norm, x = nn.BatchNorm1d(2), np.random.default_rng(0).standard_normal((7, 2)).astype(np.float32)

    def learn(x):
        loss = (norm(x) ** 2).mean()
        loss.backward()
        return loss

    tg.distributed.data_parallel(learn, norm, shards=2)(x)
    parts, mean, var = [x[:3], x[3:]], np.zeros(2), np.zeros(2)
    for part in parts:
        mean += len(part) / 7 * 0.1 * part.mean(0)
        var += len(part) / 7 * (0.9 + 0.1 * part.var(0, ddof=1))
    np.testing.assert_allclose(norm.running_mean.value, mean, rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.value, var, rtol=1e-5)
    assert norm.num_batches_tracked.value == 1


@given(st.integers(1, 50), st.integers(1, 9), st.integers(1, 9))
def test_the_rows_of_all_ranks_are_the_batch(samples, shards, size):
    rows = [rows_of(samples, shards, rank, size) for rank in range(size)]
    covered = [i for first, stop in rows for i in range(first, stop)]
    assert covered == list(range(samples))
    for rank in range(size):
        parts = parts_of(samples, shards, rank, size)
        assert [i for p in parts for i in range(p.first, p.stop)] == list(range(*rows[rank]))
    assert sum(p.weight for p in parts_of(samples, shards)) == pytest.approx(1)


def test_gradients_of_two_batches_do_not_share_memory():
    model = nn.Linear(3, 2)
    gradients = tg.distributed.data_parallel(learner(model), model, shards=2)
    x, t = np.ones((4, 3), np.float32), np.zeros(4, np.int64)
    gradients(x, t)
    kept = model.weight.grad
    before = kept.copy()
    for _ in range(5):
        gradients(7 * x, t)
        assert not np.shares_memory(model.weight.grad, kept)
    assert (kept == before).all()


# ---- bad input ----------------------------------------------------------------------------------


def parallel(learn=None, model=None, **options):
    model = model or nn.Linear(3, 2)
    return tg.distributed.data_parallel(learn or learner(model), model, **options)


X, T = np.ones((4, 3), np.float32), np.zeros(4, np.int64)


def test_numbers_of_samples_that_differ():
    with pytest.raises(ArgumentError, match=r"as many in each, got \[\(4, 3\), \(3,\)\]"):
        parallel()(X, T[:3])
    with pytest.raises(ArgumentError, match="samples on axis 0"):
        parallel()(X, 3)
    with pytest.raises(ArgumentError, match="none"):
        parallel()()
    with pytest.raises(ArgumentError, match="at least 1 sample, got 0"):
        parallel()(X[:0], T[:0])


@pytest.mark.parametrize("shards", [1025, 10**6, 2**31 - 1])
def test_far_more_shards_than_samples(shards):
    """Before anything of that size is made: one number for each shard would be 16 GiB."""
    model = nn.Linear(3, 2)
    tracemalloc.start()
    try:
        gradients = tg.distributed.data_parallel(learner(model), model, shards=shards)
        with pytest.raises(ArgumentError, match=f"shards: expected at most 8.*got {shards}"):
            gradients(np.ones((8, 3), np.float32), np.zeros(8, np.int64))
        loader = tg.data.DataLoader(tg.data.ArrayDataset(np.ones((40, 3), "f4"), [0] * 40), 16)
        sgd = tg.optim.SGD(model.parameters(), lr=0.1)
        trainer = tg.training.Trainer(model, sgd, tg.cross_entropy, shards=shards, progress=False)
        with pytest.raises(ArgumentError, match=f"shards: expected at most 16.*got {shards}"):
            trainer.fit(loader)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    trainer = tg.training.Trainer(model, sgd, tg.cross_entropy, shards=16, progress=False)
    trainer.fit(loader)  # the last batch has 8


@pytest.mark.parametrize("shards", [0, -1, 1.5, "2"])
def test_a_bad_number_of_shards(shards):
    with pytest.raises(ArgumentError, match="shards"):
        parallel(shards=shards)


def test_an_update_inside():
    model = nn.Linear(3, 2)
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1)

    def learn(x, t):
        loss = tg.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    before = model.weight.numpy().copy()
    with pytest.raises(GraphError, match=r"call optimizer.step\(\) after the function"):
        parallel(learn, model)(X, T)
    assert (model.weight.numpy() == before).all()


def test_a_gradient_that_nobody_adds_up():
    model, other = nn.Linear(3, 2), nn.Linear(3, 3)

    def learn(x, t):
        loss = tg.cross_entropy(model(other(x)), t)
        loss.backward()
        return loss

    with pytest.raises(GraphError, match=r"bias \(3,\).*the module that holds it"):
        parallel(learn, model)(X, T)
    parallel(learn, [*model.parameters(), *other.parameters()])(X, T)
    assert other.weight.grad is not None


def test_results_that_are_no_means():
    model = nn.Linear(3, 2)
    for returned, words in [(lambda x: model(x), r"shape \(4, 2\)"), (lambda x: "loss", "str")]:
        with pytest.raises(ArgumentError, match=words):
            parallel(returned, model, shards=1)(X)
    with pytest.raises(ArgumentError, match="at most 8 results, got 9"):
        parallel(lambda x: (1.0,) * 9, model)(X)
    assert parallel(lambda x: None, model)(X) is None
    assert parallel(lambda x: (1.5, len(x), None), model, shards=2)(X) == (1.5, 4, None)


@pytest.mark.filterwarnings("ignore:batch norm is training on fewer")
def test_an_error_leaves_buffers_and_random_numbers_as_they_were():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    tg.manual_seed(5)

    def learn(x):
        model(x)
        if x[0, 0] == 2:
            raise ValueError("in the second shard")

    x = X.copy()
    x[2:] = 2
    with pytest.raises(ValueError, match="second shard"):
        parallel(learn, model, shards=2)(x)
    assert (model[0].running_mean.value == 0).all()
    assert tg.random.default_generator.stream == 0


# ---- several ranks ------------------------------------------------------------------------------

FAILING = """
import json, numpy as np, tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import DistributedError
tg.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1)
trainer = tg.training.Trainer(model, optimizer, tg.cross_entropy, progress=False, shards=4)
x, t = np.ones((8, 3), np.float32), np.zeros(8, np.int64)
bad = t.copy()
bad[7] = 5
before = model.weight.numpy().copy()
try:
    trainer.step(x, bad)
except Exception as error:
    raised = [type(error).__name__, str(error)[:60]]
# one rank prints: lines of several may reach mpiexec in pieces
every = tg.distributed.all_gather_object(raised)
if tg.distributed.rank() == 0:
    print(json.dumps(every))
assert (model.weight.numpy() == before).all()
trainer.step(x, t)
assert (model.weight.numpy() != before).any()
"""


@needs_mpi
def test_a_step_that_fails_on_one_rank_fails_on_all_and_the_next_one_works():
    ended = launch(FAILING, 2)
    assert ended.code == 0, ended.err
    first, second = json.loads(ended.out)
    assert first[0] == "DistributedError"
    assert first[1].startswith("rank 1 has failed: ArgumentError")
    assert second[0] == "ArgumentError"


FAILING_IN_BUCKETS = """
import json, numpy as np, tinygraph as tg
from tinygraph import nn
tg.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
def learn(x, t):
    loss = tg.cross_entropy(model(x), t)
    if x[0, 0] == 2:
        raise ValueError("a look at the data")
    loss.backward()
    if x[0, 0] == 3:
        raise ValueError("after all that")
    return loss
x, t = np.ones((8, 3), np.float32), np.zeros(8, np.int64)
plain, gradients = (tg.distributed.data_parallel(learn, model, 4, size) for size in (None, 1e-6))
plain(x, t)
want = [p.grad.tobytes() for p in model.parameters()]
raised = []
for sample, mark in ((0, 2), (7, 2), (2, 3), (6, 3)):
    bad = x.copy()
    bad[sample - sample % 2] = mark
    try:
        gradients(bad, t)
    except Exception as error:
        raised.append(f"{type(error).__name__}: {error}")
    gradients(x, t)
    assert [p.grad.tobytes() for p in model.parameters()] == want
every = tg.distributed.all_gather_object(raised)
if tg.distributed.rank() == 0:
    print(json.dumps(every))
"""


@needs_mpi
def test_a_failure_while_gradients_are_on_their_way_is_one_on_all_ranks():
    ended = launch(FAILING_IN_BUCKETS, 2)
    assert ended.code == 0, ended.err
    first, second = json.loads(ended.out)
    own = ["ValueError: a look at the data", "ValueError: after all that"]
    assert [first[0], first[2], second[1], second[3]] == [own[0], own[1], own[0], own[1]]
    others = [first[1], first[3], second[0], second[2]]
    assert all(text.startswith("DistributedError: rank ") for text in others)


def test_buckets_take_one_backward():
    model = nn.Linear(3, 2)

    def learn(x, t):
        for _ in range(2):
            tg.cross_entropy(model(x), t).backward()

    with pytest.raises(GraphError, match="one backward in a function.*leave bucket_mb out"):
        parallel(learn, model, bucket_mb=1e-6)(X, T)
    parallel(learn, model)(X, T)
    for bad in (0, -1.5):
        with pytest.raises(ArgumentError, match="bucket_mb"):
            parallel(bucket_mb=bad)


OTHERS = """
import json, numpy as np, tinygraph as tg
model = tg.nn.Linear(3, 2)
model.weight.value[...] = tg.distributed.rank()
optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1)
trainer = tg.training.Trainer(model, optimizer, tg.cross_entropy, progress=False)
data = tg.data.ArrayDataset(np.ones((8, 3), np.float32), np.zeros(8, np.int64))
try:
    trainer.fit(tg.data.DataLoader(data, 4))
except tg.errors.DistributedError as error:
    every = tg.distributed.all_gather_object(str(error))
    if tg.distributed.rank() == 0:
        print(json.dumps(every))
"""


@needs_mpi
@pytest.mark.second
def test_ranks_that_begin_with_other_parameters():
    ended = launch(OTHERS, 2)
    assert ended.code == 0, ended.err
    for said in json.loads(ended.out):
        assert "expected the same parameters on all ranks, got others on rank 1" in said


HELD = """
import json, tracemalloc, numpy as np, tinygraph as tg
model = tg.nn.Linear(1000, 20)
def learn(x, t):
    loss = tg.cross_entropy(model(x), t)
    loss.backward()
    return loss
x, t = np.ones((8, 1000), np.float32), np.zeros(8, np.int64)
held = []
tracemalloc.start()
for shards in (2, 3, 4):
    gradients = tg.distributed.data_parallel(learn, model, shards)
    for step in range(30):
        gradients(x, t)
        if step in (9, 29):
            held.append(tracemalloc.get_traced_memory()[0])
if tg.distributed.rank() == 0:
    print(json.dumps(held))
"""


@needs_mpi
def test_steps_hold_no_more_memory_than_the_one_before():
    """An array of gradients has 80 kB."""
    ended = launch(HELD, 2)
    assert ended.code == 0, ended.err
    held = json.loads(ended.out)
    for early, late in zip(held[::2], held[1::2], strict=True):
        assert late - early < 40_000, held
