"""The published update rules, written for one number with Python floats, and PyTorch's numbers.

Each rule is a generator function: it is given the first value and yields the value after each step.
Nothing here calls tinygraph.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

TORCH = json.loads((Path(__file__).parent / "data" / "torch_optimizers.json").read_text())


def sgd(w, grads, lr, momentum=0.0, weight_decay=0.0, dampening=0.0, nesterov=False):
    b = None
    for grad in grads:
        g = grad + weight_decay * w
        if momentum != 0:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        w = w - lr * g
        yield w


def adadelta(w, grads, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    v = u = 0.0
    for grad in grads:
        g = grad + weight_decay * w
        v = v * rho + g**2 * (1 - rho)
        step = math.sqrt(u + eps) / math.sqrt(v + eps) * g
        u = u * rho + step**2 * (1 - rho)
        w = w - lr * step
        yield w


def adagrad(
    w, grads, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10
):
    total = initial_accumulator_value
    for t, grad in enumerate(grads, start=1):
        rate = lr / (1 + (t - 1) * lr_decay)
        g = grad + weight_decay * w
        total = total + g**2
        w = w - rate * g / (math.sqrt(total) + eps)
        yield w


def adam(
    w,
    grads,
    lr=0.001,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    decoupled=False,
):
    m = v = largest = 0.0
    for t, grad in enumerate(grads, start=1):
        g = grad
        if decoupled:
            w = w - lr * weight_decay * w
        else:
            g = g + weight_decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = max(largest, v)
        m_hat = m / (1 - betas[0] ** t)
        v_hat = (largest if amsgrad else v) / (1 - betas[1] ** t)
        w = w - lr * m_hat / (math.sqrt(v_hat) + eps)
        yield w


def adamw(w, grads, weight_decay=0.01, **settings):
    return adam(w, grads, weight_decay=weight_decay, decoupled=True, **settings)


def rmsprop(
    w, grads, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
):
    v = mean = b = 0.0
    for grad in grads:
        g = grad + weight_decay * w
        v = alpha * v + (1 - alpha) * g**2
        estimate = v
        if centered:
            mean = mean * alpha + (1 - alpha) * g
            estimate = v - mean**2
        step = g / (math.sqrt(estimate) + eps)
        if momentum > 0:
            b = momentum * b + step
            step = b
        w = w - lr * step
        yield w


def lion(w, grads, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
    """Algorithm 2 of the paper; it has no PyTorch's."""
    m = 0.0
    for g in grads:
        c = betas[0] * m + (1 - betas[0]) * g
        sign = 0.0 if c == 0 else math.copysign(1.0, c)
        w = w - lr * (sign + weight_decay * w)
        m = betas[1] * m + (1 - betas[1]) * g
        yield w


RULES = {
    "SGD": sgd,
    "Adadelta": adadelta,
    "Adagrad": adagrad,
    "Adam": adam,
    "AdamW": adamw,
    "RMSprop": rmsprop,
    "Lion": lion,
}
