"""What SRCNN learns from and is measured on: pairs of luma, and crops of them.

    low     a picture's luma, shrunk by the scale and enlarged again: (1, H, W), bicubic
    high    its luma: (1, H, W), H and W multiples of the scale
    crops   windows of `low`, and the middle of the same windows of `high`

The crops are made ahead and kept in a cache on disk.

Source: Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", TPAMI 2016,
section 4: 33-pixel crops of T91 at stride 14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, DatasetError, install
from tinygraph.data import ArrayDataset, Draws, ImageFolder, cached, degrade, super_resolution
from tinygraph.data.dataset import SHUFFLE_STREAM, BatchedDataset, permutation
from tinygraph.engine import Array
from tinygraph.recipes.srcnn_colour import luma

FORMAT = 1  # of the cached crops; counts up where the same settings give other numbers

Picture = tuple[str, Array]  # a name and (3, H, W), float32 from 0 to 1


class Pair(NamedTuple):
    """A picture with and without its details."""

    name: str
    low: Array  # (1, H, W)
    high: Array  # (1, H, W)


class Collections(NamedTuple):
    """Which pictures are for what."""

    training: list[Picture]
    validation: list[Picture]
    test: list[Picture]
    notes: str
    digest: str  # of the pictures to train on


def pairs(pictures: Iterable[Picture], scale: int) -> list[Pair]:
    """The luma of each picture, with and without its details.

    >>> grey = np.full((3, 7, 8), 0.5, np.float32)
    >>> pair = pairs([("grey", grey)], 3)[0]
    >>> pair.low.shape, bool(np.allclose(pair.low, pair.high))
    ((1, 6, 6), True)
    """
    lower = degrade(scale)
    nothing = Draws(0, 0, 0)  # degrading draws no random numbers
    return [Pair(name, *lower(luma(rgb), None, nothing)) for name, rgb in pictures]


# ---- pictures -----------------------------------------------------------------------------------


def t91(data_dir: AnyPath | None) -> Collections:
    """T91 to train on, Set5 for validation as in the paper, Set14 for the test."""
    training, validation, test = (
        super_resolution(name, data_dir) for name in ("T91", "Set5", "Set14")
    )
    whole = hashlib.sha256(b"".join(path.read_bytes() for path in training.paths)).hexdigest()
    return Collections(_named(training), _named(validation), _named(test), "", whole)


def _named(pictures: ImageFolder) -> list[Picture]:
    return [(path.stem, pictures[i][0]) for i, path in enumerate(pictures.paths)]


def at_hand() -> Collections:
    """The photographs of scikit-image, or the two of scikit-learn."""
    try:
        library: Any = import_module("skimage")
    except ImportError:
        return _of_scikit_learn()
    names = ("coffee", "cat", "rocket", "astronaut", "camera")  # files of the library itself
    pictures = [(name, _rgb(getattr(library.data, name)())) for name in names]
    note = f"photographs of scikit-image {library.__version__}"
    return Collections(pictures[:3], pictures[3:4], pictures[4:], note, note)


def _of_scikit_learn() -> Collections:
    """One photograph to train on; of the other the left half for validation, and the right half."""
    try:
        import sklearn
        from sklearn.datasets import load_sample_image
    except ImportError:
        expected = "scikit-image or scikit-learn, which have some"
        way_out = f"{install('data')}, or name a folder with T91, Set5 and Set14"
        raise DatasetError("srcnn", "pictures", expected, "neither", way_out) from None
    china, flower = (_rgb(load_sample_image(f"{name}.jpg")) for name in ("china", "flower"))
    half = flower.shape[2] // 2
    note = f"photographs of scikit-learn {sklearn.__version__}"
    left, right = ("flower, left", flower[:, :, :half]), ("flower, right", flower[:, :, half:])
    return Collections([("china", china)], [left], [right], note, note)


def _rgb(pixels: Any) -> Array:
    """Bytes (H, W, 3) or (H, W) as floats (3, H, W)."""
    array = np.asarray(pixels)
    colour = np.repeat(array[..., None], 3, axis=2) if array.ndim == 2 else array
    return np.divide(np.moveaxis(colour, -1, 0), 255, dtype=np.float32)


# ---- crops --------------------------------------------------------------------------------------


class Crops(NamedTuple):
    """How crops are cut."""

    places: str = "grid"  # or "random": as many as on the grid, anywhere
    size: int = 33
    stride: int = 14
    margin: int = 6  # by how much the target is smaller at each edge
    seed: int = 0  # of random places

    def cut(self, training: list[Pair]) -> ArrayDataset:
        """All crops: inputs (N, 1, size, size), targets (N, 1, size - 2 margin, ...), float32.

        Raises
        ------
        ArgumentError
            No picture is as large as a crop.
        """
        inputs, targets = [], []
        m, inner = self.margin, self.size - 2 * self.margin
        for number, (_, low, high) in enumerate(training):
            for top, left in self._places(number, *low.shape[1:]):
                inputs.append(low[:, top : top + self.size, left : left + self.size])
                top, left = top + m, left + m
                targets.append(high[:, top : top + inner, left : left + inner])
        if not inputs:
            expected, way_out = "at most the size of the pictures", "smaller crops"
            raise ArgumentError("srcnn", "crop", expected, self.size, way_out)
        return ArrayDataset(np.stack(inputs), np.stack(targets), "crops")

    def _places(self, number: int, height: int, width: int) -> Iterator[tuple[int, int]]:
        """Top and left of each crop of a picture."""
        rows, columns = (range(0, n - self.size + 1, self.stride) for n in (height, width))
        if self.places == "grid":
            yield from ((top, left) for top in rows for left in columns)
            return
        draws = Draws(self.seed, 0, number)
        for _ in range(len(rows) * len(columns)):
            yield (draws.integer(height - self.size + 1), draws.integer(width - self.size + 1))


def prepared(
    collections: Collections, scale: int, crops: Crops, cache_dir: AnyPath
) -> ArrayDataset:
    """The crops, made ahead: from the cache, or cut now and kept there."""
    how = crops._asdict()
    if crops.places == "grid":
        del how["seed"]  # nothing is drawn
    settings = {"format": FORMAT, "pictures": collections.digest, "scale": scale, "crops": how}
    pictures = hashlib.sha256(collections.digest.encode()).hexdigest()[:8]
    name = f"srcnn-{pictures}-x{scale}-{crops.places}-{crops.size}"
    return cached(lambda: crops.cut(pairs(collections.training, scale)), name, cache_dir, settings)


class Portions(BatchedDataset):
    """Epochs of a given size, pass after pass over all samples, each pass in an order of its own.

    An epoch is what lies between two looks at the validation pictures; a pass over all crops would
    take too long for that.

    An epoch has `size` samples; the seed and the number of a pass fix its order.  A DataLoader,
    which is not to shuffle, asks for each epoch itself.

    Examples
    --------
    >>> data = ArrayDataset(np.arange(5), np.arange(5))
    >>> two = [Portions(data, 3, seed=0, epoch=e)[:][0].tolist() for e in range(4)]
    >>> sorted(two[0] + two[1][:2]), sorted(two[1][2:] + two[2] + two[3][:1])
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """

    def __init__(self, dataset: ArrayDataset, size: int, seed: int = 0, epoch: int = 0) -> None:
        self.dataset, self.size, self.seed, self.epoch = dataset, size, seed, epoch
        self._orders: dict[int, Array] = {}

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        """(inputs, targets) at an int, a slice or an array of ints."""
        places = self.epoch * self.size + np.arange(self.size)[index]
        passes, within = np.divmod(places, len(self.dataset))
        chosen = np.empty_like(within)
        for number in np.unique(passes).tolist():
            now = passes == number
            chosen[now] = self._order(number)[within[now]]
        return self.dataset[chosen]

    def _order(self, number: int) -> Array:
        if number not in self._orders:
            self._orders[number] = permutation(len(self.dataset), self.seed, SHUFFLE_STREAM, number)
        return self._orders[number]

    def for_epoch(self, epoch: int) -> Portions:
        """The same samples as they come in another epoch."""
        return Portions(self.dataset, self.size, self.seed, epoch)
