"""Writes torch_cnn.npz: a small network's state, logits, gradients and running statistics.

python make_torch_cnn.py        with PyTorch, which the tests themselves do not need

state.NAME      its state_dict after three steps; `middle` and `again` share a weight
x, labels       a batch
eval_logits     of that batch in evaluation mode
train_logits    in training mode, after which
after.NAME      are the running statistics, and
grad.NAME       the gradients of the mean cross-entropy
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, stride=2),
            nn.LeakyReLU(0.1),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.norm = nn.BatchNorm1d(24, momentum=0.3)
        self.middle = nn.Linear(24, 24)
        self.again = nn.Linear(24, 24)
        self.again.weight = self.middle.weight
        self.layer_norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.features(x))
        h = nn.functional.elu(self.middle(h))
        h = nn.functional.gelu(self.again(h))
        return self.head(self.layer_norm(h))


def arrays() -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    net = Net()
    loss_of = nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        sgd.zero_grad()
        loss_of(net(torch.randn(20, 1, 20, 20)), torch.randint(0, 5, (20,))).backward()
        sgd.step()
    sgd.zero_grad()
    found = {f"state.{name}": value.clone() for name, value in net.state_dict().items()}
    found["x"], found["labels"] = torch.randn(20, 1, 20, 20), torch.randint(0, 5, (20,))
    found["eval_logits"] = net.eval()(found["x"]).detach()
    found["train_logits"] = net.train()(found["x"])
    loss_of(found["train_logits"], found["labels"]).backward()
    found["train_logits"] = found["train_logits"].detach()
    found |= {f"after.{name}": value for name, value in net.named_buffers()}
    found |= {f"grad.{name}": value.grad for name, value in net.named_parameters()}
    return {name: value.numpy() for name, value in found.items()}


if __name__ == "__main__":
    path = Path(__file__).with_name("torch_cnn.npz")
    np.savez_compressed(path, torch=np.array(torch.__version__), **arrays())
