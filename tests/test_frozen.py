"""A frozen class is what `dataclass(frozen=True)` would have made, only later."""

import dataclasses
import threading

import pytest

import tinygraph as tg
from tinygraph.base.frozen import complete, frozen


def window():
    @frozen
    class Window:
        size: int
        stride: int = 1
        notes: list = dataclasses.field(default_factory=list)

    return Window


def test_it_is_the_dataclass():
    late, early = window(), window()
    complete(early)
    for cls in (late, early):
        a, b = cls(3), cls(size=3, stride=1)
        assert a == b and a != cls(4) and repr(a).endswith("Window(size=3, stride=1, notes=[])")
        assert a.notes is not b.notes
        assert dataclasses.asdict(dataclasses.replace(a, size=5))["size"] == 5
        with pytest.raises(dataclasses.FrozenInstanceError):
            a.size = 7
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
            cls()


def test_a_first_call_that_fails_leaves_it_whole():
    cls = window()
    for _ in range(2):
        with pytest.raises(TypeError, match="unexpected keyword argument 'pad'"):
            cls(3, pad=1)
    assert cls(3).stride == 1


def test_subclasses_have_the_fields_of_their_bases():
    base = window()

    @frozen
    class Dilated(base):
        dilation: int = 1

    class Named(Dilated):
        pass

    assert repr(Named(3, dilation=2)).endswith("Named(size=3, stride=1, notes=[], dilation=2)")


def test_a_plain_dataclass_may_inherit_from_an_op():
    @frozen
    class Scale(tg.Op):
        factor: float = 2.0

    @dataclasses.dataclass(frozen=True)
    class Shifted(Scale):
        by: float = 1.0

    assert Shifted(3.0, by=4.0).factor == 3.0
    assert {Scale(): 1}[Scale(2.0)] == 1


def test_threads_that_make_the_first_instance_together():
    for _ in range(50):
        cls, start, made = window(), threading.Barrier(4), []

        def make(cls=cls, start=start, made=made):
            start.wait()
            made.append(cls(3, 2))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [cls(3, 2)] * 4
