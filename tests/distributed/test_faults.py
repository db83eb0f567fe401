"""A training of several ranks that something happens to: what a user sees, and how it goes on."""

import re
import subprocess
import sys

import pytest

from tests.distributed.launch import HERE, Ended, environment, launch, needs_mpi
from tests.distributed.recipe_runs import digest
from tinygraph.training import RunFolder

pytestmark = needs_mpi
second = pytest.mark.second
TRAIN = ["train", "numba_cnn", "--set", "filters=2", "--set", "batch_size=100", "--epochs", "3"]
TRAIN += [
    "--set",
    "compile=false",
]  # a fault within a step comes from Python, which a plan runs not
AT = 20  # of 13 batches in an epoch: in the second one
COMMAND = r"`(mpiexec -n \d )?tinygraph (train --resume=\S+)`"


def command(ranks, arguments, event="nothing", who=1, at=AT, **more):
    """The command on so many ranks; of one without a launcher."""
    what = [event, str(who), str(at), *arguments]
    if ranks > 1:
        return launch("command", ranks, *what, **more)
    line = [sys.executable, str(HERE / "on_ranks" / "command.py"), *what]
    ended = subprocess.run(line, capture_output=True, text=True, env=environment(**more))
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The digest of a run of one process that nothing happened to."""
    path = tmp_path_factory.mktemp("whole") / "run"
    ended = command(1, [*TRAIN, "--shards", "4", "--run", str(path)])
    assert ended.code == 0, ended.err
    return digest(RunFolder.open(path))


def go_on(ended, run, ranks):
    """Resume a run as it was said to be done, on so many ranks; its digest."""
    (said,) = re.findall(COMMAND, ended.err)
    arguments = said[1].split()
    assert arguments[-1] == f"--resume={run}"
    done = command(ranks, arguments)
    assert done.code == 0, done.err
    assert "test accuracy" in done.out
    return digest(RunFolder.open(run))


FULL = r"^error: run folder: \S+: expected a place that can be written, got No space left.*free"
FAILED = r"(?m)^KeyError: 'no such key'\nrank 1 has failed: all ranks are ended$"
EVENTS = [
    # event, rank, exit code, what is said, ranks that go on
    ("term", 1, 143, r"^stopped in epoch 2 after batch 7; resume with", 1),
    ("interrupt", 0, 130, r"^stopped in epoch 2 after batch 7; resume with", 4),
    ("kill", 1, 9, r"^a rank has died: all ranks are ended\ngo on with", 4),
    ("kill", 0, 9, r"^a rank has died: all ranks are ended\ngo on with", 3),
    ("crash", 1, 11, r"^a rank has died: all ranks are ended\ngo on with", 1),
    ("fail", 1, 1, FAILED, 4),
    ("fail", -1, 1, FAILED.replace("rank 1", "rank 0"), 2),
    ("fail outside", 1, 1, FAILED, 1),
    ("memory", 1, 1, r"^rank 1: error: Trainer: memory: expected room .*\ngo on", 2),
    ("full", 0, 1, FULL, 1),
    ("limit", 0, 1, r"^error: run folder: \S+: expected .* got File too large", 2),
    ("stop", 1, 1, r"^rank 0 has waited \d s in all_gather for another rank: all ranks are", 1),
    ("stop", 0, 1, r"^rank 1 has waited \d s in all_gather for another rank: all ranks are", 2),
]


@pytest.mark.parametrize(
    ("event", "who", "code", "words", "ranks"),
    [
        pytest.param(*each, marks=[second] * (each[0] != "term"), id=f"{each[0]} {each[1]}")
        for each in EVENTS
    ],
)
def test_all_end_one_says_why_and_the_run_goes_on(whole, tmp_path, event, who, code, words, ranks):
    run = tmp_path / "run"
    more = {"TINYGRAPH_COLLECTIVE_TIMEOUT": "3"} if event == "stop" else {}
    arguments = [*TRAIN, "--shards", "4", "--run", str(run)]
    ended = command(2, arguments, event, who, **more)
    assert ended.code == code, ended.err
    ours = ended.err.partition("\n====")[0]  # then comes what mpiexec has to say of a kill
    assert re.search(words, ours), ended.err
    assert len(re.findall(COMMAND, ours)) == 1, ended.err
    assert ours.count("Traceback") == event.startswith("fail"), ended.err
    assert "Abort" not in ended.err and "DistributedError" not in ended.err
    assert go_on(ended, run, ranks) == whole
