"""Links: in a run's folder none is followed, whoever put it there; one that was typed is.

A stranger's run is one of ours in which each file has become a link to a file elsewhere.
"""

import errno
import os
import resource
import stat
from contextlib import contextmanager

import numpy as np
import pytest

import tinygraph as tg
from tests.training.networks import loaders, trainer
from tinygraph.base.disk import OwnPath, replace_file
from tinygraph.base.errors import ArgumentError, CheckpointError, TinygraphError
from tinygraph.cli import main
from tinygraph.training import RunFolder, TensorBoard, load_arrays, save_arrays
from tinygraph.training.checkpoints import Checkpoints

FOLDERS = ["best", "backups", "checkpoints", "tensorboard"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


def strangers(run, victims):
    """Each file becomes a link to one of the user's; what these hold, by name."""
    victims.mkdir()
    for path in sorted(run.rglob("*")):
        if path.is_file():
            own = victims / "-".join(path.relative_to(run).parts)
            path.rename(own)
            path.symlink_to(own)
    return contents(victims)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


RECIPES = [
    ["numba_cnn", "--filters", "2", "--batch-size", "400", "--epochs", "1"],
    ["xor_mlp", "--epochs", "40"],
    ["perceptron", "--epochs", "2"],
    ["linear_regression", "--epochs", "2"],
]


@pytest.mark.second
@pytest.mark.parametrize("options", RECIPES, ids=lambda options: options[0])
def test_the_pictures_of_a_strangers_run_replace_its_links(options, tmp_path, capsys):
    assert main(["train", *options, "--run", "run"]) == 0
    before = strangers(tmp_path / "run", tmp_path / "mine")
    drawn = [
        path for path in (tmp_path / "run").iterdir() if path.suffix in (".svg", ".png", ".html")
    ]
    assert drawn
    assert main(["show", "run"]) == 0
    assert main(["show", "run", "--steps"]) == 0
    assert contents(tmp_path / "mine") == before
    assert all(path.is_file() and not path.is_symlink() for path in drawn)


@pytest.mark.second
def test_a_strangers_run_that_goes_on_writes_nowhere_else(tmp_path, capsys):
    """Parameters, the best ones, checkpoints, log, result, pictures, events of TensorBoard."""
    options = ["--filters", "2", "--batch-size", "400", "--tensorboard"]
    assert main(["train", "numba_cnn", *options, "--epochs", "2", "--run", "run"]) == 0
    before = strangers(tmp_path / "run", tmp_path / "mine")
    assert main(["train", "--resume", "run", "--epochs", "4"]) == 0
    assert contents(tmp_path / "mine") == before
    links = [p for p in (tmp_path / "run").rglob("*") if p.is_symlink()]
    # Those to earlier events and to a checkpoint that is still one of the last two may stay.
    assert not [p.name for p in links if p.parent.name not in ("tensorboard", "checkpoints")]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_a_run_that_is_a_link_is_refused(name, tmp_path, capsys):
    RunFolder("run").write_config({"recipe": "numba_cnn"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".letters.tmp").write_text("mine")
    (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(CheckpointError, match=f"run/{name}: .*A link to .*/mine, where a folder"):
        RunFolder.open("run")
    for command in (["show", "run"], ["train", "--resume", "run"]):
        assert main(command) != 0
        assert "put a folder in the place of the link" in capsys.readouterr().err
    assert contents(tmp_path / "mine") == {".letters.tmp": b"mine"}
    (tmp_path / "run" / name).unlink()  # the way out
    (tmp_path / "run" / name).mkdir()
    RunFolder.open("run")


def test_a_link_that_comes_later_is_refused_as_well(tmp_path):
    run = RunFolder("run")
    (tmp_path / "mine").mkdir()
    for name in FOLDERS:
        (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
    board = TensorBoard(run)
    for write in (
        lambda: run.save_best({"w": np.ones(2)}),
        lambda: run.back_up({"w": np.ones(2)}),
        lambda: Checkpoints(run.checkpoints).save(1, 1, {"w": np.ones(2)}),
        lambda: trainer(None, log=board).fit(loaders()[0], epochs=1),
    ):
        with pytest.raises(CheckpointError, match="A link to"):
            write()
    assert not list((tmp_path / "mine").iterdir())


def test_a_log_that_is_a_link_gets_no_line(tmp_path):
    run = RunFolder("run")
    (tmp_path / "mine").write_text("mine\n")
    (tmp_path / "run" / "log.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(CheckpointError, match=r"run/log\.jsonl.*A link, where a file"):
        run.append({"epoch": 1})
    assert (tmp_path / "mine").read_text() == "mine\n"


def test_the_folder_of_a_run_itself_may_be_a_link(tmp_path):
    """It was typed: a run on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    run = RunFolder("run")
    run.save_best({"w": np.ones(2)})
    assert (tmp_path / "run").is_symlink() and (tmp_path / "disk" / "best").is_dir()


def test_only_what_is_ours_is_cleaned_up(tmp_path):
    kept = Checkpoints(OwnPath("run"))
    kept.save(1, 1, {"w": np.ones(2)})
    ours = [
        ".000001-000000001.safetensors.123-0123456789abcdef.tmp",
        ".000001-000000001.safetensors.123-140735.tmp",  # of an earlier version
    ]
    theirs = [
        ".notes.tmp",
        ".a.safetensors.1-2.tmp",
        "x.tmp",
        "9-9.safetensors",
        "000001.safetensors",
    ]
    for name in ours + theirs:
        (tmp_path / "run" / name).write_text("x")
    kept.save(1, 2, {"w": np.ones(2)})
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {*theirs, "000001-000000001.safetensors", "000001-000000002.safetensors"}


# ---- what the user has typed ---------------------------------------------------------------------


def writers():
    """Public functions that write a file at a path, each with a name for it."""
    w = tg.Parameter(np.ones(2, np.float32), name="w")
    rows = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]
    labels = np.arange(3)
    model = tg.nn.Sequential(tg.nn.Linear(2, 2)).eval()
    kernel = tg.cuda.Kernel("__global__ void k(int* y) { y[threadIdx.x] = 3; }", "k")
    return {
        "tg.save": ("a.safetensors", lambda path: tg.save({"w": np.ones(2)}, path)),
        "save_arrays": ("a.safetensors", lambda path: save_arrays(path, {"w": np.ones(2)})),
        "onnx.save": ("m.onnx", lambda path: tg.onnx.save(model, path, tg.ones(1, 2))),
        "show.graph": ("g.svg", lambda path: tg.show.graph((w * w).sum(), path)),
        "show.steps": ("s.html", lambda path: tg.show.steps((w * w).sum(), path)),
        "show.report": (
            "r.html",
            lambda path: tg.show.report(tg.show.ReportContents(rows=rows), path),
        ),
        "show.curves": ("c.png", lambda path: tg.show.curves(rows, path)),
        "show.confusion_matrix": (
            "c.svg",
            lambda path: tg.show.confusion_matrix(labels, labels, path=path),
        ),
        "Kernel.steps": (
            "k.html",
            lambda path: kernel.steps(path, 1, 4, np.zeros(4, np.int32)),
        ),
    }


WRITERS = list(writers())


@pytest.mark.parametrize("which", WRITERS)
def test_a_typed_link_is_followed_and_a_mode_is_kept(which, tmp_path):
    name, write = writers()[which]
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / f"real-{name}", tmp_path / name
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write(link)
    assert link.is_symlink() and target.read_bytes() != b"old"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "store").iterdir()] == [target.name]

    target.unlink()  # the link leads nowhere: the file is made there
    write(link)
    assert link.is_symlink() and target.is_file()


@contextmanager
def full_disk(most=64):
    """No file may be larger: the system refuses to write on, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("which", WRITERS)
def test_a_full_disk_costs_no_old_file(which, tmp_path):
    name, write = writers()[which]
    path = tmp_path / name
    path.write_text("old")
    write(tmp_path / f"first-{name}")  # what is imported at first use writes files too
    with full_disk(), pytest.raises(TinygraphError, match="File too large"):
        write(path)
    assert path.read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {name, f"first-{name}"}


def test_a_new_file_has_the_mode_of_any_other(tmp_path):
    before = os.umask(0o027)
    try:
        tg.save({"w": np.ones(2)}, tmp_path / "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write over the files of others")
def test_a_file_keeps_its_owner(tmp_path):
    tg.save({"w": np.ones(2)}, tmp_path / "a")
    os.chown(tmp_path / "a", 65534, 65534)
    tg.save({"w": np.ones(3)}, tmp_path / "a")
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid) == (65534, 65534) and len(
        load_arrays(tmp_path / "a")["w"]
    ) == 3


def test_a_device_or_pipe_is_not_replaced(tmp_path):
    """As root a rename over /dev/null would succeed."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="Not a file, but a device or a pipe"):
        tg.save({"w": np.ones(2)}, tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(CheckpointError, match="Not a file"):
        tg.save({"w": np.ones(2)}, tmp_path / "null")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_advice_of_a_full_disk_fits_what_is_written(tmp_path, monkeypatch):
    """No word of a run where there is none."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        CheckpointError, match="save: .*No space left.*Way out: free some space"
    ) as e:
        tg.save({"w": np.ones(2)}, tmp_path / "a")
    assert "run" not in str(e.value).replace(str(tmp_path), "")
    with pytest.raises(ArgumentError, match="No space left on device. Way out: free some space"):
        tg.show.curves([{"epoch": 1, "loss": 1.0}], tmp_path / "a.svg")


# ---- the one function ----------------------------------------------------------------------------


def test_a_temporary_name_that_was_guessed_is_not_written_into(tmp_path, monkeypatch):
    """The names are drawn; and if somebody knew one, a link there would be an error."""
    (tmp_path / "mine").write_text("mine")
    monkeypatch.setattr("tinygraph.base.disk.secrets.token_hex", lambda count: "0" * 16)
    guessed = tmp_path / f".a.{os.getpid()}-{'0' * 16}.tmp"
    guessed.symlink_to(tmp_path / "mine")
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "mine").read_text() == "mine" and guessed.is_symlink()


def test_a_name_of_ours_replaces_a_link(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").symlink_to(tmp_path / "mine")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "a").read_bytes() == b"new"


def test_the_longest_name_that_a_file_can_have(tmp_path):
    replace_file(tmp_path / ("😀" * 63), b"new")
