"""The outputs of all layers of a model, for one input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.engine import CPU, Runner, Tensor, as_tensor, no_grad


def activations(model: Any, *inputs: Any) -> dict[str, Tensor]:
    """Run a model once and collect what every layer returns.

    It runs in evaluation mode and without gradients, so no running statistics move and no random
    numbers are drawn.  The model is left as it was.

    Parameters
    ----------
    model : Module
        A layer or a network.
    *inputs : Tensor or array
        What the model takes: a batch, which may have one sample.

    Returns
    -------
    dict from str to Tensor
        By the modules' dotted names, in the order in which they finish; "" is the model itself.
        What a module returns when it is called again stands under "name (2)", and several tensors
        that it returns together under "name[0]", "name[1]", ...

    Raises
    ------
    ArgumentError
        `model` is not a Module.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph import nn
    >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())
    >>> outputs = tg.show.activations(model, tg.zeros(1, 1, 6, 6))
    >>> [(name, x.shape) for name, x in outputs.items()]
    [('0', (1, 4, 4, 4)), ('1', (1, 4, 4, 4)), ('2', (1, 64)), ('', (1, 64))]
    """
    if isinstance(model, type) or not callable(getattr(model, "named_modules", None)):
        raise ArgumentError(
            "show.activations",
            "model",
            "a Module",
            f"{model!r:.60}",
            "wrap functions in a class with forward(self, x), derived from nn.Module",
        )
    device = next((p.device for p in model.parameters()), CPU)
    given = [x if isinstance(x, Tensor) else as_tensor(x, device=device) for x in inputs]
    collector = _Collector(model)
    with no_grad(), model.evaluating(), collector:
        model(*given)
    return collector.outputs


class _Collector(Runner):
    """Writes down what every module returns."""

    def __init__(self, model: Any) -> None:
        self.names = {id(module): name for name, module in model.named_modules()}
        self.calls: Counter[str] = Counter()
        self.outputs: dict[str, Tensor] = {}

    def call(self, module: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        output = self.below.call(module, inputs, options)
        if id(module) not in self.names:  # made on the way
            return output
        name = self.names[id(module)]
        self.calls[name] += 1
        times = self.calls[name]
        self.outputs.update(_tensors(name if times == 1 else f"{name} ({times})", output))
        return output


def _tensors(name: str, output: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors of an output by name: itself, or those in a tuple, list or dict."""
    if isinstance(output, Tensor):
        yield name, output
    elif isinstance(output, (tuple, list, dict)):
        items = output.items() if isinstance(output, dict) else enumerate(output)
        for key, part in items:
            yield from _tensors(f"{name}[{key}]", part)
