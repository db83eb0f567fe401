"""One rule for every public argument that is a path: `~`, os.PathLike, and what is none."""

import importlib
import inspect
import os
import pwd
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tests.rooms import FILES
from tinygraph.base.build_cache import folder
from tinygraph.base.errors import ArgumentError, TinygraphError
from tinygraph.base.paths import as_path
from tinygraph.cli.arguments import commands as all_commands
from tinygraph.cli.arguments import parse
from tinygraph.cli.options import PATHS
from tinygraph.cuda import Kernel
from tinygraph.recipes import srcnn_network
from tinygraph.recipes.from_file import from_file
from tinygraph.training import RunFolder, TensorBoard

KERNEL = "__global__ void k(int* y) { y[threadIdx.x] = 3; }"
CACHE = str(folder())  # of compiled kernels, wherever the home is
ROWS = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]


class PathLike:
    """What is no Path, and knows its path."""

    def __init__(self, text):
        self.text = text

    def __fspath__(self):
        return self.text


class BytesLike:
    def __fspath__(self):
        return b"a.npy"


def loss():
    w = tg.Parameter(np.ones(2, np.float32), name="w")
    return (w * w).sum()


def model():
    return tg.nn.Sequential(tg.nn.Conv2d(1, 2, 3)).eval()


LABELS = np.arange(3)
IMAGES = np.zeros((3, 4, 4), np.float32)
PROFILE = {"title": "a", "unit": "ms", "bars": []}
# What is written: the function, its argument, a name, and the call.
WRITTEN = {
    "files.saving.save path": ("a.st", lambda p: tg.save({"w": np.ones(2)}, p)),
    "files.sealed.save_arrays path": (
        "b.st",
        lambda p: tg.training.save_arrays(p, {"w": np.ones(2)}),
    ),
    "interop.onnx.export.save path": (
        "m.onnx",
        lambda p: tg.onnx.save(model(), p, tg.ones(1, 1, 4, 4)),
    ),
    "training.run.RunFolder.__init__ path": ("run", RunFolder),
    "training.run.RunFolder.new root": ("runs", lambda p: RunFolder.new("name", p)),
    "interop.tensorboard.TensorBoard.__init__ place": (
        "board",
        lambda p: TensorBoard(p).folder.mkdir(),
    ),
    "data.cache.cached cache_dir": (
        "cache",
        lambda p: tg.data.cached(lambda: tg.data.ArrayDataset([[1.0]], [1]), "k", p),
    ),
    "show.graph_picture.graph path": ("g.svg", lambda p: tg.show.graph(loss(), p)),
    "show.stepping.steps.steps path": ("s.html", lambda p: tg.show.steps(loss(), p)),
    "show.run_report.report path": (
        "r.html",
        lambda p: tg.show.report(tg.show.ReportContents(rows=ROWS), p),
    ),
    "show.curves.curves path": ("c.svg", lambda p: tg.show.curves(ROWS, p)),
    "show.filters.filters path": (
        "f.svg",
        lambda p: tg.show.filters(np.ones((2, 1, 3, 3), np.float32), p),
    ),
    "show.samples.samples path": (
        "sa.svg",
        lambda p: tg.show.samples(IMAGES, LABELS, LABELS, path=p),
    ),
    "show.confusion.confusion_matrix path": (
        "cm.svg",
        lambda p: tg.show.confusion_matrix(LABELS, LABELS, path=p),
    ),
    "show.histograms.histograms path": ("h.svg", lambda p: tg.show.histograms(model(), p)),
    "cuda.kernel.Kernel.steps path": (
        "k.html",
        lambda p: Kernel(KERNEL, "k").steps(p, 1, 4, np.zeros(4, np.int32)),
    ),
}


def digits(folder):
    """A folder that holds something of everything that can be read."""
    folder.mkdir()
    (folder / "k.cu").write_text(KERNEL)
    (folder / "text.txt").write_text("abc")
    (folder / "a.idx").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + b"abc")
    for name in ("x.npy", "y.npy"):
        np.save(folder / name, np.arange(3))
    tg.save({"w": np.ones(2)}, folder / "a.st")
    tg.onnx.save(model(), folder / "m.onnx", tg.ones(1, 1, 4, 4))
    RunFolder(folder / "run").write_config({"recipe": "xor_mlp"})
    from PIL import Image

    (folder / "images" / "cat").mkdir(parents=True)
    Image.new("RGB", (2, 2)).save(folder / "images" / "cat" / "1.png")
    return folder


