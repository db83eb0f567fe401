"""Write data/NAME.safetensors: what PyTorch finds for each network, in float64.

    python -m tests.ports.make          with PyTorch installed

Parameters are PyTorch's initial ones, moved a little, so that none is 0 or 1 everywhere.
"""

from __future__ import annotations

import sys

import numpy as np
import safetensors.numpy
import torch

from tests.ports import HERE, NETWORKS, module_of, numbers, original


def found(name):
    """Parameters, loss and gradients of a network, by name."""
    torch.manual_seed(0)
    kind, settings, given = NETWORKS[name]
    module = module_of(original(name), name)
    model = getattr(module, kind)(**settings)
    with torch.no_grad():
        for seed, p in enumerate(model.parameters()):
            p += 0.05 * torch.from_numpy(numbers(*p.shape, seed=seed))
    arrays = {f"state/{key}": value.numpy().copy() for key, value in model.state_dict().items()}
    model.double()
    inputs = [torch.from_numpy(a) for a in given]
    inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    loss = module.training_loss(model, *inputs)
    loss.backward()
    arrays["loss"] = loss.detach().numpy()
    for key, p in model.named_parameters():
        arrays[f"gradient/{key}"] = p.grad.numpy().astype(np.float32)
    for key, buffer in model.named_buffers():
        arrays[f"after/{key}"] = buffer.numpy().astype(np.float32)
    return arrays


def main(names):
    for name in names or NETWORKS:
        path = HERE / "data" / f"{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        safetensors.numpy.save_file(found(name), path, {"torch": torch.__version__})
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
