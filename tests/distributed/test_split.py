"""Layers that span the ranks: the numbers of one process, to rounding."""

import copy

import numpy as np
import pytest

import tinygraph as tg
from tests.conftest import REHEARSAL
from tests.distributed import split_trainings
from tests.distributed.launch import ROOT, launch, needs_mpi
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.distributed.linear import turns
from tinygraph.distributed.split import owner_of
from tinygraph.distributed.tree_sum import share

MAIN = "import sys; from tests.distributed.split_trainings import main; main(*sys.argv[1:])"


def on(ranks, what, path, *more):
    ended = launch(MAIN, ranks, what, str(path), *more)
    assert ended.code == 0, ended.err[-3000:]
    return dict(np.load(path))


def compare(got, expected, name):
    """Every number of a training, by name."""
    own = {key.removeprefix(f"{name}/"): got[key] for key in got if key.startswith(f"{name}/")}
    assert set(own) == set(expected)
    for key, wanted in expected.items():
        told = f"{name}: {key}"
        np.testing.assert_allclose(own[key], wanted, rtol=1e-7, atol=1e-10, err_msg=told)


@needs_mpi
def test_two_ranks_learn_what_one_process_does(tmp_path):
    got = on(2, "few", tmp_path / "two.npz")
    for name, training in split_trainings.FEW.items():
        compare(got, training(), name)


@needs_mpi
@pytest.mark.second
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_learn_what_one_process_does(tmp_path, ranks):
    got = on(ranks, "all", tmp_path / "many.npz")
    for name, training in (split_trainings.FEW | split_trainings.MORE).items():
        compare(got, training(), name)


@needs_mpi
@pytest.mark.second
def test_a_checkpoint_moves_between_numbers_of_ranks(tmp_path):
    """Two epochs on some ranks and a third one on others, momentum included."""
    whole = split_trainings.trained(split_trainings.network(), epochs=3)
    last = {key: v[2:] if key.endswith("of epochs") else v for key, v in whole.items()}
    for begun, ended in [(2, 1), (1, 3), (3, 2)]:
        folder = tmp_path / f"{begun}-{ended}"
        if begun == 1:
            split_trainings.stopped(folder)
        else:
            on(begun, "stopped", tmp_path / "begun.npz", str(folder))
        if ended == 1:
            got = {f"resumed/{key}": v for key, v in split_trainings.resumed(folder).items()}
        else:
            got = on(ended, "resumed", tmp_path / "ended.npz", str(folder))
        compare(got, last, "resumed")


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.second)])
def test_functions_on_ranks(ranks):
    ended = launch("functions", ranks, *(["some"] if ranks == 2 else []))
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.split() == ["fine"] * ranks


@needs_mpi
@pytest.mark.second
@pytest.mark.stand_in
def test_functions_on_gpus():
    """On the stand-in for CuPy and NCCL."""
    more = {"PYTHONPATH": f"{ROOT}:{REHEARSAL}", "TINYGRAPH_REHEARSED_GPUS": "2"}
    ended = launch("functions", 2, "cuda", **more)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.split() == ["fine"] * 2


MISTAKES = """
import numpy as np, tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, CheckpointError, ShapeError
tg.manual_seed(0)
x, t = np.ones((8, 3), np.float32), np.zeros(8, np.int64)

def refused(call, error, words):
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(words)

def trainer(*layers, **options):
    model = nn.Sequential(*layers)
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1)
    return tg.training.Trainer(model, optimizer, tg.cross_entropy, progress=False, **options)

Linear, Norm = tg.distributed.Linear, nn.SyncBatchNorm
refused(lambda: trainer(Linear(3, 4), shards=4), ArgumentError, "as many as ranks, 2")
refused(lambda: trainer(nn.Linear(3, 4), Norm(4), shards=4), ArgumentError, "as many as ranks, 2")
both = Linear(3, 4), Linear(4, 2, scheme="same")
refused(lambda: trainer(*both), ArgumentError, "the same samples on all ranks")
refused(lambda: trainer(Linear(3, 2)).step(x[:1], t[:1]), ArgumentError, "at least 2 samples")
tuned = trainer(Linear(3, 2), compile=True, tune=True)
data = tg.data.DataLoader(tg.data.ArrayDataset(x, t), 4)
refused(lambda: tuned.fit(data), ArgumentError, "one measures for all")
layer = Linear(3, 5)
assert layer.weight.shape in ((2, 3), (3, 3)) and layer.weight.whole_shape == (5, 3)
assert [layer.owner_of(node) for node in range(5)] == [0, 0, 1, 1, 1]
state = layer.state_dict()
assert state["weight"].shape == (5, 3)
bad = {**state, "weight": state["weight"][:4]}
words = "expected float32 (5, 3), got float32 (4, 3)"
refused(lambda: layer.load_state_dict(bad), CheckpointError, words)
again = tg.nn.Linear(3, 5)
again.load_state_dict(state)
import copy
np.testing.assert_array_equal(copy.deepcopy(layer).state_dict()["weight"], again.weight.value)
tg.manual_seed(7)
layer.reset_parameters()
tg.manual_seed(7)
np.testing.assert_array_equal(layer.state_dict()["weight"], tg.nn.Linear(3, 5).weight.value)
refused(lambda: layer(np.float32(1)), ShapeError, "expected")
norm = Norm(3)
refused(lambda: norm(tg.ones((4, 2))), ShapeError, "3 channels")
refused(lambda: norm(tg.ones(3)), ShapeError, "(N, C)")
refused(lambda: nn.SyncBatchNorm(3)(tg.ones((0, 3))), ShapeError, "at least 2 numbers")

# What is sent, against docs/model_parallel.md.  8 bytes: how many rows there are.
world, N, I, O = tg.distributed.world(), 10, 6, 8
x = tg.Parameter(np.ones((N // 2, I), np.float32))
for split, numbers in (("out", N * (I + O / 2)), ("in", N * (I / 2 + O))):
    for scheme in "abc":
        layer, before = Linear(I, O, split=split, scheme=scheme), world.bytes_sent
        layer(x).sum().backward()
        assert world.bytes_sent - before == 4 * numbers + 8, (split, scheme)
layer, before = Linear(I, O, scheme="same"), world.bytes_sent
layer(tg.Parameter(np.ones((N, I), np.float32))).sum().backward()
assert world.bytes_sent - before == 4 * N * O
if tg.distributed.rank() == 0:
    print("fine")
"""


