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


@pytest.mark.parametrize("name", recipes.recipes)
def test_the_network_of_a_recipe(name):
    settings, facts = SMALL[name]
    recipe = recipes.get(name)
    config = recipe.settings(settings)
    tg.manual_seed(3)
    network = recipe.blank(config, facts)
    for p in network.parameters():  # those that begin at 0 are to be seen too
        p.value = tg.randn(*p.shape, dtype=p.dtype).numpy() * 0.3
    network.eval()
    (example,) = example_of(recipe, config, network, facts)
    proto = tg.onnx.to_proto(network, example[:1])
    rng = np.random.default_rng(4)
    for samples in (1, 3):
        x = rng.normal(size=(samples, *example.shape[1:])).astype(example.dtype)
        if example.dtype.kind == "i":
            x = rng.integers(0, len(facts["alphabet"]), x.shape)
        (y,) = runtimes.run(proto, x)
        runtimes.close(y, network(x).numpy())


def test_all_recipes_are_there():
    assert SMALL.keys() == recipes.recipes.keys()
