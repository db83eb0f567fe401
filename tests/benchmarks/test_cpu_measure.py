"""`make bench`: processes of sides, losses that must agree, turns, and peak memory."""

import math
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tinygraph as tg
from benchmarks.cpu import sides, workloads
from benchmarks.cpu.client import Client, SideFailed, SideNotOffered
from benchmarks.cpu.libraries import tinygraph_steps
from benchmarks.cpu.measure import agree, measure
from benchmarks.cpu.sides import Side, environment
from benchmarks.cpu.training import NotOffered, built
from tests.benchmarks import cpu_made_up_peer

MADE_UP = "tests.benchmarks.cpu_made_up_peer"
OURS = "benchmarks.cpu.libraries.tinygraph_steps"


def start(side, point="w4", limit=60.0):
    command = [sys.executable, "-m", "benchmarks.cpu.worker", side.module, side.variant, point]
    return Client([*command, "1"], environment(side, 1, True), limit)


def made_up(variant, name=None, peer="made up"):
    return Side(name or variant, peer, MADE_UP, variant)


# ---- one process


def test_a_worker_answers_line_by_line():
    client = start(made_up("prints"))
    try:
        assert client.about == "made up, 1 threads"
        training = cpu_made_up_peer.make(workloads.build("w4"), "right", 1)
        want = [training.step() for _ in range(7)]
        assert client.ask("losses 3")["losses"] == pytest.approx(want[:3])
        answer = client.ask("run 2")  # the first of three is not timed
        assert answer["loss"] == pytest.approx(want[5]) and 0 < answer["seconds"] < 60
        assert 10e6 < client.ask("peak")["bytes"] < 1e9
        assert client.ask("losses 1")["losses"] == pytest.approx(want[6:])
    finally:
        client.close()


def test_the_clock_runs_over_all_steps_but_the_first():
    client = start(made_up("sleeps"))
    try:
        assert client.ask("run 5")["seconds"] >= 0.05
    finally:
        client.close()


