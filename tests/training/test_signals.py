"""Signals: a checkpoint for each that asks to stop, whoever else gets it; one line for Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import EPOCHS, fingerprint, loaders, run_or_resume, trainer
from tinygraph.base.errors import DatasetError
from tinygraph.training import RunFolder, Stopped
from tinygraph.training.checkpoints import Checkpoints
from tinygraph.training.stopping import StopSignal

pytestmark = pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning")
ROOT = Path(__file__).parents[2]
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def process(line, **options):
    """A program as the leader of a group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        line, text=True, start_new_session=True, env=environment, **{**pipes, **options}
    )


# ---- a training ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ENDING)
def test_each_is_a_checkpoint(tmp_path, number):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    worker = trainer(run, "adam")
    step, before = worker.step, signal.getsignal(number)

    def signalled(*batch):
        if worker.steps == 4:
            os.kill(os.getpid(), number)
        return step(*batch)

    worker.step = signalled
    with pytest.raises(Stopped) as stopped:
        worker.fit(*loaders(), EPOCHS)
    assert stopped.value.signal == number and signal.getsignal(number) is before
    assert Checkpoints(run.checkpoints).names()[-1] == "000001-000000005"
    calm = fingerprint(run_or_resume(tmp_path / "calm", "adam"))
    assert fingerprint(run_or_resume(run.path, "adam")) == calm


@pytest.mark.parametrize("number", ENDING)
def test_an_ignored_signal_stays_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignal() as stop:
            assert signal.getsignal(number) is signal.SIG_IGN
            os.kill(os.getpid(), number)
            others = [kind for kind in ENDING if kind != number]
            assert all(signal.getsignal(kind) == stop._note for kind in others)
        assert stop.received is None and signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_two_at_once_are_one():
    """`timeout -s INT` sends it to its child, and then to the group."""
    before = signal.getsignal(signal.SIGINT)
    with StopSignal() as stop:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.received == signal.SIGINT
        time.sleep(0.1)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    assert signal.getsignal(signal.SIGINT) is before


class Fails(tg.data.Dataset):
    """What it needs gets the signal too, and dies of it."""

    def __init__(self, at, send=True):
        self.at, self.send, self.asked = at, send, 0

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.asked += 1
        if self.asked == self.at:
            if self.send:
                os.kill(os.getpid(), signal.SIGTERM)
            raise DatasetError("a program that it reads from has ended")
        return np.full(6, index, np.float32), index % 2


