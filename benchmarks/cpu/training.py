"""What a side offers to the process that runs it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.networks import Network, weights


class NotOffered(Exception):
    """This version of a library does not have what a side needs; the message says what."""


@dataclass(frozen=True)
class Training:
    """A network, its weights and its batch, ready to be trained.

    Attributes
    ----------
    step : function
        Takes one step: forward, backward and update.  Returns the loss, which a lazy library need
        not have computed yet.
    value : function
        The loss as a float; waits until all steps are done, the last update included.
    about : str
        Library, version, threads.
    """

    step: Callable[[], Any]
    value: Callable[[Any], float]
    about: str


def built(
    network: Network, library: Any, tensor: Callable[[Any], Any], device: str = "cpu"
) -> tuple[Any, Any]:
    """A module of a library with PyTorch's names, with the weights of all sides; its optimiser."""
    module = network.build(library)
    drawn = weights({name: tuple(p.shape) for name, p in module.named_parameters()})
    state = {name: tensor(array) for name, array in drawn.items()}
    module.load_state_dict({**module.state_dict(), **state})
    module.train()
    module.to(device)
    kind, settings = network.optimizer
    return module, getattr(library.optim, kind)(module.parameters(), **settings)


def versions(*packages: str) -> str:
    """Names and versions of what is installed of these.

    >>> versions("no-such-package")
    ''
    """
    found = []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