def test_peak_memory_is_of_the_process_alone():
    """The process that starts a worker is larger, which getrusage would count."""
    ballast = np.ones(200_000_000 // 8)
    client = start(made_up("right"))
    try:
        assert client.ask("peak")["bytes"] < ballast.nbytes
    finally:
        client.close()


@pytest.mark.parametrize(
    ("variant", "kind", "words"),
    [
        ("absent", SideNotOffered, "^this version has none$"),
        ("breaks", SideFailed, "^ImportError: no module of that name$"),
        ("dies", SideFailed, "^ended with code 7: a library's last words$"),
    ],
)
def test_a_side_that_cannot_start_says_why(variant, kind, words):
    with pytest.raises(kind, match=words):
        start(made_up(variant))


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(SideFailed, match="could not be started: .*no-such-python"):
        Client(["no-such-python"], {})


@pytest.mark.second
def test_a_side_that_hangs_is_ended(tmp_path):
    note = tmp_path / "pid"
    script = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(SideFailed, match="did not answer in 2 s"):
        Client([sys.executable, "-I", "-S", "-c", script], dict(os.environ), 2)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_an_answer_that_is_no_answer_is_quoted():
    with pytest.raises(SideFailed, match="answered b'hello', which is no JSON"):
        Client([sys.executable, "-I", "-S", "-c", "print('hello')"], dict(os.environ), 60)


# ---- one point


@pytest.mark.second
def test_tinygraph_agrees_with_the_network_derived_by_hand():
    eager = Side("tinygraph", "", OURS, "eager")
    point = measure("w4", [eager, made_up("right")], start, rounds=3, burst=0.01)
    assert list(point.measured) == ["tinygraph", "right"]
    assert not point.left_out and not point.failed
    ours, other = point.measured.values()
    assert ours.losses == pytest.approx(other.losses, rel=1e-5)
    assert ours.about.startswith("tinygraph ") and "numpy" in ours.about
    ratio = point.ratio("tinygraph", "right")
    quotients = [a / b for a, b in zip(ours.times.seconds, other.times.seconds, strict=True)]
    assert list(ratio.values) == pytest.approx(quotients) and len(quotients) == 3


@pytest.mark.second
def test_a_side_that_disagrees_or_tires_is_left_out():
    sides = [made_up("right"), made_up("wrong"), made_up("tires"), made_up("absent")]
    point = measure("w4", sides, start, rounds=2, burst=0.0)
    assert list(point.measured) == ["right"]
    assert len(point.measured["right"].times.rounds) == 2
    absent, tires = sorted(line for line in point.left_out if "wrong" not in line)
    assert absent == "w4, absent: this version has none"
    assert tires == "w4, tires: RuntimeError: tired"
    (wrong,) = (line for line in point.left_out if "wrong" in line)
    assert wrong.startswith("w4, wrong: its losses disagree: 0.4") and "first side has" in wrong
    assert not point.failed and point.ratio("right", "wrong") is None


def test_the_compiled_step_agrees_with_the_network_derived_by_hand(monkeypatch):
    net, calls = workloads.build("w4"), []
    real = tg.compile
    monkeypatch.setattr(
        tg, "compile", lambda fn, **options: calls.append(options) or real(fn, **options)
    )
    training = tinygraph_steps.make(net, "compiled", 1)
    by_hand = cpu_made_up_peer.make(net, "right", 1)
    want = [by_hand.step() for _ in range(5)]
    assert [training.value(training.step()) for _ in range(5)] == pytest.approx(want)
    assert calls == [{"fast": False}]


def test_a_step_that_runs_as_it_stands_is_no_compiled_step(monkeypatch):
    """Here it reads a value in the middle, which no plan can repeat."""
    looks = {"relu": lambda x, _: tg.relu(x) if float(x.sum()) < 1e9 else x}
    monkeypatch.setattr(tinygraph_steps, "OPS", {**tinygraph_steps.OPS, **looks})
    training = tinygraph_steps.make(workloads.build("w4"), "compiled", 1)
    with pytest.raises(Warning, match="as it stands"):
        training.step()
    before = SimpleNamespace(Parameter=tg.Parameter, optim=tg.optim)  # a version without it
    monkeypatch.setattr(tinygraph_steps, "tg", before)
    with pytest.raises(NotOffered, match="no tg.compile"):
        tinygraph_steps.make(workloads.build("w4"), "compiled", 1)


class Stub:
    """In a process's place: seconds made up beforehand, and a diary of requests."""

    def __init__(self, name, diary, seconds, losses=(3.0, 2.0, 1.0)):
        self.name, self.about, self._diary = name, name, diary
        self._seconds, self._losses = seconds, losses
        self.closed = False

    def ask(self, request):
        self._diary.append(f"{self.name}: {request}")
        kind, *numbers = request.split()
        if kind == "run":
            return {"seconds": self._seconds * int(*numbers), "loss": 1.0}
        return {"losses": list(self._losses)} if kind == "losses" else {"bytes": 5}

    def close(self):
        self.closed = True


def stubs(seconds, **losses):
    """Sides by name, what starts them, and the diary that they share."""
    diary, clients = [], {}

    def begin(side, point):
        given = {"losses": losses[side.name]} if side.name in losses else {}
        clients[side.name] = Stub(side.name, diary, seconds[side.name], **given)
        return clients[side.name]

    return [made_up("", name) for name in seconds], begin, diary, clients


def test_bursts_take_turns_and_a_short_step_is_repeated():
    which, begin, diary, clients = stubs({"a": 0.05, "b": 1.0})
    point = measure("w4", which, begin, rounds=2, burst=0.2)
    assert diary == [
        "a: losses 3",
        "b: losses 3",
        "b: run 1",
        "a: run 1",
        "a: run 4",
        "b: run 1",
        "b: run 1",
        "a: run 4",
        "a: peak",
        "b: peak",
    ]
    assert point.measured["a"].times.seconds == pytest.approx([0.05, 0.05])
    assert point.ratio("a", "b").median == pytest.approx(0.05)
    assert all(client.closed for client in clients.values())


@pytest.mark.parametrize("losses", [(3.0, 2.0, math.nan), (math.inf, 2.0, 1.0), (3.0, 2.0, 1.01)])
def test_losses_that_are_not_the_same_finite_numbers_are_refused(losses):
    which, begin, diary, clients = stubs({"a": 0.1, "b": 0.1}, b=losses)
    point = measure("w4", which, begin, rounds=1)
    assert list(point.measured) == ["a"] and "b: run 1" not in diary
    assert clients["b"].closed
    with pytest.raises(SideFailed, match="disagree"):
        agree([math.nan], [math.nan])


@pytest.mark.second
def test_only_our_own_sides_can_make_a_run_fail():
    ours = [made_up("absent", peer=""), made_up("breaks", peer="")]
    point = measure("w4", [*ours, made_up("dies")], start, rounds=1)
    assert point.failed == ["w4, breaks: ImportError: no module of that name"]
    assert len(point.left_out) == 3 and not point.measured


# ---- sides and workloads


def test_environments_of_the_processes(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    by_name = {side.name: side for side in sides.SIDES}
    native = environment(by_name[sides.TORCH], 2, native_blas=True)
    assert "OPENBLAS_CORETYPE" not in native and native["OMP_NUM_THREADS"] == "2"
    kept = environment(by_name[sides.KEPT], 2, native_blas=False)
    assert kept["OPENBLAS_CORETYPE"] == "Haswell" and kept["MALLOC_MMAP_MAX_"] == "0"
    assert "MALLOC_MMAP_MAX_" not in native
    assert environment(by_name[sides.BARE], 2, True)["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize("point", workloads.POINTS)
def test_every_point_has_its_baseline_and_our_sides(point):
    names = [side.name for side in sides.at_point(sides.SIDES, point)]
    assert sides.baseline(point) in names
    assert names[:3] == [sides.EAGER, sides.COMPILED, sides.FAST]


def test_workloads_are_those_of_the_table():
    w1, w2, w3, w4 = (workloads.build(name) for name in sides.BY_LAYERS)
    assert w1.images.shape == (100, 1, 28, 28) and w1.learning_rate == 0.1
    assert [w.shape for w in w1.weights] == [(256, 1, 3, 3), (256,), (10, 169 * 256), (10,)]
    assert [w.shape for w in w2.weights[::2]] == [(512, 784), (512, 512), (10, 512)]
    assert w2.images.shape == (128, 784) and w3.images.shape == (64, 3, 32, 32)
    assert [w.shape[0] for w in w3.weights[::2]] == [32, 32, 64, 64, 128, 128, 10]
    assert w3.weights[-2].shape == (10, 2048)
    assert [w.shape for w in w4.weights[::2]] == [(8, 2), (1, 8)] and w4.loss == "mse"
    for net in (w1, w2, w3, w4):
        assert all(array.dtype == np.float32 for array in (net.images, *net.weights))
    for bad in ("w5", "w1", "w2:3", "w1:a:b", "gpt:2"):
        with pytest.raises(ValueError):
            workloads.build(bad)


def parameters(module):
    return {name: p.numpy() for name, p in module.named_parameters()}


@pytest.mark.parametrize(
    ("name", "count", "after"),
    [
        ("lenet5", 61_706, (64, 10)),
        ("resnet18", 701_466, (32, 10)),
        ("srcnn", 8_129, (16, 1, 21, 21)),
        ("gpt", 110_464, (16 * 32, 65)),
    ],
)
def test_networks_that_people_know(name, count, after):
    """Numbers of parameters are counted by hand, from the sizes in the text."""
    network = workloads.build(name)
    module, optimizer = built(network, tg, lambda array: array)
    assert sum(p.size for p in module.parameters()) == count
    assert type(optimizer).__name__ == network.optimizer[0]
    assert module(network.inputs).shape == after
    again = parameters(built(network, tg, lambda array: array)[0])
    assert all((again[key] == array).all() for key, array in parameters(module).items())
    deviations = [a.std() for a in again.values() if a.ndim > 1]
    assert all(0 < each < 1 for each in deviations) and len({*deviations}) == len(deviations)


def test_a_plan_of_a_network_takes_the_steps_of_its_graph():
    network = workloads.build("lenet5")
    eager, compiled = (tinygraph_steps.make(network, kind, 1) for kind in ("eager", "compiled"))
    want = [eager.value(eager.step()) for _ in range(3)]
    assert want[2] < want[0]
    assert [compiled.value(compiled.step()) for _ in range(3)] == pytest.approx(want, rel=1e-5)
