"""Layers and networks, under PyTorch's names.  A layer is one class: parameters and `forward`.

Read module.py first.  A new layer goes into the file of its family, with one line in exports.py.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import exports as _exports
from tinygraph.base.lazy import lazy as _lazy

if TYPE_CHECKING:
    from tinygraph.distributed.sync_batch_norm import SyncBatchNorm as SyncBatchNorm
    from tinygraph.nn import functional as functional
    from tinygraph.nn import init as init
    from tinygraph.nn import vectors as vectors
    from tinygraph.nn.exports import *  # noqa: F403

    utils = vectors
else:
    _HOMES = {
        "functional": "tinygraph.nn.functional",
        "init": "tinygraph.nn.init",
        "utils": "tinygraph.nn.vectors:",
        "vectors": "tinygraph.nn.vectors",
        **_exports("tinygraph.nn.exports"),
        "SyncBatchNorm": "tinygraph.distributed.sync_batch_norm",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = _lazy(__name__, _HOMES, "nn")
