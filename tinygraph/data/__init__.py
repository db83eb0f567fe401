"""Data: datasets in memory, and their batches as numpy arrays.

A dataset is one file with one function, and one line in registry.py.
"""

from tinygraph.data.dataset import ArrayDataset
from tinygraph.data.digits import digits
from tinygraph.data.idx import read_idx
from tinygraph.data.loader import DataLoader
from tinygraph.data.mnist import mnist
from tinygraph.data.registry import datasets, load

__all__ = ["ArrayDataset", "DataLoader", "datasets", "digits", "load", "mnist", "read_idx"]
