"""Advice that is a command works when it is typed in, whatever the folder is called."""

import ast
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tinygraph as tg
from tests.advice import typed_in
from tinygraph.base import trust
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.base.paths import as_path, typed
from tinygraph.cli import main
from tinygraph.cli.arguments import parse
from tinygraph.training import Progress, RunFolder

ROOT = Path(tg.__file__).parent
NAMES = [
    "a b'$(touch hacked)",
    "-x",
    "--epochs",
    "~x",
    "a;b",
    'q"q',
    "näme",
    "a\nb",
    "a&b",
    "*",
    "#",
]
FOLDER = NAMES[0]


def shell(command):
    """What a shell makes of a command, word by word; the command itself is not run."""
    text = f"printf '%s\\0' {command}"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    yield
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_is_typed_is_the_path(name, tmp_path):
    (word,) = shell(typed(name))
    assert as_path("op", "path", word).resolve() == tmp_path / name


@pytest.mark.parametrize("name", NAMES)
def test_the_command_that_resumes_a_run_names_its_folder(name, tmp_path):
    run = RunFolder(f"./{name}" if name[0] == "~" else name)
    run.write_config({"recipe": "numba_cnn"})
    program, *argv = shell(run.resume_command)
    assert program == "tinygraph"
    found = parse(argv)
    assert RunFolder.open(found.resume).path.resolve() == tmp_path / name
    run.config["file"] = str(tmp_path / name / "mine.py")
    assert parse(shell(run.resume_command)[1:]).recipe == run.config["file"]


@pytest.mark.second
def test_a_stopped_training_goes_on_as_it_says(tmp_path, monkeypatch, capsys):
    """Row by row the numbers of a training that nobody stopped."""
    train = ["train", "numba_cnn", "--filters", "2", "--batch-size", "400", "--epochs", "2"]
    assert main([*train, "--run", "calm"]) == 0
    advance, done = Progress.advance, []

    def stop(self):
        advance(self)
        done.append(1)
        if len(done) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", stop)
        main([*train, "--run", FOLDER])
    capsys.readouterr()
    assert main(shell(RunFolder.open(FOLDER).resume_command)[1:]) == 0
    assert main(["evaluate", FOLDER]) == 0 and main(["show", FOLDER]) == 0
    losses = [[row["loss"] for row in RunFolder.open(run).rows()] for run in (FOLDER, "calm")]
    assert losses[0] == losses[1]


def way_out(error):
    return str(error).partition("Way out: ")[2]


def test_a_recipe_of_a_file_is_named_as_it_says(tmp_path, capsys):
    Path("mine.py").write_text(
        "from tinygraph.recipes.xor_mlp import XorMlp\nclass Mine(XorMlp):\n    name = 'mine'\n"
    )
    assert main(["train", "mine.py", "--epochs", "2", "--run", FOLDER]) == 0
    assert main(["evaluate", FOLDER]) == 2
    said = re.search(r"or (tinygraph evaluate .* --recipe FILE\.py)", capsys.readouterr().err)[1]
    assert main(shell(said.replace("FILE.py", "mine.py"))[1:]) == 0


def test_a_folder_is_closed_to_others_as_it_says(tmp_path):
    place = tmp_path / "a b'$(x)"
    place.mkdir()
    place.chmod(0o777)
    said = re.search("`(chmod .*)`", trust.open_to_others(place.resolve()))[1]
    subprocess.run(["bash", "-c", said], check=True)
    assert trust.open_to_others(place.resolve()) == ""


def test_recipes_are_listed_as_it_says(capsys):
    with pytest.raises(ArgumentError) as raised:
        tg.recipes.get("qqqqqqqqq")
    said = re.search("`(tinygraph .*)` lists", str(raised.value))[1]
    assert main(shell(said)[1:]) == 0 and "numba_cnn" in capsys.readouterr().out
    typed_in(raised.value)


