"""As much of PyTorch's names as benchmarks/networks.py takes, on tinygrad's own layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tinygrad import Tensor, nn
from tinygrad.nn.optim import SGD, Adam, AdamW
from tinygrad.nn.state import get_state_dict, load_state_dict


class Module:
    """Layers as attributes; called, it is its `forward`."""

    forward: Any

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        return ((name, t) for name, t in get_state_dict(self).items() if t.is_param)

    def parameters(self) -> list[Tensor]:
        return [tensor for _, tensor in self.named_parameters()]

    def state_dict(self) -> dict[str, Tensor]:
        return get_state_dict(self)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_state_dict(self, dict(state), verbose=False)

    def train(self) -> None:
        pass

    def to(self, device: str) -> None:
        pass


class Sequential(Module):
    """Attributes named by their places, as tinygrad names members of a list."""

    def __init__(self, *modules: Any) -> None:
        vars(self).update((str(at), module) for at, module in enumerate(modules))

    def forward(self, x: Tensor) -> Tensor:
        for module in vars(self).values():
            x = module(x)
        return x


def _of(function: Any) -> Any:
    """A module without parameters."""

    class Applied(Module):
        def __init__(self, *settings: Any) -> None:
            self.settings = settings

        def forward(self, x: Tensor) -> Tensor:
            return function(x, *self.settings)

    return Applied


def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=is_causal)


library = SimpleNamespace(
    nn=SimpleNamespace(
        Module=Module,
        Sequential=Sequential,
        Conv2d=nn.Conv2d,
        Linear=nn.Linear,
        BatchNorm2d=nn.BatchNorm,
        LayerNorm=nn.LayerNorm,
        Embedding=nn.Embedding,
        ReLU=_of(lambda x: x.relu()),
        GELU=_of(lambda x: x * 0.5 * (1 + (x / math.sqrt(2)).erf())),
        MaxPool2d=_of(lambda x, size: x.max_pool2d((size, size))),
        AdaptiveAvgPool2d=_of(lambda x, size: x.mean((2, 3), keepdim=True)),  # to one pixel
        Flatten=_of(lambda x: x.flatten(1)),
        Identity=_of(lambda x: x),
        functional=SimpleNamespace(scaled_dot_product_attention=attention),
    ),
    optim=SimpleNamespace(SGD=SGD, Adam=Adam, AdamW=AdamW),
    arange=lambda count, device: Tensor.arange(count),
)
