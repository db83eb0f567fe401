"""tuning(): choices of GEMM measured on a stand-in for a GPU, with a timer that the test holds."""

import importlib
import json
import multiprocessing
import re
import warnings

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.errors import DeviceError
from tinygraph.ops.shared.gemm import GemmChoice, GemmProblem, candidates, choice_by_shape

RNG = np.random.default_rng(0)
module = importlib.import_module("tinygraph.cuda.tuning")  # tg.cuda.tuning is the function
PROBLEM = GemmProblem("matmul", "nn", 5, 6, 2100, 1, 1, "float32", "highest", True)
A, B = (RNG.integers(-4, 5, shape).astype("f4") for shape in ((5, 2100), (2100, 6)))


def new_process(monkeypatch):
    """Forget what this process has read."""
    monkeypatch.setattr(module, "_known", module._Known())


@pytest.fixture
def file(rehearsed_cuda, monkeypatch, tmp_path):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    new_process(monkeypatch)
    return tmp_path / "cache" / "tuned.json"


class Clock:
    """A timer: every launch is made, and takes as long as `seconds` says of its number."""

    def __init__(self, seconds):
        self.seconds, self.calls, self.timers = seconds, [], 0

    def __call__(self, launch):
        number, self.timers = self.timers, self.timers + 1

        def timed():
            launch()
            self.calls.append(number)
            return self.seconds(number, self.calls.count(number) - 1)

        return timed


def clock(monkeypatch, seconds=lambda number, turn: 1.0 + number):
    made = Clock(seconds)
    monkeypatch.setattr(module, "timer", made)
    return made


def product(a=A, b=B):
    """The product on the stand-in for a GPU, and the tile and chunks that computed it."""
    with tg.cuda.recording() as launches:
        y = tg.Tensor(a, device="cuda") @ tg.Tensor(b, device="cuda")
    kernel = launches[0]
    defines = dict(kernel.kernel.source.defines)
    return y.numpy(), (int(defines["GEMM_TILE"]), kernel.scalars["chunks"])


def tune(a=A, b=B):
    with tg.cuda.tuning():
        return (tg.Tensor(a, device="cuda") @ tg.Tensor(b, device="cuda")).numpy()


def test_the_fastest_is_taken_and_remembered(file, monkeypatch):
    choices = candidates(PROBLEM)
    last = len(choices) - 1
    timed = clock(monkeypatch, lambda number, turn: float(last - number))
    np.testing.assert_array_equal(tune(), A @ B)
    assert timed.calls == list(range(last + 1)) * module.ROUNDS  # interleaved
    assert choices[last] != choice_by_shape(PROBLEM)
    for _ in range(2):
        y, used = product()
        assert used == (choices[last].tile, choices[last].chunks)
        np.testing.assert_array_equal(y, A @ B)
        new_process(monkeypatch)
    tune()
    assert timed.timers == last + 1  # nothing was measured again
    (entry,) = tg.cuda.tuned()
    assert entry["problem"] == PROBLEM._asdict() and entry["gpu"] == "rehearsal"
    assert GemmChoice(**entry["choice"]) == choices[last]
    assert len(entry["microseconds"]) == last + 1


def test_every_candidate_gives_the_product(file):
    """Whole numbers: any order of adding is exact."""
    launched = []

    def timer(launch):
        def timed():
            launch()
            launched.append(launch)
            return 1.0

        return timed

    a, b = tg.Tensor(A, device="cuda"), tg.Tensor(B, device="cuda")
    for choice in candidates(PROBLEM):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "timer", timer)
            patch.setattr("tinygraph.ops.shared.gemm.candidates", lambda _, choice=choice: [choice])
            with tg.cuda.tuning():
                np.testing.assert_array_equal((a @ b).numpy(), A @ B)
        tg.cuda.forget_tuning()
    assert len(launched) == len(candidates(PROBLEM)) * module.ROUNDS


def test_one_slow_round_does_not_decide(file, monkeypatch):
    clock(
        monkeypatch,
        lambda number, turn: (
            9.0 if number == 1 and turn == 3 else 2.0 - number / 9 if number < 2 else 3.0
        ),
    )
    tune()
    assert product()[1] == candidates(PROBLEM)[1][::2]


def test_events_time_a_graph_of_launches(file):
    """The real timer, on the stand-in: REPEATS launches in one graph, milliseconds to seconds."""
    count = []
    x = tg.zeros(64, 64, device="cuda").value
    kernel = tg.cuda.op_kernel("relu", "relu_forward", np.float32)

    def launch():
        count.append(1)
        kernel(16, 256, x, tg.cuda.Out(x), x.size)

    seconds = module.timer(launch)
    assert len(count) == 1 + module.REPEATS
    assert seconds() == pytest.approx(1e-3 / module.REPEATS) and len(count) == 1 + module.REPEATS
    np.testing.assert_array_equal(tune(), A @ B)