@needs_mpi
@pytest.mark.second
def test_mistakes_are_told_on_all_ranks():
    ended = launch(MISTAKES, 2)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.split() == ["fine"]


# ---- one process ------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["a", "b", "c", "same"])
@pytest.mark.parametrize("split", ["out", "in"])
def test_alone_it_is_the_layer_of_nn(split, scheme):
    tg.manual_seed(1)
    layer = tg.distributed.Linear(3, 4, split=split, scheme=scheme)
    tg.manual_seed(1)
    plain = nn.Linear(3, 4)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_array_equal(layer(x).value, plain(x).value)
    assert repr(layer).endswith(f"bias=True, split='{split}', scheme='{scheme}')")
    plain.load_state_dict(layer.state_dict())


def test_batch_norm_alone():
    """Converted layers keep their parameters, and are what they were."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)))
    model[1].weight.value[...] = 3
    plain = copy.deepcopy(model)
    weight, names = model[1].weight, list(model.state_dict())
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert sync is model and sync[1].weight is weight and list(model.state_dict()) == names
    assert isinstance(model[2][0], nn.SyncBatchNorm) and nn.SyncBatchNorm.spans_ranks
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(plain[1]), nn.SyncBatchNorm)
    x = np.random.default_rng(0).standard_normal((6, 1, 5, 5)).astype(np.float32)
    np.testing.assert_array_equal(model(x).value, plain(x).value)
    for name, value in plain.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name], value, err_msg=name)


def test_a_shared_norm_stays_shared():
    norm = nn.BatchNorm1d(2)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(norm, nn.ReLU(), norm))
    assert model[0] is model[2] and isinstance(model[0], nn.SyncBatchNorm)


def test_every_node_has_the_owner_whose_share_it_is_in():
    for total in range(1, 13):
        for ranks in range(1, 8):
            owners = [r for r in range(ranks) for _ in range(*share(total, r, ranks))]
            assert [owner_of(index, total, ranks) for index in range(total)] == owners


@pytest.mark.parametrize("scheme", ["b", "c"])
def test_turns_take_every_row_once_and_in_order(scheme):
    for rows in [(5, 5), (4, 3, 3), (1, 0, 2, 7)]:
        size = len(rows)
        of_ranks = [turns(rows, scheme, rank) for rank in range(size)]
        for rank, own in enumerate(of_ranks):
            taken = [i for counts, (first, stop) in own for i in range(first, stop)]
            assert taken == list(range(rows[rank])) and len(own) == size
            for turn, (counts, (first, stop)) in enumerate(own):
                assert counts == of_ranks[0][turn][0] and counts[rank] == stop - first


BAD = {
    "split": (lambda: tg.distributed.Linear(3, 4, split="both"), ArgumentError, "'out' or 'in'"),
    "scheme": (lambda: tg.distributed.Linear(3, 4, scheme="d"), ArgumentError, "got 'd'"),
    "features": (lambda: tg.distributed.Linear(0, 4), ArgumentError, "in_features"),
    "owner": (lambda: owner_of(4, 4), ArgumentError, "index"),
    "operation": (
        lambda: tg.distributed.functions.all_reduce(tg.ones(2), "max"),
        ArgumentError,
        "'sum' or 'mean'",
    ),
    "root": (lambda: tg.distributed.functions.broadcast(tg.ones(2), 1), ArgumentError, "a rank"),
    "send": (lambda: tg.distributed.functions.send(tg.ones(2), 0), ArgumentError, "another rank"),
    "recv": (lambda: tg.distributed.functions.recv(0, (2,)), ArgumentError, "another rank"),
    "rows": (lambda: tg.distributed.functions.all_gather_rows(1.0), ShapeError, "one axis"),
    "parts": (lambda: tg.distributed.functions.all_to_all(tg.ones((2, 1))), ShapeError, "1 parts"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input(bad):
    call, error, words = BAD[bad]
    with pytest.raises(error, match=words):
        call()
