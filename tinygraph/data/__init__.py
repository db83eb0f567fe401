"""Data: datasets, in memory or on disk, and their batches as numpy arrays.

A dataset is one file with one function, and one line in registry.py.
"""

from tinygraph.data.cache import CacheWarning, cached
from tinygraph.data.cifar10 import cifar10
from tinygraph.data.dataset import ArrayDataset
from tinygraph.data.digits import digits
from tinygraph.data.idx import read_idx
from tinygraph.data.image_folder import ImageFolder, image_folder
from tinygraph.data.loader import DataLoader
from tinygraph.data.mnist import mnist
from tinygraph.data.registry import datasets, load
from tinygraph.data.splice import splice
from tinygraph.data.super_resolution import super_resolution
from tinygraph.data.transforms import (
    Draws,
    Transform,
    TransformedDataset,
    compose,
    degrade,
    horizontal_flip,
    random_crop,
)

__all__ = [
    "ArrayDataset",
    "DataLoader",
    "ImageFolder",
    "TransformedDataset",
    "cifar10",
    "datasets",
    "digits",
    "image_folder",
    "load",
    "mnist",
    "read_idx",
    "splice",
    "super_resolution",
    "Draws",
    "Transform",
    "compose",
    "degrade",
    "horizontal_flip",
    "random_crop",
    "CacheWarning",
    "cached",
]
