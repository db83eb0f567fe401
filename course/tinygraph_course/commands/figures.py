"""The figures of the projects of exercise 16, from saved parameters: nothing of the learner runs.

srcnn        conv1 9x9, ReLU, conv2 1x1, ReLU, conv3 5x5; the outermost pixels of a picture are
             repeated before, so that nothing is lost; PSNR of luma, not rounded, without a
             border as wide as the scale
numba_cnn    conv 3x3, ReLU, max-pool 2x2, linear, on digits of 8 x 8 pixels
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.data import Draws, degrade, digits, super_resolution
from tinygraph.engine.spec import Array
from tinygraph.recipes.srcnn_colour import luma

MARGIN = 6  # pixels that SRCNN takes away at each edge
SRCNN = [f"{name}.{part}" for name in ("conv1", "conv2", "conv3") for part in ("weight", "bias")]
NUMBA_CNN = ["0.weight", "0.bias", "4.weight", "4.bias"]


def qualities(
    parameters: Any, seed: int, held: int, scale: int, data_dir: Path | None = None
) -> dict[str, float]:
    """Mean PSNR in dB: on pictures of T91 that were held out, on Set5, and bicubic on Set5.

    Held out are the first `held` of np.random.default_rng(seed).permutation(91).

    Raises
    ------
    DatasetError
        The pictures are not there.
    CheckpointError
        The parameters are not those of an SRCNN.
    """
    arrays = _arrays(parameters, SRCNN)
    t91, set5 = (super_resolution(name, data_dir) for name in ("T91", "Set5"))
    if held not in range(1, len(t91)):
        raise ArgumentError("course protocol", "held", f"from 1 to {len(t91) - 1}", held)
    chosen = np.random.default_rng(seed).permutation(len(t91))[:held]
    validation = [_psnrs(arrays, t91[int(i)][0], scale)[0] for i in chosen]
    test = [_psnrs(arrays, set5[i][0], scale) for i in range(len(set5))]
    psnr, bicubic = np.mean(test, axis=0)
    return {
        "validation": float(np.mean(validation)),
        "psnr": float(psnr),
        "bicubic": float(bicubic),
    }


def _psnrs(arrays: Sequence[Array], rgb: Array, scale: int) -> tuple[float, float]:
    """PSNR of one picture (3, H, W): by the network, and by bicubic interpolation."""
    low, high = degrade(scale)(
        luma(rgb.astype(np.float64)).astype(np.float32), None, Draws(0, 0, 0)
    )
    H, W = high.shape[1:]
    truth = luma(rgb[:, :H, :W].astype(np.float64))[0]
    inside = slice(scale, H - scale), slice(scale, W - scale)

    def psnr(y: Array) -> float:
        return float(10 * np.log10(1 / np.mean((y - truth)[inside] ** 2)))

    return psnr(_enhanced(arrays, low[0])), psnr(low[0])


def _enhanced(arrays: Sequence[Array], low: Array) -> Array:
    """Luma (H, W) through the network."""
    x = tg.Tensor(np.pad(low, MARGIN, mode="edge")[None, None])
    w1, b1, w2, b2, w3, b3 = arrays
    with tg.no_grad():
        h = tg.relu(tg.conv2d(tg.relu(tg.conv2d(x, w1, b1)), w2, b2))
        y = tg.conv2d(h, w3, b3).numpy()[0, 0]
    if y.shape != low.shape:
        expected = f"filters of 9, 1 and 5, which take {MARGIN} pixels at each edge"
        raise CheckpointError(
            "course protocol", "parameters", expected, [w1.shape, w2.shape, w3.shape]
        )
    return y


def accuracy(parameters: Any) -> float:
    """The share of the test digits that the network reads rightly.

    Raises
    ------
    CheckpointError
        The parameters are not those of that network.
    """
    w, b, w_last, b_last = _arrays(parameters, NUMBA_CNN)
    images, labels = digits("test")[:]
    with tg.no_grad():
        h = tg.max_pool2d(tg.relu(tg.conv2d(tg.Tensor(images), w, b)), 2)
        logits = tg.linear(tg.flatten(h, 1), w_last, b_last).numpy()
    return float((logits.argmax(1) == labels).mean())


def _arrays(parameters: Any, names: Sequence[str]) -> list[Array]:
    """Arrays by name, and no others."""
    if not isinstance(parameters, Mapping) or set(parameters) != set(names):
        got = sorted(parameters) if isinstance(parameters, Mapping) else type(parameters).__name__
        raise CheckpointError("course protocol", "parameters", f"{', '.join(names)}", got)
    return [np.asarray(parameters[name]) for name in names]