def test_outside_and_other_problems_are_not_measured(file, monkeypatch):
    timed = clock(monkeypatch)
    by_shape = choice_by_shape(PROBLEM)
    assert product()[1] == (by_shape.tile, by_shape.chunks) and not file.exists()
    with tg.cuda.tuning():
        tg.Tensor(A, device="emulator") @ tg.Tensor(B, device="emulator")
        product()  # recorded
        tg.Tensor(A.astype(int), device="cuda") @ tg.Tensor(B.astype(int), device="cuda")
    assert not timed.timers and tg.cuda.tuned() == []


def test_linear_with_a_bias_and_gradients(file, monkeypatch):
    clock(monkeypatch, lambda number, turn: -float(number))
    w, bias = np.ascontiguousarray(B.T), np.arange(6, dtype="f4")
    nodes = [tg.Tensor(t, True, device="cuda") for t in (A, w, bias)]
    with tg.cuda.tuning():
        y = tg.linear(*nodes)
        y.backward(np.ones((5, 6), "f4"))
    np.testing.assert_array_equal(y.numpy(), A @ B + bias)
    np.testing.assert_array_equal(nodes[1].grad.get(), np.tile(A.sum(axis=0), (6, 1)))
    problems = [entry["problem"] for entry in tg.cuda.tuned()]
    assert [(p["kernel"], p["layout"]) for p in problems] == [
        ("linear", "nt"),
        ("matmul", "nn"),
        ("matmul", "tn"),
    ]


def test_another_gpu_or_other_kernels_do_not_share(file, monkeypatch):
    timed = clock(monkeypatch)
    tune()
    once = timed.timers
    for name, value in (("gpu_name", lambda number: "another"), ("_digest", lambda stem: "new")):
        monkeypatch.setattr(module, name, value)
        tune()
    assert timed.timers == 3 * once and len(tg.cuda.tuned()) == 3


def test_a_step_that_is_captured_uses_what_its_first_calls_measured(file, monkeypatch):
    timed = clock(monkeypatch, lambda number, turn: -float(number))
    a, b = tg.Tensor(A, device="cuda"), tg.Tensor(B, device="cuda")
    with tg.cuda.tuning():
        step = tg.cuda.capture(lambda a: a @ b)
        results = [step(a).numpy() for _ in range(4)]
    for y in results:
        np.testing.assert_array_equal(y, A @ B)
    assert timed.timers == len(candidates(PROBLEM))


DAMAGED = [
    b"{",
    b"[]",
    b'{"version": 2, "choices": []}',
    b'{"version": 1, "choices": {}}',
    b"\xff\xfe",
    b'{"version": 1, "choices": [{"problem": {}, "gpu": "x", "kernels": "y", "choice": "1"}]}',
    b'{"version": 1, "choices": [{"problem": {}, "gpu": "x", "choice": {"tile": 16}}]}',
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_ignored_aloud(file, monkeypatch, content):
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.warns(RuntimeWarning, match=rf"{re.escape(str(file))} is ignored.*forget_tuning"):
        used = product()[1]
    by_shape = choice_by_shape(PROBLEM)
    assert used == (by_shape.tile, by_shape.chunks)
    clock(monkeypatch)
    tune()
    new_process(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tg.cuda.tuned()) == 1


def test_a_choice_that_is_no_candidate_is_not_launched(file, monkeypatch):
    clock(monkeypatch)
    tune()
    content = json.loads(file.read_text())
    content["choices"][0]["choice"] = {"tile": 32, "number": 0, "chunks": 1}
    file.write_text(json.dumps(content))
    new_process(monkeypatch)
    by_shape = choice_by_shape(PROBLEM)
    assert product()[1] == (by_shape.tile, by_shape.chunks)


def test_forgetting(file, monkeypatch):
    clock(monkeypatch, lambda number, turn: -float(number))
    tune()
    tg.cuda.forget_tuning()
    assert tg.cuda.tuned() == [] and not file.exists()
    by_shape = choice_by_shape(PROBLEM)
    assert product()[1] == (by_shape.tile, by_shape.chunks)


def entry(number):
    return {
        "problem": {"m": number},
        "gpu": "g",
        "kernels": "k",
        "choice": {"tile": number},
        "microseconds": [],
    }


def write(numbers):
    for number in numbers:
        module._remember(module._key(entry(number)), entry(number))


def test_several_processes_write(file, monkeypatch):
    """No entry is lost, and of two for one problem the first stays."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write, args=(range(i, 60, 3),)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    new_process(monkeypatch)
    assert sorted(e["problem"]["m"] for e in tg.cuda.tuned()) == list(range(60))
    late = {**entry(7), "choice": {"tile": 99}}
    assert module._remember(module._key(late), late)["choice"] == {"tile": 7}


def test_the_environment_lists_what_was_chosen(file, monkeypatch):
    assert "tuned" not in tg.training.environment()
    clock(monkeypatch)
    tune()
    assert tg.training.environment()["tuned"] == tg.cuda.tuned()


def test_without_a_gpu(monkeypatch):
    def missing(name):
        raise DeviceError("no CuPy")

    monkeypatch.setattr(module, "get_device", missing)
    words = r"tuning: device: expected an NVIDIA GPU.*no CuPy"
    with pytest.raises(DeviceError, match=words), tg.cuda.tuning():
        pass
