"""Data: datasets, in memory or on disk, in which order they are visited, and their batches.

    Dataset, ArrayDataset, TensorDataset     samples           Subset, ConcatDataset, random_split
    RandomSampler, BatchSampler, ...         their order       DataLoader     their batches

A dataset that is downloaded is one file with one function, and one line in registry.py.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy as _lazy
from tinygraph.data.cache import CacheWarning as CacheWarning
from tinygraph.data.cache import cached as cached
from tinygraph.data.cifar10 import cifar10 as cifar10
from tinygraph.data.collate import default_collate as default_collate
from tinygraph.data.combine import ConcatDataset as ConcatDataset
from tinygraph.data.combine import Subset as Subset
from tinygraph.data.combine import random_split as random_split
from tinygraph.data.dataset import ArrayDataset as ArrayDataset
from tinygraph.data.dataset import BatchedDataset as BatchedDataset
from tinygraph.data.dataset import Dataset as Dataset
from tinygraph.data.dataset import TensorDataset as TensorDataset
from tinygraph.data.digits import digits as digits
from tinygraph.data.draws import Draws as Draws
from tinygraph.data.idx import read_idx as read_idx
from tinygraph.data.image_folder import ImageFolder as ImageFolder
from tinygraph.data.image_folder import image_folder as image_folder
from tinygraph.data.loader import DataLoader as DataLoader
from tinygraph.data.mnist import mnist as mnist
from tinygraph.data.npy import NpyDataset as NpyDataset
from tinygraph.data.registry import datasets as datasets
from tinygraph.data.registry import load as load
from tinygraph.data.samplers import BatchSampler as BatchSampler
from tinygraph.data.samplers import RandomSampler as RandomSampler
from tinygraph.data.samplers import Sampler as Sampler
from tinygraph.data.samplers import SequentialSampler as SequentialSampler
from tinygraph.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from tinygraph.data.samplers import WeightedRandomSampler as WeightedRandomSampler
from tinygraph.data.splice import splice as splice
from tinygraph.data.super_resolution import super_resolution as super_resolution
from tinygraph.data.text import TextWindows as TextWindows
from tinygraph.data.text import read_text as read_text
from tinygraph.data.transformed import TransformedDataset as TransformedDataset
from tinygraph.data.transforms import Compose as Compose
from tinygraph.data.transforms import Transform as Transform
from tinygraph.data.transforms import compose as compose
from tinygraph.data.transforms import degrade as degrade
from tinygraph.data.transforms import horizontal_flip as horizontal_flip
from tinygraph.data.transforms import random_crop as random_crop

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy(__name__, {}, "utils.data")
