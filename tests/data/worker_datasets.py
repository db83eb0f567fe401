"""Datasets that can be sent to a worker, and what they do there."""

import os
import random
import signal
import time
from pathlib import Path

import numpy as np

import tinygraph as tg
from tinygraph.data import (
    ArrayDataset,
    Dataset,
    TensorDataset,
    TransformedDataset,
    compose,
    horizontal_flip,
    random_crop,
)

IMAGES = np.arange(13 * 36, dtype=np.float32).reshape(13, 1, 6, 6)


def augmented():
    """Another image in each epoch."""
    transform = compose(random_crop(3, padding=1), horizontal_flip())
    return TransformedDataset(ArrayDataset(IMAGES, np.arange(13)), transform, seed=7)


def tensors():
    return TensorDataset(tg.Tensor(IMAGES), np.arange(13))


class Numbers(Dataset):
    """Sample i is i, the process that read it, and numbers that it drew."""

    def __init__(self, size=13):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        drawn = (random.random(), np.random.random(), tg.randn(1).item())
        return {"i": index, "pid": os.getpid(), "drawn": drawn}


class Troubled(Numbers):
    """Does something at sample 5."""

    def __init__(self, trouble, size=13):
        super().__init__(size)
        self.trouble = trouble

    def __getitem__(self, index):
        if index == 5:
            self.trouble()
        return super().__getitem__(index)


def breaks():
    raise OSError(f"sample on a disk that is {'full'}")


class Awkward(Exception):
    """Cannot be made of its message alone."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def breaks_awkwardly():
    raise Awkward("this", "that")


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def exits():
    os._exit(3)


def sleeps():
    time.sleep(30)


def marks(folder, number):
    """A worker_init_fn."""
    (Path(folder) / str(number)).write_text(str(os.getpid()))


def fails_to_begin(number):
    raise RuntimeError(f"no licence for worker {number}")


def unsendable(samples):
    """A collate_fn whose batches cannot go through a pipe."""
    return lambda: samples