def test_machine_code_is_used_where_it_says(tmp_path):
    """The assignment that `kernels --build` prints."""
    done = subprocess.run(
        ["bash", "-c", f'TINYGRAPH_CUBINS={typed(FOLDER)}; printf %s "$TINYGRAPH_CUBINS"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == FOLDER


def test_a_file_without_a_seal_is_read_as_it_says(tmp_path):
    save_file({"w": np.ones(2)}, "other.safetensors", metadata={"sha256": "ab" * 32})
    with pytest.raises(CheckpointError) as raised:
        tg.training.load_arrays("other.safetensors")
    assert "with sealed=False" in way_out(raised.value)
    save_file({"w": np.ones(2)}, "plain.safetensors")
    with pytest.raises(CheckpointError, match="with sealed=False") as raised:
        tg.training.load_arrays("plain.safetensors")
    for name in ("other", "plain"):
        found = tg.training.load_arrays(f"{name}.safetensors", sealed=False)
        np.testing.assert_array_equal(found["w"], np.ones(2))
    typed_in(raised.value)


def test_advice_about_a_damaged_file_names_no_argument_that_load_lacks(tmp_path):
    data = tg.save({"w": np.ones(2)}, "ours.safetensors").read_bytes()
    for place in (data.index(b"tinygraph"), data.index(b'256":"') + 9, len(data) - 1):
        Path("ours.safetensors").write_bytes(bytes(x ^ (i == place) for i, x in enumerate(data)))
        with pytest.raises(CheckpointError) as raised:
            tg.load("ours.safetensors")
        assert way_out(raised.value) == "restore it from a copy, or train again"


# ---- which places there are ----------------------------------------------------------------------

COMMANDS = """train evaluate recipes export sample show super-resolve experiment gradcheck kernels
    check-kernel step-kernel run-cuda profile course doctor"""
COMMAND = re.compile(
    rf"tinygraph ({'|'.join(COMMANDS.split())})\b|\bpip install|\bmpiexec -n|chmod |\bapt install"
)
TYPED = {  # a place of advice, and the test that types it in
    "training/run.py:resume_command": "test_the_command_that_resumes_a_run_names_its_folder",
    "cli/commands.py:recipe_of": "test_a_recipe_of_a_file_is_named_as_it_says",
    "base/trust.py:open_to_others": "test_a_folder_is_closed_to_others_as_it_says",
    "recipes/__init__.py:get": "test_recipes_are_listed_as_it_says",
    "recipes/images.py:data": "test_recipes_are_listed_as_it_says",
}
ELSEWHERE = {  # and where that test stands, if not here
    "distributed/first.py:launched_by": ("tests/distributed/test_faults.py", "go_on"),
    "cuda/nvrtc/library.py:library": (
        "tests/cuda/test_built.py",
        "test_a_launch_needs_no_compiler",
    ),
    "training/run.py:open": ("tests/test_cli_resume.py", "whole"),
    "training/run.py:_text": ("tests/test_cli_resume.py", "whole"),
}
INSTALLS = "it would change the machine that runs the tests"
NO_WAY_OUT = "it says what there is, and is no way out of anything"
NOT_TYPED = {
    "cli/arguments.py:parse": NO_WAY_OUT,
    "cli/experiment.py:_module": "it takes an hour; without its words the command is in the docs",
    "cli/export.py:export": INSTALLS,
    "cli/machine.py:doctor": INSTALLS,
    "cuda/emulator/compiler.py:_find": INSTALLS,
    "cuda/gpu.py:__init__": INSTALLS,
    "cuda/nvrtc/compiling.py:architecture_for": INSTALLS,
    "cuda/nvrtc/compiling.py:_refused": INSTALLS,
    "cuda/devices.py:nccl": INSTALLS,
    "distributed/world.py:crowd": "it needs fewer cores than ranks; the command is launched_by's",
    "base/errors.py:install": "tests/test_installation.py installs each extra's name",
    "interop/onnx/attributes.py:require_opset": INSTALLS,
    "files/saving.py:_read_by_torch": INSTALLS,
}


def places(root=ROOT):
    """Each function of a package that has a text with a command in it, but docstrings."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if COMMAND.search(text) else "")
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            body = function.body[1:] if ast.get_docstring(function) else function.body
            for node in (inner for statement in body for inner in ast.walk(statement)):
                if isinstance(node, ast.Constant) and COMMAND.search(str(node.value)):
                    yield f"{path.relative_to(root).as_posix()}:{function.name}"


def test_each_place_that_names_a_command_is_typed_in_or_says_why_not():
    assert set(places()) == {*TYPED, *ELSEWHERE, *NOT_TYPED}
    here = Path(__file__)
    for file, test in [*((here, test) for test in TYPED.values()), *ELSEWHERE.values()]:
        assert f"def {test}(" in (here.parents[1] / file).read_text(encoding="utf-8")
