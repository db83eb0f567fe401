"""SigmoidMLP: layers of sigmoid nodes, with the learning rate and the momentum that belong to it.

    layer 0 is the input x;  I_l nodes in layer l;  w_l (I_l, I_l-1), b_l (I_l,);  target t

    y_0 = x           y_l = sigmoid(w_l y_l-1 + b_l)           E = 1/2 sum (y_L - t)^2
    delta_L = (y_L - t) y_L (1 - y_L)                          for the last layer
    delta_l = (w_l+1^T delta_l+1) y_l (1 - y_l)                for those before it
    dE/dw_l = delta_l y_l-1^T,  dE/db_l = delta_l

One sample at a time: each is followed by an update.  With momentum m, the step of a weight is
-lr dE/dw + m * (the step before).

Source: Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature
323, 1986.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import whole
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.distributed import Linear, owner_of
from tinygraph.engine import Parameter, Tensor
from tinygraph.optim import SGD
from tinygraph.recipes.settings import Count, Limit, Positive, Share, fit
from tinygraph.training import Trainer, evaluate

LEARNING_RATE, MOMENTUM = 0.5, 0.0
Widths = Annotated[
    tuple[Count, ...], Limit("at least two ints, each at least 1", lambda widths: len(widths) > 1)
]
EVALUATION_BATCH = 250  # only a matter of memory


class SigmoidMLP(nn.Module):
    """A multi-layer perceptron whose nodes, all but the inputs, are sigmoids.

    `widths` are the nodes of each layer, from the inputs to the outputs; `lr` and `momentum` say
    how it learns; the name is written into its text file.  With `split` each rank of a launch owns
    some of the nodes of every layer, as the cores of nnP do; all ranks have the same samples.

    Attributes
    ----------
    layers : Sequential
        Linear and Sigmoid in turn.  Weights and biases are uniform on +-1 / sqrt(fan_in) at first.

    Raises
    ------
    ArgumentError
        Widths, a rate or a momentum that cannot be.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph.recipes.splice_mlp_network import SigmoidMLP
    >>> network = SigmoidMLP([240, 20, 3])
    >>> network(tg.zeros((5, 240))).shape
    (5, 3)
    >>> network.alter([240, 40, 3]).widths
    (240, 40, 3)
    """

    def __init__(
        self,
        widths: Iterable[int],
        lr: float = LEARNING_RATE,
        momentum: float = MOMENTUM,
        name: str = "network",
        dtype: Any = np.float32,
        split: bool = False,
    ) -> None:
        self.widths: tuple[int, ...] = fit("SigmoidMLP", "widths", Widths, tuple(widths))
        self.learn_with(lr, momentum)
        self.name, self.split = name, split
        linear = partial(Linear, scheme="same") if split else nn.Linear
        parts: list[nn.Module] = []
        for fan_in, fan_out in zip(self.widths, self.widths[1:], strict=False):
            parts += [linear(fan_in, fan_out, dtype=dtype), nn.Sigmoid()]
        self.layers = nn.Sequential(*parts)

    def forward(self, x: Any) -> Tensor:
        """Outputs (N, O), from 0 to 1, of inputs (N, I)."""
        return self.layers(x)

    def learn_with(self, lr: float, momentum: float = MOMENTUM) -> None:
        """Set the learning rate and the momentum of the next `fit`."""
        self.lr, self.momentum = require_learning("SigmoidMLP", lr, momentum)

    def by_layer(self) -> list[tuple[Parameter, Parameter]]:
        """Weights (to, from) and biases (to,) of layer 1, 2, ..., for layer 0 has none."""
        parameters = list(self.parameters())
        return list(zip(parameters[::2], parameters[1::2], strict=True))

    def again(self, split: bool) -> SigmoidMLP:
        """The same network, split among the ranks or whole on each; all ranks call it."""
        dtype = next(self.parameters()).dtype
        made = SigmoidMLP(self.widths, self.lr, self.momentum, self.name, dtype, split)
        made.load_state_dict(self.state_dict())
        return made

    def owner_of(self, layer: int, node: int) -> int:
        """The rank that computes a node, and has the weights of the links that lead to it.

        Layers count from 0, the inputs, which no rank owns; nodes count from 0.

        >>> SigmoidMLP([240, 20, 3], split=True).owner_of(1, 19)
        0
        """
        whole("owner_of", "layer", layer, 1, len(self.widths) - 1)
        return owner_of(node, self.widths[layer], None if self.split else 1)

    def randomize(self) -> None:
        """Draw all weights and biases anew, from the generator that `tg.manual_seed` seeds."""
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def alter(self, widths: Iterable[int]) -> SigmoidMLP:
        """A network of another topology that learns like this one.

        With as many layers as before, what lies between nodes that remain keeps its weights, and
        nodes that remain keep their biases; the rest is drawn.  With more or fewer layers
        everything is drawn.
        """
        dtype = next(self.parameters()).dtype
        altered = SigmoidMLP(widths, self.lr, self.momentum, self.name, dtype, self.split)
        if len(altered.widths) == len(self.widths):
            before, after = self.state_dict(), altered.state_dict()
            for old, new in zip(before.values(), after.values(), strict=True):
                kept = tuple(slice(min(sizes)) for sizes in zip(old.shape, new.shape, strict=True))
                new[kept] = old[kept]
            altered.load_state_dict(after)
        return altered

    def fit(self, data: ArrayDataset, epochs: int = 1, seed: int = 0) -> list[dict[str, Any]]:
        """Learn from one sample after the other, in an order that is drawn for each epoch.

        Inputs (N, I) are of the network's dtype, a label is the number of the right output.  The
        rows are those of `Trainer.fit`.  Momentum begins anew with each call.
        """
        optimizer = SGD(self.named_parameters(), lr=self.lr, momentum=self.momentum)
        trainer = Trainer(self, optimizer, half_squared_error, progress=False)
        return trainer.fit(online(data, seed), epochs=epochs)

    def test(self, data: ArrayDataset) -> dict[str, float]:
        """Mean `loss`, and `accuracy`: the share of samples whose largest output is the right one.

        Nothing is learnt.
        """
        return evaluate(self, DataLoader(data, EVALUATION_BATCH), half_squared_error)


def online(data: ArrayDataset, seed: int = 0) -> DataLoader:
    """One sample at a time, in an order of its own in each epoch."""
    return DataLoader(data, batch_size=1, shuffle=True, seed=seed)


def half_squared_error(output: Tensor, labels: Tensor) -> Tensor:
    """Half the squared error against targets of 1 for the right output and 0 for the others.

    The sum over the outputs (N, O), and the mean over the samples: for one sample, E itself.

    >>> import tinygraph as tg
    >>> float(half_squared_error(tg.Tensor([[0.5, 0.5]]), tg.tensor([1])).item())
    0.25
    """
    samples, outputs = output.shape
    rows = tg.Tensor(np.eye(outputs, dtype=output.dtype)).to(output.device)
    error = tg.half_squared_error(output, tg.embedding(labels, rows))  # targets (N, O)
    return error if samples == 1 else error / samples


def require_learning(op: str, lr: Any, momentum: Any) -> tuple[float, float]:
    """A learning rate and a momentum as floats, or ArgumentError."""
    return fit(op, "lr", Positive, lr), fit(op, "momentum", Share, momentum)
