"""Layers and networks, under PyTorch's names.  A layer is one class: parameters and `forward`.

Read module.py first.  A new layer goes into the file of its family, with one line in exports.py.
"""

from typing import TYPE_CHECKING

from tinygraph.base import lazy as _lazy

__plan__ = "settings"  # see plan/declared.py

if TYPE_CHECKING:
    from tinygraph.distributed.sync_batch_norm import SyncBatchNorm as SyncBatchNorm
    from tinygraph.nn import functional as functional
    from tinygraph.nn import init as init
    from tinygraph.nn import vectors as vectors
    from tinygraph.nn.exports import *  # noqa: F403

    utils = vectors
else:
    _HOMES = {
        **{name: f"tinygraph.nn.{name}" for name in ("functional", "init", "vectors")},
        "utils": "tinygraph.nn.vectors:",
        **_lazy.exports("tinygraph.nn.exports"),
        "SyncBatchNorm": "tinygraph.distributed.sync_batch_norm",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = _lazy.lazy(__name__, _HOMES, "nn")
