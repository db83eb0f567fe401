"""An example of what the network of a recipe is given: the input of the graph that is drawn."""

from __future__ import annotations

from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.engine import Runner, Tensor
from tinygraph.recipes.recipe import Recipe


class _FirstCall(Runner):
    """Sees what a module is called with, the first time."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.inputs: tuple[Any, ...] = ()

    def call(self, module: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if module is self.module and not self.inputs:
            self.inputs = inputs
        return self.below.call(module, inputs, options)


def example_of(
    recipe: Recipe, config: Any, network: Any, facts: dict[str, Any]
) -> tuple[Tensor, ...]:
    """The inputs of a network, as its recipe draws it: their names, sizes and dtypes.

    Raises
    ------
    ArgumentError
        The recipe's graph does not call its network.
    DatasetError
        It looks at data that are not at hand.
    """
    with _FirstCall(network) as seen:
        recipe.graph(config, network, facts)
    if not seen.inputs or not all(isinstance(x, Tensor) for x in seen.inputs):
        expected = "a graph that calls the network with Tensors"
        raise ArgumentError(recipe.name, "graph", expected, f"{len(seen.inputs)} inputs")
    return seen.inputs
