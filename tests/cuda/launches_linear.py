"""Launches of linear layers with few outputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, Launch
from tests.cuda.recorded import launches_in, op_launches
from tinygraph.cuda import op_kernel

# rows, features, outputs
SIZES = [
    (1, 2048, 1),
    (33, 2052, 3),  # two blocks of rows, the last warp short; two chunks, the last one of one lane
    (3, 2049, 3),  # one number at a time
]


def _linear_few_outputs(random: np.random.Generator) -> Iterator[Launch]:
    for rows, features, outputs in SIZES:
        x, w, b = (
            random.standard_normal(shape).astype(F4)
            for shape in ((rows, features), (outputs, features), (outputs,))
        )
        label = f"x={x.shape} w={w.shape}"
        yield from op_launches(tg.linear, x / 8, w / 8, b, label=label, constants=(0, 1, 2))
        yield from op_launches(tg.linear, x / 8, w / 8, label=f"{label} no b", constants=(0, 1))

    def short() -> None:
        """Fewer features than a chunk has, where the op would take another kernel."""
        kernel = op_kernel("linear_few_outputs", "linear_few_outputs", F4, OUTPUTS=3)
        x, w, b = (random.standard_normal(s).astype(F4) for s in ((5, 8), (3, 8), (3,)))
        y = np.empty((1, 5, 3), F4)
        kernel((1, 1), 256, x, w, b, y, 5, 8)
        np.testing.assert_allclose(y[0], x @ w.T + b, rtol=2e-4, atol=2e-5)

    yield from launches_in("short rows", short)


FAMILIES = {"linear_few_outputs.cu": _linear_few_outputs}
