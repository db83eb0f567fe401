"""One case on one device in one dtype, compared with what its file says."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinygraph as tg
from tests.cases.schema import Case, CaseArray


def check(case: Case, device: str, dtype: str) -> None:
    """Call the function and compare values, gradients and later values."""
    leaves = {name: as_leaves(case, name, tree, device, dtype) for name, tree in case.args.items()}
    if case.seed is not None:
        tg.manual_seed(case.seed)
    result = getattr(tg, case.op)(**leaves, **case.kwargs)
    several = isinstance(case.expected, list)
    nodes = list(result) if several else [result]
    expected = case.expected if several else [case.expected]
    assert len(nodes) == len(expected), f"{len(nodes)} outputs, not {len(expected)}"
    for i, (node, array) in enumerate(zip(nodes, expected, strict=True)):
        compare(case, f"expected[{i}]" if several else "expected", node.numpy(), array, dtype)
    if case.gradients:
        walk_backward(case, nodes, dtype)
        for name, tree in case.gradients.items():
            compare_gradients(case, f"gradients.{name}", leaves[name], tree, dtype)
    for name, array in case.after.items():
        compare(case, f"after.{name}", leaves[name].numpy(), array, dtype)


def as_leaves(case: Case, name: str, tree: Any, device: str, dtype: str) -> Any:
    """An argument as leaves on the device; those that have a gradient in the file require one."""
    if isinstance(tree, list):
        return [as_leaves(case, name, part, device, dtype) for part in tree]
    if not isinstance(tree, CaseArray):
        return tree
    return tg.Tensor(tree.as_dtype(dtype), name in case.gradients, device=device)


def walk_backward(case: Case, nodes: list[tg.Tensor], dtype: str) -> None:
    """backward of every output; gradients of shared leaves add up."""
    upstream = case.upstream if isinstance(case.upstream, list) else [case.upstream]
    for node, g in zip(nodes, upstream, strict=True):
        if node.requires_grad:
            node.backward(g.as_dtype(dtype))


def compare_gradients(case: Case, where: str, leaf: Any, tree: Any, dtype: str) -> None:
    if isinstance(tree, list):
        for i, (one, part) in enumerate(zip(leaf, tree, strict=True)):
            compare_gradients(case, f"{where}[{i}]", one, part, dtype)
        return
    assert leaf.grad is not None, f"{case.file}: case {case.name!r}: {where}: no gradient came"
    compare(case, where, leaf.device.to_numpy(leaf.grad), tree, dtype)


def compare(case: Case, where: str, got: Any, expected: CaseArray, dtype: str) -> None:
    """Dtype, shape, and numbers within the case's tolerance; at 0 the signs of zeros too."""
    title = f"{case.file}: case {case.name!r}: {where}, {dtype}"
    wanted = expected.as_dtype(dtype)
    assert got.dtype == wanted.dtype, f"{title}: dtype {got.dtype}, not {wanted.dtype}"
    assert got.shape == wanted.shape, f"{title}: shape {got.shape}, not {wanted.shape}"
    tolerance = case.tolerance[dtype]
    if not expected.is_float or tolerance == 0:
        np.testing.assert_array_equal(got, wanted, err_msg=title)
        if expected.is_float:
            number = ~np.isnan(wanted)  # a NaN may have either sign
            signs = np.signbit(got) == np.signbit(wanted)
            assert signs[number].all(), f"{title}: a zero has the wrong sign: {got}"
        return
    exact = expected.values
    largest = float(np.max(np.abs(exact[np.isfinite(exact)]), initial=1.0))
    np.testing.assert_allclose(
        got.astype(np.float64), exact, rtol=0, atol=tolerance * largest, err_msg=title
    )
