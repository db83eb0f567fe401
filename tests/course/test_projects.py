"""Exercise 16: its functions are those of the recipe."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.recipes import srcnn_colour, srcnn_network, srcnn_quality
from tinygraph.recipes.srcnn_samples import Crops, Pair
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

PROJECTS = find("projects")
SOLUTION = module(PROJECTS.solution + PROJECTS.harness)


# ---- the recipe of the framework --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_luma_and_psnr_are_those_of_the_recipe(seed):
    """Whose psnr takes levels, and rounds nothing itself."""
    draw = np.random.default_rng(seed)
    rgb, border = draw.random((3, 9, 11)), int(draw.integers(0, 3))
    y = srcnn_colour.luma(rgb)[0]
    np.testing.assert_allclose(SOLUTION.luma(rgb), y, rtol=1e-12)
    other = draw.random(y.shape)
    inner = slice(border, 9 - border), slice(border, 11 - border)
    expected = srcnn_quality.psnr(255 * other[inner], 255 * y[inner])
    assert SOLUTION.psnr(other, rgb, border) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("stride", [1, 3])
def test_crops_are_those_of_the_recipe(stride):
    low, high = np.random.default_rng(stride).random((2, 1, 15, 18)).astype(np.float32)
    inputs, targets = SOLUTION.crops(low[0], high[0], 9, stride, 2)
    whole = Crops("grid", 9, stride, 2).cut([Pair("made up", low, high)])[:]
    np.testing.assert_array_equal(inputs, whole[0])
    np.testing.assert_array_equal(targets, whole[1])


def test_the_network_is_that_of_the_recipe():
    ours, theirs = SOLUTION.SRCNN(4, 3), srcnn_network.model(4, 3)
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        mine.value[...] = its.value
    x = np.random.default_rng(0).standard_normal((2, 1, 14, 16)).astype(np.float32)
    with tg.no_grad():
        np.testing.assert_array_equal(ours(x).numpy(), theirs(x).numpy())