def test_a_loader_that_a_signal_has_reached_is_a_stop(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    with pytest.raises(Stopped, match="after batch 2;") as stopped:
        trainer(run).fit(tg.data.DataLoader(Fails(at=9), 4, shuffle=True, seed=1))
    assert stopped.value.signal == signal.SIGTERM
    assert Checkpoints(run.checkpoints).names() == ["000000-000000002"]
    with pytest.raises(DatasetError, match="has ended"):  # without a signal it is an error
        trainer(None).fit(tg.data.DataLoader(Fails(at=9, send=False), 4))


GROUP = """
import sys
from pathlib import Path
import numpy as np
import tinygraph as tg
from tinygraph.training import RunFolder, Stopped, Trainer

class Slow(tg.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        import time; time.sleep(0.01)
        return np.full(3, index, np.float32), index % 2

def main(path, context):
    model = tg.nn.Linear(3, 2)
    run = RunFolder(path)
    run.write_config({})
    loader = tg.data.DataLoader(Slow(), 4, num_workers=2, multiprocessing_context=context)
    trainer = Trainer(model, tg.optim.SGD(model.named_parameters(), 0.01), tg.cross_entropy,
                      run=run, progress=False, checkpoint_every=1e9)
    step = trainer.step
    def counted(*batch):
        print("step", flush=True)
        return step(*batch)
    trainer.step = counted
    try:
        trainer.fit(loader, epochs=100)
    except Stopped as stop:
        print("stopped", trainer.steps, stop.signal, flush=True)

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
"""


@pytest.mark.second
@pytest.mark.parametrize(
    ("number", "context"),
    [*((n, "spawn") for n in ENDING), (signal.SIGTERM, "fork"), (signal.SIGTERM, "forkserver")],
)
def test_a_group_with_workers(tmp_path, number, context):
    script = tmp_path / "script.py"
    script.write_text(GROUP, encoding="utf-8")
    program = process([sys.executable, str(script), str(tmp_path / "run"), context])
    for _ in range(5):
        assert program.stdout.readline() == "step\n"
    os.killpg(program.pid, number)
    out, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (0, "")
    _, steps, received = out.split()[-3:]
    assert int(received) == number
    (name,) = Checkpoints(tmp_path / "run" / "checkpoints").names()[-1:]
    assert int(name[-9:]) == int(steps) >= 5
    with pytest.raises(ProcessLookupError):  # no worker is left
        for _ in range(100):
            os.killpg(program.pid, 0)
            time.sleep(0.05)


@pytest.mark.second
@pytest.mark.parametrize("number", ENDING)
def test_a_command_gets_it_twice_and_saves_a_checkpoint(tmp_path, number):
    """As `timeout` sends it: to its child, and to the group."""
    train = ["train", "numba_cnn", "--filters", "2", "--epochs", "100000", "--run", "run"]
    program = process([sys.executable, "-m", "tinygraph", *train], cwd=tmp_path)
    assert any(line.startswith("epoch ") for line in iter(program.stdout.readline, ""))
    os.kill(program.pid, number)
    os.killpg(program.pid, number)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 128 + number
    pattern = r"stopped in epoch \d+ after batch \d+; resume with `tinygraph train --resume=run`\n"
    assert re.fullmatch(pattern, err), err
    assert Checkpoints(tmp_path / "run" / "checkpoints").names()


@pytest.mark.second
@pytest.mark.parametrize("number", ENDING)
def test_a_command_that_began_with_a_signal_ignored_trains_on(tmp_path, number):
    train = ["train", "numba_cnn", "--filters", "2", "--epochs", "6", "--run", "run"]
    trap = f"trap '' {number.name[3:]}; exec \"$@\""
    program = process(
        ["sh", "-c", trap, "sh", sys.executable, "-m", "tinygraph", *train], cwd=tmp_path
    )
    for line in program.stdout:
        if line.startswith("epoch"):
            os.killpg(program.pid, number)
    _, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (0, "")


# ---- Ctrl-C ----------------------------------------------------------------------------------

# A signal when a module begins to be loaded: as a site does, so that it also works with -m.
SITE = """
import os, signal, sys
def hook(event, arguments):
    if event == "import" and arguments[0] == os.environ.get("INTERRUPT_AT"):
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
"""
SCRIPT = "import sys; from tinygraph_command import main; sys.exit(main())"  # what pip makes
FORMS = {"script": ["-c", SCRIPT], "module": ["-m", "tinygraph"]}


def interrupted_at(module, form, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "INTERRUPT_AT": module,
    }  # fmt: skip
    line = [sys.executable, *FORMS[form], "recipes"]
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize(
    "module",
    [
        "numpy",
        *(
            pytest.param(name, marks=pytest.mark.second)
            for name in (
                "math", "numpy.linalg", "tinygraph.engine.op", "tinygraph.ops.elementwise.relu",
                "tinygraph.cli",
                "argparse", "tinygraph.recipes.vgg", "tinygraph.cli.arguments", "threadpoolctl",
            )
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_ctrl_c_while_it_loads_is_one_line(module, form, tmp_path):
    done = interrupted_at(module, form, tmp_path)
    if module == "math" and form == "script":
        assert done.returncode in (0, 130)  # Python's own start may have it
    else:
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.second
@pytest.mark.parametrize("form", FORMS)
def test_an_ignored_ctrl_c_is_ignored_while_it_loads(form, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "INTERRUPT_AT": "numpy",
    }  # fmt: skip
    line = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, *FORMS[form], "recipes"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0 and "numba_cnn" in done.stdout and done.stderr == ""


def test_importing_the_package_leaves_ctrl_c_alone():
    """Also where it is `python -m` of something else that has imported it."""
    code = "import signal, tinygraph; print(signal.getsignal(signal.SIGINT))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "default_int_handler" in done.stdout
    text = (ROOT / "tinygraph_command.py").read_text(encoding="utf-8")
    assert not re.search(r"^(import|from) ", text, re.M)


@pytest.mark.second
def test_ctrl_c_with_helper_processes_is_one_line(tmp_path):
    """All processes get it, while they start and while they compile."""
    pytest.importorskip("nvidia", reason="needs NVRTC")
    for seconds in (0.1, 2.5):
        program = process(
            [sys.executable, "-m", "tinygraph", "kernels", "--arch", "all"], cwd=tmp_path
        )
        while program.poll() is None and not children(program.pid):
            time.sleep(0.01)
        time.sleep(seconds)
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=60)
        assert (program.returncode, err) == (130, "interrupted\n"), (out, err)


def children(pid):
    """The processes that one has started."""
    place = Path(f"/proc/{pid}/task/{pid}/children")
    return place.read_text(encoding="ascii").split() if place.exists() else []
