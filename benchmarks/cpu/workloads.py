"""The workloads by name, and the points that a run measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.networks import NETWORKS, Network
from benchmarks.workloads import Workload, mlp, seed_network, vgg, xor

IMAGE_SCALE = np.float32(0.05)  # of w1: its learning rate of 0.1 would diverge on larger images

BATCHES = (100, 250, 500, 1000)  # of w1, with 256 filters
FILTERS = (32, 64, 128)  # of w1, with batch 1000
W1 = "w1:100:256"  # the point of w1 at which all peers are compared
LARGEST = "w1:1000:256"
GRID = (*(f"w1:{batch}:256" for batch in BATCHES), *(f"w1:1000:{count}" for count in FILTERS))
COMPARED = (*NETWORKS, "w2", "w3", W1, "w4")  # where the most peers are
POINTS = (*NETWORKS, *GRID, "w2", "w3", "w4")
QUICK = (*NETWORKS, W1, "w2", "w3", "w4")


def build(point: str) -> Workload | Network:
    """The workload at a point: network, weights and batch.

    Raises
    ------
    ValueError
        For a name that is none of "lenet5", ..., "w1:N:D", "w2", "w3", "w4".

    >>> build("w1:100:32").images.shape, build("w4").loss, build("gpt").inputs.shape
    ((100, 1, 28, 28), 'mse', (16, 32))
    """
    name, *sizes = point.split(":")
    if name in NETWORKS and not sizes:
        return NETWORKS[name]()
    if name == "w1" and len(sizes) == 2:
        net = seed_network(int(sizes[0]), int(sizes[1]))
        return replace(net, images=net.images * IMAGE_SCALE, learning_rate=0.1)
    if name == "w2" and not sizes:
        return replace(mlp(), learning_rate=0.02)
    if name == "w3" and not sizes:
        return replace(vgg(), learning_rate=0.001)
    if name == "w4" and not sizes:
        return xor()
    known = ", ".join([*NETWORKS, "w1:N:D", "w2", "w3", "w4"])
    raise ValueError(f"benchmarks: there is no workload {point!r}; there are {known}")


def batch_of(point: str) -> int:
    """The batch size of a point of w1."""
    return int(point.split(":")[1])
