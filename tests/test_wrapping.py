"""A context above functions of every kind: what runs inside of it, and what outside."""

import asyncio
import functools
import inspect
import types

import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, GraphError
from tinygraph.base.wrapping import around

W = tg.Tensor([2.0], requires_grad=True)


def on():
    """Whether nodes remember how they were made: what no_grad is to change."""
    return (W * 1).requires_grad


def test_a_generator_runs_inside_and_its_user_outside():
    seen = []

    @tg.no_grad()
    def numbers(first):
        "Its own words."
        seen.append(("begin", on()))
        try:
            while True:
                try:
                    first = yield first
                    seen.append(("sent", on()))
                except KeyError as error:
                    seen.append(("thrown", on()))
                    first = error.args[0]
        finally:
            seen.append(("end", on()))

    assert inspect.isgeneratorfunction(numbers)
    assert (numbers.__name__, numbers.__doc__) == ("numbers", "Its own words.")
    body = numbers(1)
    assert seen == [] and on()
    assert next(body) == 1 and on()
    assert body.send(5) == 5 and on()
    assert body.throw(KeyError(7)) == 7 and on()
    body.close()
    assert seen == [("begin", False), ("sent", False), ("thrown", False), ("end", False)] and on()


def test_a_generator_returns_raises_and_delegates():
    @tg.no_grad()
    def inner(fails):
        yield on()
        if fails:
            raise ValueError("own")
        return on()

    def outer():
        result = yield from inner(False)
        yield result, on()

    assert list(outer()) == [False, (False, True)]
    with pytest.raises(ValueError, match="own"):
        list(inner(True))
    assert on()
    with pytest.raises(RuntimeError, match="StopIteration"):
        body = inner(False)
        next(body)
        body.throw(StopIteration())  # as a plain generator answers it
    assert on()


def test_generators_that_take_turns():
    """What stands between two resumptions of one may be a resumption of another."""

    @tg.no_grad()
    def off():
        for _ in range(3):
            yield on()

    @tg.detect_anomaly
    def looking():
        for _ in range(3):
            yield (W * 1).made_at is not None

    for a, b in zip(off(), looking(), strict=True):
        assert (a, b) == (False, True)
        assert on() and (W * 1).made_at is None


def test_a_context_around_the_user_is_the_users_own():
    @tg.detect_anomaly()
    def looking():
        yield on(), (W * 1).made_at is not None
        yield on(), (W * 1).made_at is not None

    body = looking()
    with tg.no_grad():
        assert next(body) == (False, True)
    assert next(body) == (True, True)


def test_coroutines_run_inside_and_other_tasks_outside():
    @tg.no_grad()
    async def evaluates(turns):
        seen = [on()]
        for _ in range(turns):
            await asyncio.sleep(0)
            seen.append(on())
        return seen

    async def trains(turns):
        seen = []
        for _ in range(turns):
            await asyncio.sleep(0)
            seen.append(on())
        return seen

    async def both():
        return await asyncio.gather(evaluates(3), trains(5), evaluates(2))

    assert inspect.iscoroutinefunction(evaluates)
    assert asyncio.run(both()) == [[False] * 4, [True] * 5, [False] * 3]
    assert on()


def test_a_coroutine_that_is_cancelled_or_fails():
    seen = []

    @tg.no_grad
    async def waits():
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(on())

    @tg.no_grad
    async def fails():
        await asyncio.sleep(0)
        raise KeyError("own")

    async def cancels():
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        assert on()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(KeyError, match="own"):
            await fails()
        return on()

    assert asyncio.run(cancels())
    assert seen == [False]


