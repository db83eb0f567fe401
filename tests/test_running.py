"""The stack of runners: who is asked, in which order, in which thread, and that nothing stays."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import GraphError, KernelLaunchError
from tinygraph.cuda import InOut, Kernel, checking, recording
from tinygraph.cuda.devices import EMULATOR
from tinygraph.engine.running import Eager, Runner, here, inherit

PACKAGE = Path(tg.__file__).parent


class Log(Runner):
    """Writes down what it is asked."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def forward(self, node, mem, arrays):
        self.log.append((self.name, node.op.name))
        return self.below.forward(node, mem, arrays)


ENGINE = ("tensor", "op", "graph")


def test_the_engine_is_read_in_one_sitting():
    texts = [(PACKAGE / "engine" / f"{name}.py").read_text() for name in ENGINE]
    assert sum(len(text.splitlines()) for text in texts) <= 650


def test_the_one_that_was_entered_last_is_asked_first_and_asks_the_one_below():
    log = []
    with Log("a", log), tg.no_grad(), Log("b", log):
        assert (tg.Tensor([1.0], requires_grad=True) * 2).op is None
    tg.relu([1.0])
    assert log == [("b", "mul"), ("a", "mul")]
    assert type(here.top) is Eager


def test_a_runner_may_answer_in_the_place_of_the_op():
    class Zero(Runner):
        def forward(self, node, mem, arrays):
            return np.zeros_like(arrays[0]), None

    with Zero():
        assert tg.relu([3.0]).item() == 0
    assert tg.relu([3.0]).item() == 3


def test_an_error_leaves_the_stack_as_it_was():
    with pytest.raises(ZeroDivisionError), Log("a", []), tg.no_grad(), tg.detect_anomaly():
        raise ZeroDivisionError
    assert type(here.top) is Eager


def test_one_object_entered_twice():
    off, log = tg.no_grad(), Log("a", [])
    with off, off:
        pass
    assert (tg.Parameter([1.0]) * 2).requires_grad
    with log, pytest.raises(GraphError, match="Log"), log:
        pass


def test_threads_begin_with_eager_or_inherit():
    seen = {}

    def look(name):
        seen[name] = here.top

    with Log("a", []) as log:
        for name, function in (("plain", look), ("heir", inherit(look))):
            thread = threading.Thread(target=function, args=(name,))
            thread.start()
            thread.join()
    assert type(seen["plain"]) is Eager and seen["heir"] is log


@pytest.mark.second
def test_two_recordings_that_overlap_in_two_threads_leave_nothing():
    """First in, first out: whoever restores what he found brings the other one back to life."""
    entered, ended = threading.Event(), threading.Event()

    def other():
        with recording(execute=False):
            entered.set()
            assert ended.wait(10)

    thread = threading.Thread(target=other)
    with recording(execute=False) as launches:
        thread.start()
        assert entered.wait(10)
    ended.set()
    thread.join()
    array = EMULATOR.empty((3,), np.float32)
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None and not launches


@pytest.mark.second
def test_a_recording_does_not_see_the_arrays_of_another_thread():
    found = []
    with recording(execute=False):
        thread = threading.Thread(target=lambda: found.append(EMULATOR.empty((3,), np.float32)))
        thread.start()
        thread.join()
        alive = weakref.ref(found.pop())
        gc.collect()
        assert alive() is None


RACE = """
__global__ void race(float* y, int n) {
    __shared__ float s[1];
    s[0] = threadIdx.x;
    if (threadIdx.x < n) y[threadIdx.x] = s[0];
}"""


@pytest.mark.parametrize("outer, inner", [(recording, checking), (checking, recording)])
def test_recording_and_checking_at_once(outer, inner):
    with outer() as a, inner() as b:
        y = EMULATOR.empty((32,), np.float32)
        with pytest.raises(KernelLaunchError, match="race"):
            Kernel(RACE, "race")(1, 64, y, 32)
    (launch,) = a or b
    assert [(use.reads, use.writes) for use in launch.arrays] == [(False, True)]


def test_a_recording_within_a_recording_is_a_part_of_it():
    x = tg.Tensor([1.0, 2.0], device="emulator")
    with recording() as outer, recording() as inner:
        tg.relu(x)
    assert len(outer) == len(inner) == 1


def test_a_runner_is_handed_the_launch_itself():
    class Held(Runner):
        def __init__(self):
            self.launches = []

        def launch(self, launch):
            self.launches.append(launch)

    kernel, y = Kernel(RACE, "race"), np.full(4, 5.0, np.float32)
    with Held() as held:
        kernel((2, 3), 4, InOut(y), np.int64(7), shared=16)
    (launch,) = held.launches
    assert launch.kernel is kernel and not launch.on_gpu
    assert (launch.grid, launch.block, launch.shared) == ((2, 3, 1), (4, 1, 1), 16)
    assert isinstance(launch.args[0], InOut) and launch.values[0] is y and launch.values[1] == 7
    assert (y == 5).all()  # nobody has made it


def test_backward_tells_what_each_use_gives_and_what_a_node_has_then():
    told = []

    class Receipts(Runner):
        def receive(self, user, node, grad, before, add):
            had = None if before is None else before.copy()  # the sum may be written into it
            total = self.below.receive(user, node, grad, before, add)
            told.append((user, node, grad.tolist(), had, total.tolist()))
            return total

    x = tg.Tensor([3.0], requires_grad=True)
    a, b = x * 2, x * 5
    y = a + b
    with Receipts():
        y.backward()
    assert told == [
        (None, y, [1], None, [1]),
        (y, a, [1], None, [1]),
        (y, b, [1], None, [1]),
        (b, x, [5], None, [5]),
        (a, x, [2], [5], [7]),
    ]
    assert x.grad.tolist() == [7]
