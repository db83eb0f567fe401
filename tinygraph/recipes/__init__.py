"""Recipes: known systems, ready to be trained by name.

A recipe is one module that ends in a `Recipe`, and one line here.  Read perceptron.py first, and
numba_cnn.py for one with a Trainer.
"""

from __future__ import annotations

from tinygraph.errors import ArgumentError, nearest
from tinygraph.recipes import (
    linear_regression,
    numba_cnn,
    perceptron,
    splice_mlp,
    srcnn,
    vgg224,
    vgg_cifar,
    xor_mlp,
)
from tinygraph.recipes.recipe import Recipe

recipes: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        perceptron.recipe,
        linear_regression.recipe,
        xor_mlp.recipe,
        splice_mlp.recipe,
        numba_cnn.recipe,
        vgg_cifar.recipe,
        vgg224.recipe,
        srcnn.recipe,
    )
}


def get(name: str) -> Recipe:
    """The recipe of that name; ArgumentError with the nearest name otherwise.

    >>> get("numba_cnn").config().filters
    32
    """
    if name not in recipes:
        known = ", ".join(recipes)
        raise ArgumentError(
            "recipes",
            "name",
            f"one of {known}",
            repr(name),
            nearest(name, recipes) or "`tinygraph recipes` lists them",
        )
    return recipes[name]


__all__ = [
    "Recipe",
    "get",
    "linear_regression",
    "numba_cnn",
    "perceptron",
    "recipes",
    "splice_mlp",
    "srcnn",
    "vgg224",
    "vgg_cifar",
    "xor_mlp",
]
