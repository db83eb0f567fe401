"""Many threads at once, each with a graph of its own: the bits of a single thread.

Odd threads also switch grad mode off and on between their passes, and turn anomaly detection on:
neither may be seen by another thread.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

import tinygraph as tg
from tests.faults.tally import Tally

THREADS = 8
SHAPES = [(3, 2, 8, 8), (5, 2, 8, 8), (2, 2, 10, 6)]  # buffers of several sizes


def gradients(thread, turn):
    """The bits of one backward pass; they depend on thread and turn alone."""
    rng = np.random.default_rng([thread, turn % 16])
    x = tg.Tensor(rng.standard_normal(SHAPES[turn % 3]).astype(np.float32), requires_grad=True)
    w = tg.Parameter(rng.standard_normal((4, 2, 3, 3)).astype(np.float32))
    b = tg.Parameter(rng.standard_normal(4).astype(np.float32))
    h = tg.conv2d(x, w, b, padding=1)
    mean, variance = tg.zeros(4), tg.ones(4)
    h = tg.batch_norm(h, running_mean=mean, running_var=variance, training=True)
    h = tg.max_pool2d(tg.relu(h), 2)
    h = (h + tg.tanh(h)).flatten(1)
    loss = tg.softmax_cross_entropy(h, rng.integers(0, h.shape[1], len(h)))
    loss.backward()
    arrays = (loss.value, x.grad, w.grad, b.grad, mean.value, variance.value)
    return b"".join(array.tobytes() for array in arrays)


def live(thread, count, expected, faults, barrier):
    """One thread: `count` passes, each compared with the serial bits."""
    barrier.wait()
    for turn in range(count):
        if thread % 2 and turn % 3 == 0:
            with tg.no_grad(), tg.detect_anomaly():
                if tg.Tensor([1.0], requires_grad=True).exp().requires_grad:
                    faults.append(f"thread {thread}, turn {turn}: no_grad has no effect")
        try:
            found = gradients(thread, turn)
        except Exception as error:  # grad mode of another thread would be one
            faults.append(f"thread {thread}, turn {turn}: {error!r}")
            continue
        if found != expected[thread, turn % 48]:
            faults.append(f"thread {thread}, turn {turn}: other bits than alone")


def torment(count=1000, seed=0):
    """`count` passes in each of eight threads; `seed` shifts what they compute."""
    tally = Tally("backward in threads")
    names = [THREADS * seed + i for i in range(THREADS)]
    expected = {(t, turn): gradients(t, turn) for t in names for turn in range(min(count, 48))}
    faults, barrier = [], threading.Barrier(THREADS)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # many switches
    try:
        workers = [
            threading.Thread(target=live, args=(t, count, expected, faults, barrier)) for t in names
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    tally.failures += faults
    tally.count = THREADS * count
    tally.outcomes["same bits as serial"] = tally.count - len(faults)
    tally.notes = f"{THREADS} threads, {count} passes each"
    return tally
