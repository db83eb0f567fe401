"""Every recipe under a launcher: the bytes of one process, or a refusal with the reason."""

import json
import os
import subprocess
import sys

import pytest

from tests.distributed.launch import STRICT, environment, launch, needs_mpi
from tests.distributed.recipe_runs import HOW, ON_EMULATOR, SETTINGS, digest
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError
from tinygraph.distributed.world import World
from tinygraph.recipes import recipe as recipe_module
from tinygraph.training import RunFolder

MAIN = "from tests.distributed.recipe_runs import main; main()"
TINYGRAPH = "import sys; from tinygraph.cli import main; sys.exit(main())"
ALONE = {
    "perceptron": "it trains in a moment",
    "linear_regression": "it trains in a moment",
    "xor_mlp": "it trains in a moment",
    "vgg224": "it trains in a moment",
    "splice_mlp": "it learns from one sample at a time",
}


def run(ranks, program, *arguments):
    """What a program prints that ends well, on so many ranks; of one without a launcher."""
    if ranks == 1:
        command = [sys.executable, *STRICT, "-c", program, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, env=environment())
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout
    ended = launch(program, ranks, *arguments)
    assert ended.code == 0, ended.err[-3000:]
    return ended.out


def test_each_recipe_has_batches_or_is_refused():
    assert {*recipes.recipes} == {*SETTINGS, *ALONE}


@pytest.mark.parametrize("name", ALONE)
def test_what_ranks_cannot_share_is_refused_with_the_reason(name, tmp_path, monkeypatch):
    class Two(World):
        size = 2

    monkeypatch.setattr(recipe_module, "world", Two)
    recipe = recipes.get(name)
    with pytest.raises(ArgumentError) as error:
        recipe.deal(recipe.settings({}), RunFolder(tmp_path / "run"))
    assert f"{name}: ranks: expected one process: {ALONE[name]}, got 2 ranks" in str(error.value)


@needs_mpi
def test_the_command_on_two_ranks_leaves_what_one_process_leaves(tmp_path):
    options = ["--shards=8", "--epochs=1", "--json"]
    for setting in ("filters=3", "batch_size=100", "compile=true"):
        options += ["--set", setting]
    for ranks in (1, 2):
        folder = str(tmp_path / f"{ranks}")
        out = run(ranks, TINYGRAPH, "train", "numba_cnn", *options, "--run", folder)
        answer = json.loads(out)  # printed once
        assert answer["run"] == folder and answer["finished"]
    one, two = (RunFolder.open(tmp_path / f"{ranks}") for ranks in (1, 2))
    assert digest(two) == digest(one)
    assert two.result() == one.result()
    assert [file.name for file in two.files()] == [file.name for file in one.files()]
    assert two.environment()["ranks"] == 2


@needs_mpi
@pytest.mark.second
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_more_ranks_than_cores_are_warned_of_once(tmp_path):
    program = f"""
import os, warnings
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
warnings.simplefilter("default")
{TINYGRAPH}
"""
    arguments = [
        "train",
        "numba_cnn",
        "--set=filters=2",
        "--epochs=1",
        "--run",
        str(tmp_path / "r"),
    ]
    ended = launch(program, 2, *arguments)
    assert ended.code == 0, ended.err
    assert ended.err.count("warning: more ranks than cores: 2 on 1 of ") == 1, ended.err


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The digests of one process, made once for each way of training."""
    known = {}

    def digests(how):
        if how not in known:
            known[how] = json.loads(run(1, MAIN, str(tmp_path_factory.mktemp(how)), how))
        return known[how]

    return digests


@needs_mpi
@pytest.mark.second
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("how", HOW)
def test_every_recipe_has_the_bytes_of_one_process(alone, tmp_path, how, ranks):
    found = json.loads(run(ranks, MAIN, str(tmp_path), how))
    assert {*found} == {*(ON_EMULATOR if how == "emulator" else SETTINGS)}
    assert found == alone(how)
