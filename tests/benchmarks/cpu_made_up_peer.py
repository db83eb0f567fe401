"""A peer for tests: network 2-8-1 of workload w4, derived by hand in numpy, and ways to fail."""

import os
import time

import numpy as np

from benchmarks.cpu.training import NotOffered, Training

LAST_STEP = 4  # of the variant "tires"


def make(workload, variant, threads):
    if variant == "absent":
        raise NotOffered("this version has none")
    if variant == "breaks":
        raise ImportError("no module\nof that name")
    if variant == "dies":
        os.write(2, b"a library's last words\n")
        os._exit(7)
    if variant == "hangs":
        time.sleep(60)
    w1, b1, w2, b2 = (w.astype(np.float64) for w in workload.weights)
    x, target = workload.images, workload.labels
    taken = 0

    def step():
        nonlocal w1, b1, w2, b2, taken
        taken += 1
        if variant == "tires" and taken > LAST_STEP:
            raise RuntimeError("tired")
        z = x @ w1.T + b1  # (N, 8)
        h = np.where(z > 0, z, 0)
        difference = h @ w2.T + b2 - target  # (N, 1)
        gy = 2 * difference / difference.size
        gz = (gy @ w2) * (z > 0)
        rate = workload.learning_rate
        w2, b2 = w2 - rate * gy.T @ h, b2 - rate * gy.sum(0)
        w1, b1 = w1 - rate * gz.T @ x, b1 - rate * gz.sum(0)
        if variant == "sleeps":
            time.sleep(0.01)
        if variant == "prints":
            print("{ a library prints", flush=True)
        return np.mean(difference**2) + (0.1 if variant == "wrong" else 0.0)

    return Training(step, float, f"made up, {threads} threads")
