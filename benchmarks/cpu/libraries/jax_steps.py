"""JAX: forward, backward and update in one function under jit; weights are donated."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.cpu.libraries import jax_modules
from benchmarks.cpu.libraries.jax_modules import Values
from benchmarks.cpu.training import Training, built, versions
from benchmarks.networks import Network
from benchmarks.workloads import Ops, Workload, chain


def _conv(x: Any, w: Any, b: Any, padding: int) -> Any:
    border = [(padding, padding)] * 2
    y = lax.conv_general_dilated(x, w, (1, 1), border, dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return y + b[:, None, None]


def _max_pool(x: Any, size: int) -> Any:
    window = (1, 1, size, size)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


OPS: Ops = {
    "conv": _conv,
    "linear": lambda x, w, b, _: x @ w.T + b,
    "relu": lambda x, _: jax.nn.relu(x),
    "max_pool": _max_pool,
    "flatten": lambda x, _: x.reshape(len(x), -1),
}


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


LOSSES: Ops = {"cross_entropy": _cross_entropy, "mse": lambda x, y: jnp.mean((x - y) ** 2)}


def make(workload: Workload | Network, variant: str, threads: int) -> Training:
    about = f"{versions('jax')}, {jax.default_backend()}, a thread for each core"
    if isinstance(workload, Network):
        return Training(*_of_network(workload), about)
    network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
    images, labels = jnp.asarray(workload.images), jnp.asarray(workload.labels)
    parameters = [jnp.array(w) for w in workload.weights]

    @partial(jax.jit, donate_argnums=0)
    def update(weights: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda ws: loss_of(network(x, ws), y))(weights)
        rate = workload.learning_rate
        return loss, [w - rate * g for w, g in zip(weights, gradients, strict=True)]

    def step() -> Any:
        nonlocal parameters
        loss, parameters = update(parameters, images, labels)
        return loss

    def value(loss: Any) -> float:
        jax.block_until_ready(parameters)
        return float(loss)

    return Training(step, value, about)


def _of_network(network: Network) -> tuple[Any, Any]:
    """A step, and the value of its loss."""
    module, optimizer = built(network, jax_modules.library, jnp.array)
    loss_of = LOSSES[network.loss.removesuffix("_loss")]
    inputs, labels = jnp.asarray(network.inputs), jnp.asarray(network.labels)
    parameters, buffers = module.parameters(), module.buffers()

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def update(weights: Any, statistics: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(ws: Any) -> Any:
            for slot, array in zip([*parameters, *buffers], [*ws, *statistics], strict=True):
                slot.array = array
            return loss_of(module(Values(x)).array, y), [slot.array for slot in buffers]

        (found, counted), gradients = jax.value_and_grad(loss, has_aux=True)(weights)
        return found, counted, *optimizer.update(state, weights, gradients)

    weights, statistics = [slot.array for slot in parameters], [slot.array for slot in buffers]
    state = optimizer.state

    def step() -> Any:
        nonlocal weights, statistics, state
        loss, statistics, state, weights = update(weights, statistics, state, inputs, labels)
        return loss

    def value(loss: Any) -> float:
        jax.block_until_ready(weights)
        return float(loss)

    return step, value
