"""Transforms: pure functions of (seed, epoch, sample), compared with numpy and Pillow."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.real_files import set5_folder
from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.data import (
    ArrayDataset,
    Compose,
    DataLoader,
    Draws,
    TransformedDataset,
    compose,
    degrade,
    horizontal_flip,
    image_folder,
    random_crop,
)
from tinygraph.data.dataset import TRANSFORM_STREAM

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")

SEEDS = st.integers(0, 2**64 - 1)
EPOCHS = st.integers(0, 2**64 - 1)


class Scripted:
    """Draws that were chosen by hand, and the counts that were asked for."""

    def __init__(self, *values):
        self.values, self.counts = list(values), []

    def integer(self, count):
        self.counts.append(count)
        return self.values.pop(0)

    def uniform(self):
        return self.values.pop(0)


def images(count=8, height=9, width=11, channels=2):
    """Images whose every pixel is another number."""
    size = count * channels * height * width
    pixels = np.arange(size, dtype=np.float32).reshape(count, channels, height, width)
    return ArrayDataset(pixels, np.arange(count))


# ---- the numbers --------------------------------------------------------------------------------


@given(seed=SEEDS, epoch=EPOCHS, sample=st.integers(0, 2**40))
def test_draws_are_philox_at_a_place_of_their_own(seed, epoch, sample):
    """Key (seed, stream); counter (block, sample, epoch, 0), each a word of 64 bits."""
    key = (TRANSFORM_STREAM << 64) | seed
    counter = ((epoch << 128) + (sample << 64) - 1) % 2**256  # numpy counts before it generates
    words = np.random.Philox(key=key, counter=counter).random_raw(9)
    draws = Draws(seed, epoch, sample)
    assert [draws.word() for _ in words] == words.tolist()


def test_integers_and_uniform_numbers_from_words(monkeypatch):
    words = iter([0, 2**64 - 1, 2**63, 2**64 - 1, 2**63])
    draws = Draws(0, 0, 0)
    monkeypatch.setattr(draws, "word", lambda: next(words))
    assert [draws.integer(10) for _ in range(3)] == [0, 9, 5]
    assert [draws.uniform() for _ in range(2)] == [1 - 2**-53, 0.5]


def test_crops_are_uniform():
    """Chi-squared over 4 x 4 places, 3,200 samples and epochs: 15 degrees, 99.9% quantile 37.7."""
    data = TransformedDataset(images(8, 4, 4, 1), random_crop(1), seed=1)
    places = [data.for_epoch(e)[:][0].ravel() % 16 for e in range(400)]
    counts = np.bincount(np.concatenate(places).astype(int), minlength=16)
    assert ((counts - 200) ** 2 / 200).sum() < 37.7


# ---- the same sample, whatever the order ---------------------------------------------------------


@given(
    seed=SEEDS,
    epoch=EPOCHS,
    order=st.permutations(range(8)),
    batch=st.integers(1, 8),
    depth=st.integers(0, 3),
)
def test_a_sample_does_not_depend_on_its_batch_or_thread(seed, epoch, order, batch, depth):
    transform = compose(random_crop(3, padding=1), horizontal_flip())
    data = TransformedDataset(images(), transform, seed, epoch)
    alone = [data[i][0] for i in order]
    np.testing.assert_array_equal(data[list(order)][0], alone)
    np.testing.assert_array_equal(data[-1][0], data[7][0])
    loader = DataLoader(data, batch, True, seed=seed, prefetch=depth)
    loader.epoch = epoch
    for inputs, labels in loader:
        for image, label in zip(inputs, labels, strict=True):
            np.testing.assert_array_equal(image, data[label][0])


def test_epochs_samples_and_seeds_differ():
    def places(seed, epoch):
        data = TransformedDataset(images(50, 100, 100, 1), random_crop(1), seed, epoch)
        return (data[:][0].ravel() % 10_000).tolist()

    base = places(0, 0)
    assert len(set(base)) > 45
    for other in (places(0, 1), places(1, 0)):
        assert sum(a == b for a, b in zip(base, other, strict=True)) <= 1


def test_a_loader_moves_on_to_the_next_epoch():
    data = TransformedDataset(images(), random_crop(2), seed=3)
    loader = DataLoader(data, 8)
    for epoch in range(3):
        [(inputs, _)] = loader
        np.testing.assert_array_equal(inputs, data.for_epoch(epoch)[:][0])
    assert data.epoch == 0, "a dataset is not changed by who reads it"


def test_a_dataset_inside_learns_the_epoch_too():
    inner = TransformedDataset(images(), random_crop(5), seed=1)
    outer = TransformedDataset(inner, horizontal_flip(0.0), seed=2)
    np.testing.assert_array_equal(outer.for_epoch(4)[:][0], inner.for_epoch(4)[:][0])


# ---- what each transform does -------------------------------------------------------------------


def test_crop_cuts_where_the_draws_say():
    image = np.arange(2 * 5 * 7).reshape(2, 5, 7)
    draws = Scripted(1, 3)
    inputs, target = random_crop((2, 4))(image, 5, draws)
    np.testing.assert_array_equal(inputs, image[:, 1:3, 3:7])
    assert (target, draws.counts) == (5, [4, 4])


def test_crop_pads_with_zeros():
    image = np.arange(1, 5).reshape(1, 2, 2)
    draws = Scripted(0, 2)
    inputs, _ = random_crop(2, padding=1)(image, 0, draws)
    assert inputs.tolist() == [[[0, 0], [2, 0]]]
    assert draws.counts == [3, 3]


@pytest.mark.parametrize("shape", [(2, 5, 7), (3, 2, 5, 7)])
def test_a_sample_and_a_batch_are_cut_and_mirrored_along_the_same_axes(shape):
    """(C, H, W) and (N, C, H, W); only width and height are touched."""
    images = np.arange(np.prod(shape)).reshape(shape)
    mirrored, _ = horizontal_flip(1.0)(images, 0, Scripted(0.5))
    np.testing.assert_array_equal(mirrored, np.flip(images, axis=len(shape) - 1))
    window, _ = random_crop((2, 4))(images, 0, Scripted(1, 3))
    np.testing.assert_array_equal(window, images[..., 1:3, 3:7])


def test_compose_for_a_dataset_of_ones_own():
    both = Compose([lambda image: image + 1, lambda image: image[:, ::-1]])
    np.testing.assert_array_equal(both(np.array([[1, 2]])), [[3, 2]])
    assert Compose([])(5) == 5 and repr(Compose([abs])) == "Compose([<built-in function abs>])"
    for wrong in (horizontal_flip(), 3):
        with pytest.raises(ArgumentError, match=r"transforms\[1\].*TransformedDataset"):
            Compose([abs, wrong])


def test_transforms_can_be_sent_to_another_process():
    transform = compose(random_crop(3, padding=1), horizontal_flip(), degrade(2))
    again = pickle.loads(pickle.dumps(transform))
    assert repr(again) == repr(transform)
    image = np.arange(36.0).reshape(1, 6, 6)
    for part, other in zip(
        transform(image, 0, Draws(1, 2, 3)), again(image, 0, Draws(1, 2, 3)), strict=True
    ):
        np.testing.assert_array_equal(part, other)


def test_a_target_that_is_an_image_follows():
    image, mask = np.arange(48).reshape(2, 4, 6), np.arange(24).reshape(4, 6)
    inputs, target = random_crop(3)(image, mask, Scripted(1, 2))
    np.testing.assert_array_equal(target, mask[1:4, 2:5])
    inputs, target = horizontal_flip(0.5)(image, mask, Scripted(0.25))
    np.testing.assert_array_equal(inputs, image[:, :, ::-1])
    np.testing.assert_array_equal(target, mask[:, ::-1])
    inputs, target = horizontal_flip(0.5)(image, mask, Scripted(0.5))
    np.testing.assert_array_equal(inputs, image)
    for transform in (random_crop(3), horizontal_flip(1.0)):
        with pytest.raises(ShapeError, match="target: expected 4 by 6 pixels"):
            transform(image, mask[:3], Draws(0, 0, 0))


def test_the_source_is_not_changed_and_batches_are_copies():
    data = images()
    before = data.inputs.copy()
    inputs, _ = TransformedDataset(data, horizontal_flip(), seed=0)[:]
    inputs[...] = -1
    np.testing.assert_array_equal(data.inputs, before)


def pillow_degraded(plane, scale):
    """Two calls of Pillow on one plane."""
    height, width = plane.shape
    image = Image.fromarray(plane.astype(np.float32))
    small = image.resize((width // scale, height // scale), Image.Resampling.BICUBIC)
    return np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))


@pytest.mark.parametrize("scale", [2, 3, 4])
@pytest.mark.parametrize("shape", [(12, 24), (13, 26), (1, 14, 25), (3, 15, 27)])
def test_degrade_is_pillow(scale, shape):
    image = np.random.default_rng(0).random(shape)
    low, high = degrade(scale)(image, 9, Draws(0, 0, 0))
    height, width = (n // scale * scale for n in shape[-2:])
    cut = image[..., :height, :width]
    np.testing.assert_array_equal(high, cut.astype(np.float32))
    expected = [pillow_degraded(plane, scale) for plane in cut.reshape(-1, height, width)]
    np.testing.assert_array_equal(low, np.reshape(expected, cut.shape))
    assert low.dtype == high.dtype == np.float32


def test_degrade_keeps_constants_and_loses_details():
    flat = np.full((1, 12, 12), 0.7)
    np.testing.assert_allclose(degrade(3)(flat, 0, None)[0], flat, rtol=1e-6)
    board = np.indices((12, 12)).sum(0)[None] % 2
    np.testing.assert_allclose(degrade(2)(board, 0, None)[0], 0.5, atol=0.1)


def test_pairs_of_crops():
    """Degraded as a whole and cut afterwards: the crop of the degraded image, and of the image."""
    data = images(2, 13, 14, 1)
    pair = compose(degrade(2), random_crop((5, 4)))
    low, high = TransformedDataset(data, pair, seed=2, epoch=3)[1]
    draws = Draws(2, 3, 1)
    top, left = draws.integer(12 - 5 + 1), draws.integer(14 - 4 + 1)
    whole = data.inputs[1, 0, :12, :14]
    window = slice(top, top + 5), slice(left, left + 4)
    np.testing.assert_array_equal(high[0], whole[window])
    np.testing.assert_array_equal(low[0], pillow_degraded(whole, 2)[window])


def test_composition_draws_one_after_the_other():
    """What comes first draws the same numbers alone and in company."""
    data = images()
    alone = TransformedDataset(data, random_crop(4), seed=5)
    longer = TransformedDataset(data, compose(random_crop(4), horizontal_flip(1.0)), seed=5)
    np.testing.assert_array_equal(longer[:][0][..., ::-1], alone[:][0])
    np.testing.assert_array_equal(TransformedDataset(data, compose())[:][0], data.inputs)


def test_a_transform_of_ones_own():
    def brighter(inputs, target, draws):
        return inputs + draws.integer(1) + 10, target

    data = TransformedDataset(images(), compose(brighter, random_crop(9)), seed=0)
    assert (data[0][0] >= 10).all()


# ---- bad input ----------------------------------------------------------------------------------


def test_images_that_are_too_small():
    with pytest.raises(ShapeError, match="at least 10 by 3 pixels, got 9 by 11"):
        TransformedDataset(images(), random_crop((10, 3)))[0]
    with pytest.raises(ShapeError, match="at least 12 by 12 pixels, got 9 by 11"):
        TransformedDataset(images(), degrade(12))[0]
    for transform in (random_crop(1), horizontal_flip(), degrade(2)):
        with pytest.raises(ShapeError, match="images"):
            TransformedDataset(ArrayDataset([1.0, 2.0], [0, 1]), transform)[0]


def test_samples_of_several_shapes(tmp_path):
    for i, size in enumerate([(8, 8), (9, 8)]):
        Image.new("RGB", size).save(tmp_path / f"{i}.png")
    folder = image_folder(tmp_path)
    with pytest.raises(ShapeError, match="one shape in a batch.*add random_crop"):
        TransformedDataset(folder, horizontal_flip())[:]
    assert TransformedDataset(folder, random_crop(6))[:][0].shape == (2, 3, 6, 6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: random_crop(0),
        lambda: random_crop((2, 3, 4)),
        lambda: random_crop(3, -1),
        lambda: random_crop(3, 0.5),
        lambda: horizontal_flip(1.5),
        lambda: horizontal_flip(float("nan")),
        lambda: degrade(1),
        lambda: degrade(2.0),
        lambda: degrade(True),
        lambda: TransformedDataset(images(), compose(), seed=-1),
        lambda: TransformedDataset(images(), compose(), epoch=-1),
    ],
)
def test_bad_arguments(make):
    with pytest.raises(ArgumentError):
        make()


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(DatasetError, match=r"pip install -e '\.\[data\]'"):
        degrade(2)


# ---- real images --------------------------------------------------------------------------------


def test_degraded_set5_is_as_far_from_the_images_as_published():
    """Bicubic on Set5, x3: 30.39 dB in the literature, with MATLAB's resizing; luma, 3 pixels cut.

    Pillow shrinks the images here, hence the tolerance.
    """
    folder = set5_folder() / "x3"
    psnr = []
    for path in sorted(folder.glob("*_HR.png")):
        rgb = np.asarray(Image.open(path).convert("RGB"), np.float64)
        luma = 16 + rgb @ np.array([65.481, 128.553, 24.966]) / 255
        low, high = degrade(3)(luma, 0, None)
        error = (np.round(low) - np.round(high))[3:-3, 3:-3]
        psnr.append(10 * np.log10(255**2 / np.mean(error.astype(np.float64) ** 2)))
    assert len(psnr) == 5
    assert np.mean(psnr) == pytest.approx(30.39, abs=0.1)


@pytest.mark.parametrize("make", [horizontal_flip, lambda: random_crop(2)])
def test_a_transform_of_a_sample_alone_says_what_gives_it_numbers(make):
    way_out = r"draws: expected .* got no Draws. Way out: tg.data.TransformedDataset\(dataset"
    with pytest.raises(ArgumentError, match=way_out):
        make()(np.zeros((1, 4, 4)))
