"""Functions of numpy that are given a Tensor: what they do, and what to write in their place.

    numpy_array * x        np.multiply asks the tensor, and a node is made
    np.exp(x), arr += x    refused: the ufuncs compute no gradient
    np.stack([x, y])       numpy's result, where no gradient is needed; refused where one is
    np.shape(x)            numpy's result: no gradient goes through it
    np.asarray(x)          the numbers of x, as x.numpy(): asked for by that name

numpy asks `__array_ufunc__` and `__array_function__` of a Tensor, which come here.

Source: NEP 13 and NEP 18.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tinygraph.base import DtypeError, GraphError, above
from tinygraph.engine import Tensor, here

# What has no gradient: shapes, comparisons, counts, places; and what writes the numbers down.
_WITHOUT_GRADIENT = """
    shape ndim size result_type can_cast min_scalar_type common_type iscomplexobj isrealobj
    may_share_memory shares_memory zeros_like ones_like empty_like full_like broadcast_shapes
    allclose isclose array_equal array_equiv isposinf isneginf iscomplex isreal
    argmax argmin nanargmax nanargmin argsort argwhere nonzero flatnonzero count_nonzero
    all any isin in1d searchsorted digitize histogram_bin_edges bincount lexsort argpartition
    save savez savez_compressed savetxt copyto
"""
_HARMLESS = frozenset(_WITHOUT_GRADIENT.split())


_OF_UFUNCS = {  # what numpy calls the operators of its arrays, and the functions they are here
    **{name: name for name in ("matmul", "floor_divide", "remainder", "less", "less_equal")},
    **{name: name for name in ("greater", "greater_equal", "equal", "not_equal")},
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow"},
}


def call_ufunc(ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
    """numpy_array * tensor is a node; any other ufunc is refused."""
    name = _OF_UFUNCS.get(ufunc.__name__, "")
    if not name or method != "__call__" or options:
        _refuse_ufunc(ufunc, method, options)
    return getattr(above, name)(*inputs)


def _refuse_ufunc(ufunc: Any, method: str, options: Any) -> None:
    """Raise DtypeError for a ufunc that numpy shall apply to a Tensor."""
    name = ufunc.__name__
    called = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
    instead = _instead(name, method)
    if "out" in options:  # array += x, which writes into the array
        instead = "array = array + x, and so on, which makes a node; or x.numpy()"
    raise DtypeError(called, "an operand", "arrays of numpy", "a Tensor", instead)


def call_numpy(function: Callable[..., Any], args: Any, options: Any) -> Any:
    """What a function of numpy gives for tensors.

    Raises
    ------
    GraphError
        A tensor requires a gradient, which would end there in silence.
    DtypeError
        numpy finds a tensor's method of that name, and calls it as its own.
    """
    name = function.__name__
    of = getattr(function, "__module__", None) or "numpy"
    called = f"{of.replace('numpy', 'np', 1)}.{name}"
    instead = _instead(name, "__call__")
    needed = here.top.remembers and name not in _HARMLESS
    if needed and any(x.requires_grad for x in _tensors((args, options))):
        if instead == _ON_THE_HOST:
            instead = "x.detach().numpy(), where the graph ends"
        raise GraphError(called, "an argument", "arrays of numpy", "one with a gradient", instead)
    try:
        return function._implementation(*args, **options)  # type: ignore[attr-defined]
    except (TypeError, AttributeError) as error:
        raise DtypeError(
            called, "an argument", "arrays of numpy", f"a Tensor ({error})", instead
        ) from None


_ON_THE_HOST = "x.numpy() is the array"


def _instead(name: str, method: str) -> str:
    """The function of this package of that name, or what is written in its place."""
    import tinygraph
    from tinygraph.interop.torch_names import rows

    if method == "__call__":
        if name in tinygraph.__all__:
            return f"tg.{name}"
        if found := rows("numpy").get(f"numpy.{name}"):
            return found
    return _ON_THE_HOST


def _tensors(thing: Any) -> Iterator[Tensor]:
    """The tensors among arguments, and in the tuples, lists and dicts of them."""
    left = [thing]
    while left:
        one = left.pop()
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, (tuple, list)):
            left.extend(one)