# What is read: the function, its argument, a name in the folder, and the call.
READ = {
    "files.saving.load path": ("a.st", tg.load),
    "files.sealed.load_arrays path": ("a.st", tg.training.load_arrays),
    "interop.onnx.loading.load path": ("m.onnx", tg.onnx.load),
    "training.run.RunFolder.open path": ("run", RunFolder.open),
    "cuda.kernel.Kernel.__init__ path_or_source": ("k.cu", lambda p: Kernel(p, "k").signature),
    "data.idx.read_idx path": ("a.idx", tg.data.read_idx),
    "data.image_folder.image_folder path": ("images", tg.data.image_folder),
    "data.npy.NpyDataset.__init__ inputs": ("x.npy", lambda p: tg.data.NpyDataset(p, labels_of(p))),
    "data.npy.NpyDataset.__init__ labels": ("y.npy", lambda p: tg.data.NpyDataset(p, p)),
    "data.text.read_text name": ("text.txt", tg.data.read_text),
    "data.text.read_text data_dir": ("", lambda p: tg.data.read_text("text.txt", p)),
}
# What reads a folder by `data.files.folders` alone, or is written by `show.paths.writable` alone.
BY_FOLDERS = {
    "data.mnist.mnist data_dir": lambda p: tg.data.mnist("train", p),
    "data.cifar10.cifar10 data_dir": lambda p: tg.data.cifar10("train", p),
    "data.splice.splice data_dir": lambda p: tg.data.splice("train", p),
    "data.super_resolution.super_resolution data_dir": lambda p: tg.data.super_resolution(
        "Set5", p
    ),
    "data.registry.load data_dir": lambda p: tg.data.load("mnist", "train", p),
}
BY_OTHERS = {
    "cuda.kernel.Kernel.build folder",  # as_path, then a compiler that need not be there
    "show.profile_bars.profile_bars path",  # writable, tests/training/test_op_profile.py
    "show.feature_maps.feature_maps path",  # writable
    "recipes.from_file.from_file path",  # below
}


def labels_of(inputs):
    """The same kind of path, to the labels."""
    if not isinstance(inputs, (str, Path, PathLike)) or inputs == "":
        return inputs
    return type(inputs)(os.fspath(inputs).replace("x.npy", "y.npy"))


MODULES = ["data", "onnx", "show", "training", "cuda", "recipes", "optim", "nn", "distributed"]


def is_public(function):
    return function.__name__[0] != "_" or function.__name__ == "__init__"


def public_paths():
    """Each argument of a public function or method whose annotation says that it is a path."""
    found = set()
    for name in ["tinygraph", *(f"tinygraph.{name}" for name in MODULES)]:
        module = importlib.import_module(name)
        for public in (getattr(module, n) for n in dir(module) if n[0] != "_"):
            if not getattr(public, "__module__", "").startswith("tinygraph"):
                continue
            inner = vars(public).values() if inspect.isclass(public) else [public]
            for function in (getattr(f, "__func__", f) for f in inner):
                if inspect.isfunction(function) and is_public(function):
                    arguments = inspect.signature(function).parameters.values()
                    place = f"{function.__module__}.{function.__qualname__}".removeprefix(
                        "tinygraph."
                    )
                    found |= {f"{place} {a.name}" for a in arguments if "Path" in str(a.annotation)}
    return found


def test_each_public_argument_that_is_a_path_is_tried_here():
    left = public_paths() - {*WRITTEN, *READ, *BY_FOLDERS, *BY_OTHERS}
    assert left == {"data.image_folder.ImageFolder.__init__ paths"}  # of Paths that were found
    assert {*WRITTEN, *READ, *BY_FOLDERS, *BY_OTHERS} <= public_paths()


def test_no_annotation_says_another_rule():
    files = FILES.values()
    assert [str(f) for f in files if "str | Path" in f.read_text(encoding="utf-8")] == []


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home, and another folder to be in."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    pytest.importorskip("matplotlib.figure")  # it makes a folder at home when it is loaded
    monkeypatch.setenv("TINYGRAPH_CACHE", CACHE)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return digits(tmp_path_factory.mktemp("store") / "inner")


FORMS = {"text": str, "Path": Path, "PathLike": PathLike}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", WRITTEN)
def test_what_is_written_at_home_lies_there(which, form, home):
    name, write = WRITTEN[which]
    write(FORMS[form](f"~/{name}"))
    assert [path.name for path in home.iterdir()] == [name]
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", READ)
def test_what_lies_at_home_is_read(which, form, home, store):
    home.rmdir()
    home.symlink_to(store)
    name, read = READ[which]
    read(FORMS[form](f"~/{name}"))
    read(FORMS[form](str(store / name)))
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", BY_FOLDERS)
def test_folders_of_data_at_home(which, form, home):
    with pytest.raises(TinygraphError, match=f"{home}/data"):
        BY_FOLDERS[which](FORMS[form]("~/data"))


