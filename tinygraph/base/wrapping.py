"""around: a context that stands above a function as well, whatever kind of function that is.

    with no_grad(): ...          @no_grad()              @no_grad
                                 def evaluate(x): ...    def evaluate(x): ...

The context is entered where the function's own code runs, and left where it waits or hands over:

    a function           from its call to its end
    a generator          each resumption, by next, send, throw, close; not what its user does
    `async def`          each resumption by the event loop; not the other tasks while it waits
    an async generator   both

PyTorch has the first two so.  A generator that a plain function returns runs outside, there too.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from tinygraph.base.errors import ArgumentError

P = ParamSpec("P")
T = TypeVar("T")
Context = Callable[[], AbstractContextManager[Any]]


class _Opened:
    """One pass through a generator function that `around` was given."""

    def __init__(self, make: Callable[..., Any], args: Any, named: Any) -> None:
        self._made = make, args, named
        self._open = contextmanager(make)(*args, **named)

    def __enter__(self) -> Any:
        return self._open.__enter__()

    def __exit__(self, *exception: Any) -> Any:
        return self._open.__exit__(*exception)

    def __call__(self, function: Any) -> Any:
        make = self._made[0]
        return above(function, lambda: _Opened(*self._made), make.__name__)


def around(make: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """`contextlib.contextmanager`, but that what it makes stands above every kind of function.

    >>> @around
    ... def brackets():
    ...     print("(")
    ...     yield
    ...     print(")")
    >>> @brackets()
    ... def letters():
    ...     yield "a"
    ...     yield "b"
    >>> for letter in letters():
    ...     print(letter)
    (
    )
    a
    (
    )
    b
    (
    )
    """

    @wraps(make)
    def opened(*args: P.args, **named: P.kwargs) -> AbstractContextManager[T]:
        return cast(AbstractContextManager[T], _Opened(make, args, named))

    return opened


def above(function: Any, context: Context, name: str) -> Any:
    """The function with a context around it; `context()` is that of one call, or resumption."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(above(function.__func__, context, name))
    if inspect.isclass(function) or not callable(function):
        got = f"the class {function.__name__}" if inspect.isclass(function) else repr(function)
        way_out = f"put @{name}() above its methods, below @property; forward, say"
        raise ArgumentError(name, "function", "a function or a method", got, way_out)
    code = _code_of(function)
    if inspect.isasyncgenfunction(code):
        return _async_generator(function, context)
    if inspect.iscoroutinefunction(code):
        return _coroutine(function, context)
    if inspect.isgeneratorfunction(code):
        return _generator(function, context, code)

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        with context():
            return function(*args, **named)

    return called


def _code_of(function: Any) -> Any:
    """The function whose code runs at a call: of a partial, or of an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return getattr(function, "__func__", function)


def _generator(function: Any, context: Context, code: Any) -> Any:
    @wraps(function)
    def resumed(*args: Any, **named: Any) -> Any:
        return (yield from _resumed(function(*args, **named), context))

    awaitable = code.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE  # by types.coroutine
    return types.coroutine(resumed) if awaitable else resumed


def _coroutine(function: Any, context: Context) -> Any:
    @wraps(function)
    async def awaited(*args: Any, **named: Any) -> Any:
        return await _awaited(function(*args, **named), context)

    return awaited


def _async_generator(function: Any, context: Context) -> Any:
    @wraps(function)
    async def resumed(*args: Any, **named: Any) -> AsyncIterator[Any]:
        body = function(*args, **named)
        step = body.asend(None)
        while True:
            try:
                out = await _awaited(step, context)
            except StopAsyncIteration:
                return
            try:
                step = body.asend((yield out))
            except GeneratorExit:
                await _awaited(body.aclose(), context)
                raise
            except BaseException as error:
                step = body.athrow(error)

    return resumed


@types.coroutine
def _awaited(body: Any, context: Context) -> Generator[Any, Any, Any]:
    return (yield from _resumed(body, context))


def _resumed(body: Any, context: Context) -> Generator[Any, Any, Any]:
    """Hand on what a generator or a coroutine yields and is sent; each resumption is inside."""
    resume, given = body.send, None
    while True:
        with context():
            try:
                out = resume(given)
            except StopIteration as end:
                return end.value
        try:
            given, resume = (yield out), body.send
        except GeneratorExit:
            with context():
                body.close()
            raise
        except BaseException as error:
            given, resume = error, body.throw
