"""Recipes: known systems, ready to be trained by name.

A recipe is one file with a class (recipe.py says what it has to say) and one line here; a recipe of
your own is the path of its file in the place of a name.  Read perceptron.py first, and numba_cnn.py
for one with a Trainer.
"""

from __future__ import annotations

from tinygraph.base import ArgumentError, nearest
from tinygraph.recipes import (
    char_gpt,
    linear_regression,
    lstm_text,
    numba_cnn,
    perceptron,
    resnet_cifar,
    splice_mlp,
    srcnn,
    vgg224,
    vgg_cifar,
    xor_mlp,
)
from tinygraph.recipes.from_file import from_file
from tinygraph.recipes.images import ImageRecipe
from tinygraph.recipes.quick import QuickRecipe
from tinygraph.recipes.recipe import Recipe
from tinygraph.recipes.task import Data, Task
from tinygraph.recipes.text import TextRecipe

__plan__ = "program"  # see plan/declared.py

recipes: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        perceptron.recipe,
        linear_regression.recipe,
        xor_mlp.recipe,
        splice_mlp.recipe,
        numba_cnn.recipe,
        vgg_cifar.recipe,
        resnet_cifar.recipe,
        vgg224.recipe,
        srcnn.recipe,
        lstm_text.recipe,
        char_gpt.recipe,
    )
}


def find(word: str) -> Recipe:
    """The recipe that a user means: a name, or the path of a file that ends in .py."""
    return from_file(word) if word.endswith(".py") else get(word)


def get(name: str) -> Recipe:
    """The recipe of that name; ArgumentError with the nearest one otherwise.

    >>> get("numba_cnn").config().filters
    32
    """
    if name not in recipes:
        known = ", ".join(recipes)
        expected = f"one of {known}, or a file such as my_recipe.py"
        way_out = nearest(name, recipes) or "`tinygraph recipes` lists them"
        raise ArgumentError("recipes", "name", expected, repr(name), way_out)
    return recipes[name]


__all__ = [
    "Data",
    "ImageRecipe",
    "QuickRecipe",
    "Recipe",
    "Task",
    "TextRecipe",
    "char_gpt",
    "find",
    "get",
    "linear_regression",
    "lstm_text",
    "numba_cnn",
    "perceptron",
    "recipes",
    "resnet_cifar",
    "splice_mlp",
    "srcnn",
    "vgg224",
    "vgg_cifar",
    "xor_mlp",
]