def test_async_generators():
    ends = []

    @tg.no_grad()
    async def numbers():
        try:
            given = yield on()
            await asyncio.sleep(0)
            try:
                yield given, on()
            except KeyError:
                yield "caught", on()
            yield on()
        finally:
            await asyncio.sleep(0)
            ends.append(on())

    async def uses():
        body = numbers()
        assert await anext(body) is False and on()
        assert await body.asend(3) == (3, False) and on()
        assert await body.athrow(KeyError()) == ("caught", False) and on()
        await body.aclose()
        assert ends == [False] and on()
        assert [each async for each in numbers()] == [False, (None, False), False]
        assert on()

    assert inspect.isasyncgenfunction(numbers)
    asyncio.run(uses())
    assert ends == [False, False]


def test_generators_that_can_be_awaited():
    @tg.no_grad()
    @types.coroutine
    def step():
        yield
        return on()

    async def uses():
        return await step(), on()

    assert asyncio.run(uses()) == (False, True)


class Net(nn.Module):
    def __init__(self):
        self.w = nn.Parameter([1.0])

    @tg.no_grad()
    def forward(self, x):
        return self.w * x

    @tg.no_grad
    def parts(self):
        yield (self.w * 2).requires_grad

    @staticmethod
    @tg.no_grad()
    def below():
        return on()

    @tg.no_grad()
    @staticmethod
    def above():
        yield on()

    @tg.no_grad
    @classmethod
    def of_class(cls):
        return cls.__name__, on()

    @property
    @tg.no_grad()
    def twice(self):
        return (self.w * 2).requires_grad


def test_methods_of_every_kind():
    net = Net()
    assert not net(1.0).requires_grad and list(net.parts()) == [False]
    assert net.below() is False and Net.below() is False and list(net.above()) == [False]
    assert net.of_class() == Net.of_class() == ("Net", False) and net.twice is False
    assert on()


class Calls:
    def __call__(self):
        yield on()


@pytest.mark.parametrize("make", [lambda f: functools.partial(f), lambda f: Calls(), lambda f: f])
def test_partials_and_objects_that_are_called(make):
    def one():
        yield on()

    wrapped = tg.no_grad()(make(one))
    assert list(wrapped()) == [False] and on()


def test_plain_functions_and_recursion():
    @tg.no_grad
    def down(n):
        "Words."
        return [on(), *down(n - 1)] if n else []

    assert down(3) == [False] * 3 and on() and down.__doc__ == "Words."
    assert tg.no_grad(lambda: on())() is False and on()
    with pytest.raises(ZeroDivisionError):
        tg.no_grad(lambda: 1 / 0)()
    assert on()


@pytest.mark.parametrize("context", [tg.no_grad, tg.detect_anomaly])
@pytest.mark.parametrize("what", [Net, 5, "model", property(lambda self: 1)])
def test_what_is_no_function_is_refused(context, what):
    name = context.__name__
    for decorate in (context, context()):
        with pytest.raises(ArgumentError, match=rf"{name}: function: expected a function.*@{name}"):
            decorate(what)


def test_every_context_of_ours_holds_above_a_generator():
    @tg.detect_anomaly()
    def divides():
        yield 1
        tg.log(W * 0)

    steps = divides()
    next(steps)
    tg.log(W * 0)
    with pytest.raises(GraphError, match="log made -inf"):
        next(steps)

    model = nn.Dropout(0.5)

    @model.evaluating()
    def modes():
        yield model.training
        yield model.training

    assert [(inside, model.training) for inside in modes()] == [(False, True)] * 2
    assert list(modes()) == [False, False], "a second time"

    launches = []

    @around
    def taking():
        with tg.cuda.recording(execute=False) as taken:
            yield
        launches.extend(taken)

    x = tg.Tensor([1.0], device="emulator")

    @taking()
    def relus():
        yield tg.relu(x)
        yield tg.relu(x)

    for _ in relus():
        tg.neg(x)
    assert [launch.kernel.name for launch in launches] == ["unary_forward<float, Relu>"] * 2


def test_a_context_that_is_made_wrongly_says_so_at_once():
    with pytest.raises(TypeError, match="unexpected keyword"):
        tg.cuda.recording(exec=True)
