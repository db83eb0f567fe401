"""Several GPUs, on the stand-in for CuPy and NCCL: one process for each."""

import json

import pytest

from tests.conftest import REHEARSAL
from tests.distributed.launch import ROOT, launch, needs_mpi

pytestmark = [needs_mpi, pytest.mark.stand_in]

TRAIN = "from tests.distributed.trainings import main; main('cuda')"


def rehearsed(program, ranks, *arguments, gpus=None, **more):
    """A launch on a machine of so many GPUs, by default one for each rank."""
    path = f"{ROOT}:{REHEARSAL}"
    gpus = str(ranks if gpus is None else gpus)
    words = {"PYTHONPATH": path, "TINYGRAPH_REHEARSED_GPUS": gpus, **more}
    return launch(program, ranks, *arguments, **words)


@pytest.mark.parametrize(
    ("ranks", "what"),
    [
        (2, "some"),
        pytest.param(4, "some", marks=pytest.mark.second),
        pytest.param(3, "all", marks=pytest.mark.second),
    ],
)
def test_collectives_on_gpus(ranks, what):
    ended = rehearsed("nccl", ranks, what)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.split() == ["fine"] * ranks


@pytest.mark.second
def test_every_training_has_the_bits_of_one_gpu():
    found = {}
    for ranks in (1, 2, 4):
        ended = rehearsed(TRAIN, ranks)
        assert ended.code == 0, ended.err[-3000:]
        found[ranks] = json.loads(ended.out)
    assert found[1] == found[2] == found[4]
    assert len({*found[1].values()}) == len(found[1]) > 10  # each has what the others have not


# ---- what goes wrong ----------------------------------------------------------------------------

SAID = """
import json, sys, numpy as np, tinygraph as tg
tg.distributed.init()
try:
    exec(sys.argv[1])
except tg.errors.DeviceError as error:
    every = tg.distributed.all_gather_object(str(error))
    if tg.distributed.rank() == 0:
        print(json.dumps(every))
else:
    sys.exit("no error")
"""
JOIN = "tg.distributed.init('nccl')"
TRAINER = """
model = tg.nn.Linear(3, 2).to("cuda")
sgd = tg.optim.SGD(model.parameters(), lr=0.1)
tg.training.Trainer(model, sgd, tg.cross_entropy, progress=False)
"""
BAD = {
    "fewer GPUs than ranks": (JOIN, {"gpus": 2}, "device: GPU: expected one from 0 to 1, got 2"),
    "one GPU": (JOIN, {"gpus": 1}, "a GPU for each rank, got 0000:00:00.0 for ranks 0 and 1"),
    "no NCCL": (JOIN, {"TINYGRAPH_REHEARSED_NCCL": "0"}, "pip install nvidia-nccl-cu12 or"),
    "too late": (f"tg.zeros(2, device='cuda'); {JOIN}", {}, "which it became when something"),
    "MPI": (TRAINER, {}, "tg.distributed.init('nccl') before the model is moved"),
    "array": ("import cupy; tg.distributed.all_gather(cupy.zeros(2))", {}, "one of a GPU. Way out"),
}


@pytest.mark.second
@pytest.mark.parametrize("bad", BAD)
def test_errors_that_all_ranks_raise(bad):
    program, options, words = BAD[bad]
    ended = rehearsed(SAID, 3, program, **options)
    assert ended.code == 0, ended.err[-3000:]
    for said in json.loads(ended.out):
        assert words in said
