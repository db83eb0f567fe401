"""The network of SRCNN: three convolutions; how it begins, learns, and is kept.

    x (N, 1, H, W)  luma from 0 to 1, enlarged by bicubic interpolation
      -> conv f1 x f1, n1 filters, ReLU      patches, as n1 features each
      -> conv f2 x f2, n2 filters, ReLU      features of high resolution
      -> conv f3 x f3, one filter            luma (N, 1, H - 2M, W - 2M)

Nothing is padded: each layer takes away half a filter at every edge, M = (f1 + f2 + f3 - 3) / 2
pixels in all.

Source: Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", TPAMI 2016;
"Neural networks: implementation tips", 2015, for the JSON files and the rule `srcnn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph import nn
from tinygraph.base import AnyPath, ArgumentError, CheckpointError, as_path, one_of
from tinygraph.base.disk import followed
from tinygraph.engine import Array
from tinygraph.files.sealed import load_arrays, write_json
from tinygraph.optim import SGD, Adam, Optimizer
from tinygraph.recipes.srcnn_config import DISTRIBUTIONS, read_object

LAYERS = ("0", "2", "4")  # the convolutions in the Sequential
RULES = ("adam", "sgd", "srcnn")
_MAX_JSON = 1 << 28  # 4096 filters take less


def model(n1: int = 64, n2: int = 32, f1: int = 9, f2: int = 1, f3: int = 5) -> nn.Sequential:
    """The network, with weights as `nn.Conv2d` draws them.

    >>> import tinygraph as tg
    >>> model(32, 16)(tg.zeros((2, 1, 33, 33))).shape
    (2, 1, 21, 21)
    """
    return nn.Sequential(
        nn.Conv2d(1, n1, f1), nn.ReLU(), nn.Conv2d(n1, n2, f2), nn.ReLU(), nn.Conv2d(n2, 1, f3)
    )


def layers(network: nn.Sequential) -> list[nn.Conv2d]:
    """The three convolutions."""
    return [module for module in network if isinstance(module, nn.Conv2d)]


def margin(network: nn.Sequential) -> int:
    """M: by how many pixels the output is smaller than the input at each edge.

    >>> margin(model())
    6
    """
    return sum(layer.kernel_size[0] - 1 for layer in layers(network)) // 2


def initialise(network: nn.Sequential, distributions: Mapping[str, Any]) -> None:
    """Draw weights and biases of each layer from its own normal distribution."""
    for name, layer in zip(DISTRIBUTIONS, layers(network), strict=True):
        normal = distributions[name]
        nn.init.normal_(layer.weight, normal["mean_w"], normal["std_deviation_w"])
        if layer.bias is not None:
            nn.init.normal_(layer.bias, normal["mean_b"], normal["std_deviation_b"])


def optimizer(
    network: nn.Sequential,
    rule: str,
    rates: Any,
    momentum: float,
    weight_decay: float,
    batch_size: int,
) -> Optimizer:
    """The rule of that name, with a learning rate for each layer; biases do not decay.

    All rules get the gradient of the mean over a batch of L = half the squared error of a crop,
    summed over its pixels.

        adam     momentum is beta1
        sgd      momentum, and decay * lr
        srcnn    d = momentum * d + lr * (gradient of the sum) + decay * w,  w -= d / batch_size:
                 that of the program of 2015, which is sgd with decay / (lr * batch_size)

    Raises
    ------
    ArgumentError
        Another name.
    """
    one_of("srcnn", "rule", rule, RULES)
    groups: list[dict[str, Any]] = []
    for name, layer, rate in zip(LAYERS, layers(network), rates, strict=True):
        own = weight_decay / (rate * batch_size) if rule == "srcnn" else weight_decay
        for part, decay in (("weight", own), ("bias", 0.0)):
            params = [(f"{name}.{part}", getattr(layer, part))]
            groups.append({"params": params, "lr": rate, "weight_decay": decay})
    if rule == "adam":
        return Adam(groups, lr=rates[0], betas=(momentum, 0.999))
    return SGD(groups, lr=rates[0], momentum=momentum)


# ---- parameters in files ------------------------------------------------------------------------


def read_network(path: AnyPath) -> nn.Sequential:
    """The network whose parameters a file holds: its sizes are those of the arrays.

    The file is `parameters.safetensors` of a run, one that another program wrote as safetensors, or
    the JSON of `write_json_parameters`.

    Raises
    ------
    CheckpointError
        The file is absent or damaged, or holds no three layers that fit each other.
    """
    source = as_path("srcnn", "parameters_file", path)
    is_json = source.suffix.lower() == ".json"
    arrays = _json_arrays(source) if is_json else load_arrays(source, sealed=None)
    weights = [arrays.get(f"{name}.weight") for name in LAYERS]
    try:
        n1, n2, last = (len(w) for w in weights if w is not None)
        sides = [w.shape[2] for w in weights if w is not None]
        if last != 1:
            raise ValueError
        network = model(n1, n2, *sides)
    except (ValueError, IndexError, TypeError, ArgumentError):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise CheckpointError(
            "srcnn", str(source), "weights of three convolutions, 0, 2 and 4", shapes
        ) from None
    network.load_state_dict(arrays)
    return network


def write_json_parameters(network: nn.Sequential, path: AnyPath) -> Path:
    """Write {"layer1": {"weights": [...], "bias": [...]}, "layer2": ..., "layer3": ...}.

    Weights are in the order (row, column, input channel, filter), as the program of 2015 has them.
    """
    content = {}
    for number, layer in enumerate(layers(network), 1):
        flat = layer.weight.numpy().transpose(2, 3, 1, 0).ravel()  # (KH, KW, C, O)
        bias = np.zeros(layer.out_channels) if layer.bias is None else layer.bias.numpy()
        content[f"layer{number}"] = {"weights": flat.tolist(), "bias": bias.tolist()}
    return write_json(followed(as_path("srcnn", "path", path)), content)


def _json_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a JSON file; the numbers of biases say how many filters there are."""
    arrays: dict[str, Array] = {}
    channels = 1
    try:
        content = read_object("srcnn parameters", path, _MAX_JSON)
        for number, name in enumerate(LAYERS, 1):
            part = content[f"layer{number}"]
            flat, bias = (np.array(part[key], np.float64) for key in ("weights", "bias"))
            if not (np.isfinite(flat).all() and np.isfinite(bias).all()):
                raise ValueError("numbers that are not finite")
            side = _side(flat.size, channels, len(bias))
            ordered = flat.reshape(side, side, channels, -1).transpose(3, 2, 0, 1)  # (O, C, KH, KW)
            arrays[f"{name}.weight"] = np.ascontiguousarray(ordered, np.float32)
            arrays[f"{name}.bias"] = bias.astype(np.float32)
            channels = len(bias)
    except ArgumentError as error:
        raise CheckpointError(str(error)) from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        expected = "layer1, layer2 and layer3, each with weights and bias that fit"
        got = f"no {error}" if isinstance(error, KeyError) else error
        raise CheckpointError("srcnn parameters", str(path), expected, got) from None
    return arrays


def _side(size: int, channels: int, filters: int) -> int:
    """Height and width of a filter, from the number of weights of its layer."""
    side = round((size / max(channels * filters, 1)) ** 0.5)
    if not size or side * side * channels * filters != size or side % 2 == 0:
        raise ValueError(f"{size} weights for {channels} channels and {filters} filters")
    return side
