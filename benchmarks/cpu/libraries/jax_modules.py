"""As much of PyTorch's names as benchmarks/networks.py takes, on JAX arrays.

A module has its arrays in `Slot`s.  A function that JAX differentiates fills the slots of the
parameters first, and gives back what batch norm has put into those of running statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


class Slot:
    """A place for an array."""

    def __init__(self, array: Any, learns: bool = True) -> None:
        self.array, self.learns = array, learns

    @property
    def shape(self) -> Any:
        return self.array.shape


class Values:
    """An array with those methods of a torch.Tensor that the networks call."""

    device = None

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> Any:
        return self.array.shape

    def __add__(self, other: Values) -> Values:
        return Values(self.array + other.array)

    def reshape(self, *shape: int) -> Values:
        return Values(self.array.reshape(shape))

    view = reshape

    def transpose(self, a: int, b: int) -> Values:
        return Values(jnp.swapaxes(self.array, a, b))

    def split(self, size: int, dim: int) -> list[Values]:
        cuts = range(size, self.array.shape[dim], size)
        return [Values(part) for part in jnp.split(self.array, list(cuts), axis=dim)]


class Module:
    """Slots and modules as attributes; named as in PyTorch."""

    def children(self) -> Iterator[tuple[str, Any]]:
        yield from vars(self).items()

    def slots(self, prefix: str = "") -> Iterator[tuple[str, Slot]]:
        for name, child in self.children():
            if isinstance(child, Slot):
                yield prefix + name, child
            elif isinstance(child, Module):
                yield from child.slots(f"{prefix}{name}.")

    def named_parameters(self) -> Iterator[tuple[str, Slot]]:
        return ((name, slot) for name, slot in self.slots() if slot.learns)

    def parameters(self) -> list[Slot]:
        return [slot for _, slot in self.named_parameters()]

    def buffers(self) -> list[Slot]:
        return [slot for _, slot in self.slots() if not slot.learns]

    def state_dict(self) -> dict[str, Any]:
        return {name: slot.array for name, slot in self.slots()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, slot in self.slots():
            slot.array = state[name]

    def train(self) -> None:
        pass

    def to(self, device: str) -> None:
        pass

    def __call__(self, x: Values) -> Values:
        return self.forward(x)

    def forward(self, x: Values) -> Values:
        return Values(self.of(x.array))

    def of(self, x: Any) -> Any:
        raise NotImplementedError


class Sequential(Module):
    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def children(self) -> Iterator[tuple[str, Any]]:
        return ((str(at), module) for at, module in enumerate(self.modules))

    def forward(self, x: Values) -> Values:
        for module in self.modules:
            x = module(x)
        return x


class Conv2d(Module):
    def __init__(
        self, c: int, o: int, size: int, stride: int = 1, padding: int = 0, bias: bool = True
    ) -> None:
        self.weight = Slot(jnp.zeros((o, c, size, size)))
        self.bias = Slot(jnp.zeros(o)) if bias else None
        self.stride, self.border = (stride, stride), [(padding, padding)] * 2

    def of(self, x: Any) -> Any:
        layout = ("NCHW", "OIHW", "NCHW")
        w = self.weight.array
        y = lax.conv_general_dilated(x, w, self.stride, self.border, dimension_numbers=layout)
        return y if self.bias is None else y + self.bias.array[:, None, None]


class Linear(Module):
    def __init__(self, i: int, o: int, bias: bool = True) -> None:
        self.weight = Slot(jnp.zeros((o, i)))
        self.bias = Slot(jnp.zeros(o)) if bias else None

    def of(self, x: Any) -> Any:
        y = x @ self.weight.array.T
        return y if self.bias is None else y + self.bias.array


class BatchNorm2d(Module):
    def __init__(self, features: int) -> None:
        self.weight, self.bias = Slot(jnp.ones(features)), Slot(jnp.zeros(features))
        self.running_mean = Slot(jnp.zeros(features), learns=False)
        self.running_var = Slot(jnp.ones(features), learns=False)

    def of(self, x: Any) -> Any:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        n = x.size // len(mean)
        for slot, now in ((self.running_mean, mean), (self.running_var, var * n / (n - 1))):
            slot.array = 0.9 * slot.array + 0.1 * lax.stop_gradient(now)
        scale = self.weight.array * lax.rsqrt(var + 1e-5)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias.array[:, None, None]


class LayerNorm(Module):
    def __init__(self, features: int) -> None:
        self.weight, self.bias = Slot(jnp.ones(features)), Slot(jnp.zeros(features))

    def of(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scale = lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)
        return centred * scale * self.weight.array + self.bias.array


class Embedding(Module):
    def __init__(self, count: int, features: int) -> None:
        self.weight = Slot(jnp.zeros((count, features)))

    def of(self, x: Any) -> Any:
        return self.weight.array[x]


class MaxPool2d(Module):
    def __init__(self, size: int) -> None:
        self.window = (1, 1, size, size)

    def of(self, x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, self.window, self.window, "VALID")


class AdaptiveAvgPool2d(Module):
    def __init__(self, size: int) -> None:
        assert size == 1, "the networks ask for one pixel"

    def of(self, x: Any) -> Any:
        return x.mean((2, 3), keepdims=True)


class ReLU(Module):
    def of(self, x: Any) -> Any:
        return jax.nn.relu(x)


class GELU(Module):
    def of(self, x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False)


class Flatten(Module):
    def of(self, x: Any) -> Any:
        return x.reshape(len(x), -1)


class Identity(Module):
    def of(self, x: Any) -> Any:
        return x


def attention(q: Values, k: Values, v: Values, is_causal: bool) -> Values:
    scores = q.array @ jnp.swapaxes(k.array, -1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = jnp.where(jnp.tri(q.shape[-2], dtype=bool), scores, -jnp.inf)
    return Values(jax.nn.softmax(scores) @ v.array)


# ---- optimisers: state and parameters before and after a step ------------------------------------


class SGD:
    def __init__(self, parameters: list[Slot], lr: float, momentum: float = 0.0) -> None:
        self.lr, self.momentum = lr, momentum
        self.state = [jnp.zeros_like(slot.array) for slot in parameters]

    def update(self, state: Any, weights: list[Any], gradients: list[Any]) -> tuple[Any, list[Any]]:
        state = [self.momentum * v + g for v, g in zip(state, gradients, strict=True)]
        return state, [w - self.lr * v for w, v in zip(weights, state, strict=True)]


class Adam:
    def __init__(self, parameters: list[Slot], lr: float, weight_decay: float = 0.0) -> None:
        self.lr, self.decay = lr, weight_decay
        zeros = [jnp.zeros_like(slot.array) for slot in parameters]
        self.state = (jnp.zeros(()), zeros, [jnp.zeros_like(zero) for zero in zeros])

    def update(self, state: Any, weights: list[Any], gradients: list[Any]) -> tuple[Any, list[Any]]:
        steps, first, second = state
        steps = steps + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
        rate, root = self.lr / (1 - 0.9**steps), jnp.sqrt(1 - 0.999**steps)
        found = [
            w * (1 - self.lr * self.decay) - rate * m / (jnp.sqrt(v) / root + 1e-8)
            for w, m, v in zip(weights, first, second, strict=True)
        ]
        return (steps, first, second), found


OFFERED = (Module, Sequential, Conv2d, Linear, BatchNorm2d, LayerNorm, Embedding, MaxPool2d)
OFFERED += (AdaptiveAvgPool2d, ReLU, GELU, Flatten, Identity)
functional = SimpleNamespace(scaled_dot_product_attention=attention)
library = SimpleNamespace(
    nn=SimpleNamespace(functional=functional, **{module.__name__: module for module in OFFERED}),
    optim=SimpleNamespace(SGD=SGD, Adam=Adam, AdamW=Adam),
    arange=lambda count, device: Values(jnp.arange(count)),
)