WRONG = {
    "bytes": (b"a.npy", r"a str or Path, got bytes. Way out: os\.fsdecode"),
    "bytes of a PathLike": (BytesLike(), r"os\.fsdecode"),
    "number": (3, "a str or Path, got a int"),
    "nobody": ("~nobody-here/a.npy", r"a home that is known, got '~nobody-here/a\.npy'"),
    "zero": ("a\0.npy", "the name of a file or folder"),
    "empty": ("", "the name of a file or folder, got ''"),
}


@pytest.mark.parametrize("which", [*WRITTEN, *READ])
def test_what_is_no_path_is_refused_before_anything_is_made(which, home):
    for kind, (given, words) in WRONG.items():
        if kind == "empty" and which.endswith("data_dir"):
            continue  # as None: the usual folder
        with pytest.raises(ArgumentError, match=words):
            ({**WRITTEN, **READ}[which][1])(given)
        assert not list(Path.cwd().iterdir()) and not list(home.iterdir())


def test_the_way_out_of_a_tilde_works(home):
    """A file that is really called so."""
    with pytest.raises(ArgumentError, match="one of that name here is ") as refused:
        tg.save([1], "~nobody-here")
    way_out = str(refused.value).partition("one of that name here is ")[2]
    for given in (way_out, "./~nobody-here"):
        tg.save([1], given)
        assert tg.load(given) == [1]
    assert [path.name for path in Path.cwd().iterdir()] == ["~nobody-here"]
    tg.save([2], "a~b")
    assert tg.load("a~b") == [2]


def test_no_home_at_all(home, monkeypatch):
    """A container that runs as a number."""

    def getpwuid(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    monkeypatch.delenv("HOME")
    with pytest.raises(ArgumentError, match="a home that is known"):
        tg.save([1], "~/a")
    assert not list(Path.cwd().iterdir())


def test_a_path_stays_what_it_is():
    assert as_path("op", "path", "a/../b") == Path("a/../b")
    given = Path("a")
    assert as_path("op", "path", given) is given


def test_a_recipes_file_at_home(home):
    text = "from tinygraph.recipes.xor_mlp import XorMlp\nclass Mine(XorMlp):\n    name = 'mine'\n"
    (home / "mine.py").write_text(text)
    for form in FORMS.values():
        assert from_file(form("~/mine.py")).name == "mine"


def test_settings_of_recipes_that_are_files(home, store):
    home.rmdir()
    home.symlink_to(store)
    srcnn_network.write_json_parameters(srcnn_network.model(2, 2, 3, 1, 3), "~/p.json")
    assert len(list(srcnn_network.read_network("~/p.json").parameters())) == 6
    assert not list(Path.cwd().iterdir())


def commands(parsers=None, before=()):
    for name, command in (all_commands() if parsers is None else parsers).items():
        yield (*before, name), command
        yield from commands(command.commands, (*before, name))


def options_that_are_paths():
    for words, command in commands():
        for option, about in command.options.items():
            name, _, metavar = option.partition(" ")
            if (metavar or name) in PATHS:
                yield words, command, name, about


NEEDED = {
    "super-resolve": ["--parameters", "1"],
    "check-kernel": ["--grid", "1", "--block", "1"],
    "step-kernel": ["--grid", "1", "--block", "1"],
}


def name_of(case):
    return " ".join((*case[0], case[2]))


@pytest.mark.parametrize("case", list(options_that_are_paths()), ids=name_of)
def test_every_option_that_is_a_path_knows_homes(case, home):
    words, command, option, _ = case
    places = [name for name in command.options if not name.startswith("-")]
    argv = [*words, *NEEDED.get(words[-1], ())]
    if option.startswith("-"):
        argv += [*["1"] * len(places), option, "~/x"]
    else:
        argv += ["~/x" if name == option else "1" for name in places]
    values = list(vars(parse(argv)).values())
    assert str(home / "x") in values or [str(home / "x")] in values
    with pytest.raises(ArgumentError, match="a home that is known"):
        parse([word.replace("~/x", "~nobody-here/x") for word in argv])


def test_words_for_values_that_are_files_are_all_known():
    """A new metavar is looked at: a path, or not."""
    words = "RECIPE NAME N TIME X NAME=VALUE TEXT BYTES N[xN[xN]] ARCH SECONDS S EVENTS HOW SEED"
    metavars = set()
    for _, command in commands():
        for option in command.options:
            name, _, metavar = option.partition(" ")
            if metavar or not name.startswith("-"):
                metavars.add(metavar or name)
    of_the_course = {"FOLDER", "OUT.zip", "PACK"} if "course" not in all_commands() else set()
    found = metavars - {*words.split(), "ARGS", "FILE.py:NAME"}
    assert found | of_the_course == set(PATHS)
