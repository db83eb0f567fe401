"""The networks of all recipes, at small settings, as onnxruntime computes them."""

import numpy as np
import pytest

import tinygraph as tg
from tests.onnx import runtimes
from tinygraph import recipes
from tinygraph.recipes.example import example_of

DIGITS = {"image_shape": [1, 8, 8]}
LETTERS = {"alphabet": "abcdefg"}
SMALL = {  # settings, and what a run remembers of its data
    "perceptron": ({}, {}),
    "linear_regression": ({"points": 4}, {}),
    "xor_mlp": ({}, {}),
    "splice_mlp": ({}, {}),
    "numba_cnn": ({"filters": 2}, DIGITS),
    "vgg_cifar": ({"widths": (3, 4, 5)}, DIGITS),
    "resnet_cifar": ({"widths": (4, 8), "blocks": 1}, DIGITS),
    "vgg224": ({"widths": (2, 2, 2, 2, 2)}, {}),
    "srcnn": ({"n1": 4, "n2": 3}, {}),
    "lstm_text": ({"hidden": 8, "width": 4, "context": 6}, LETTERS),
    "char_gpt": ({"layers": 1, "heads": 2, "width": 8, "context": 6}, LETTERS),
}


def small(name):
    """The network of a recipe, with an example of what it takes."""
    settings, facts = SMALL[name]
    recipe = recipes.get(name)
    config = recipe.settings(settings)
    tg.manual_seed(3)
    network = recipe.blank(config, facts)
    for p in network.parameters():  # those that begin at 0 are to be seen too
        p.value = tg.randn(*p.shape, dtype=p.dtype).numpy() * 0.3
    network.eval()
    (example,) = example_of(recipe, config, network, facts)
    return network, example


def drawn(name, example, samples):
    rng = np.random.default_rng(4)
    shape = (samples, *example.shape[1:])
    if example.dtype.kind == "i":
        return rng.integers(0, len(SMALL[name][1]["alphabet"]), shape)
    return rng.normal(size=shape).astype(example.dtype)


@pytest.mark.parametrize("name", recipes.recipes)
def test_the_network_of_a_recipe(name):
    network, example = small(name)
    proto = tg.onnx.to_proto(network, example[:1])
    for samples in (1, 3):
        x = drawn(name, example, samples)
        (y,) = runtimes.run(proto, x)
        runtimes.close(y, network(x).numpy())


@pytest.mark.parametrize("name", recipes.recipes)
def test_a_network_that_is_read_again_is_the_same(name, tmp_path):
    """Outputs have the same bits; gradients of all parameters, under a random one, are equal."""
    network, example = small(name)
    tg.onnx.save(network, tmp_path / "network.onnx", example[:1])
    again = tg.onnx.load(tmp_path / "network.onnx").eval()
    x = drawn(name, example, 3)
    found = []
    for module in (network, again):
        y = module(x)
        weights = np.random.default_rng(5).standard_normal(y.shape).astype(y.dtype)
        (y * weights).sum().backward()
        found.append({"y": y.numpy()} | {p: v.grad for p, v in module.named_parameters()})
    first, second = found
    assert first.keys() == second.keys() and len(first) > 1
    np.testing.assert_array_equal(second.pop("y"), first.pop("y"))
    for name, grad in first.items():  # attention is several operators in the file
        np.testing.assert_allclose(second[name], grad, rtol=1e-5, atol=1e-6, err_msg=name)


def test_all_recipes_are_there():
    assert SMALL.keys() == recipes.recipes.keys()
