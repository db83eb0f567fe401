"""Writes torch_optimizers.json: six steps of PyTorch's optimisers on given gradients, in float64.

python make_torch_optimizers.py       with PyTorch, which the tests themselves do not need
"""

import json
from pathlib import Path

import torch

START = [1.0, -2.0, 0.5, 3.0]
GRADS = [
    [0.5, -1.0, 0.0, 100.0],
    [0.25, -1.5, 0.0, -50.0],
    [-0.75, 0.125, 1e-3, 25.0],
    [0.5, 2.0, -1e-3, 0.0],
    [1.5, -0.5, 1e-9, 1.0],
    [0.0, 0.0, 0.0, 0.0],
]
CASES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-3, "weight_decay": 0.1}),
    ("Adagrad", {}),
    (
        "Adagrad",
        {
            "lr": 0.1,
            "lr_decay": 0.5,
            "weight_decay": 0.1,
            "initial_accumulator_value": 0.25,
            "eps": 1e-3,
        },
    ),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": [0.5, 0.75], "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "betas": [0.5, 0.75], "amsgrad": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "betas": [0.5, 0.75], "weight_decay": 0.5, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.5, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.9}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.75, "eps": 1e-2, "centered": True}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.75, "eps": 1e-2, "centered": True, "momentum": 0.5}),
]


def values(name: str, settings: dict) -> list[list[float]]:
    """What the weights are after each step."""
    w = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w], **settings)
    seen = []
    for grad in GRADS:
        w.grad = torch.tensor(grad, dtype=torch.float64)
        optimizer.step()
        seen.append(w.tolist())
    return seen


def clipped(max_norm: float, norm_type: float) -> dict:
    """Gradients in two tensors after clip_grad_norm_, and the norm that it returned."""
    tensors = [torch.zeros(4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    for w, grad in zip(tensors, GRADS[1:3], strict=True):
        w.grad = torch.tensor(grad, dtype=torch.float64)
    norm = torch.nn.utils.clip_grad_norm_(tensors, max_norm, norm_type)
    return {
        "max_norm": max_norm,
        "norm_type": str(norm_type),
        "norm": norm.item(),
        "grads": [w.grad.tolist() for w in tensors],
    }


def rates(name: str, settings: dict, epochs: int) -> list[float]:
    """The learning rates of a schedule, that before the first step included."""
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
    schedule = getattr(torch.optim.lr_scheduler, name)(sgd, **settings)
    seen = [sgd.param_groups[0]["lr"]]
    for _ in range(epochs):
        sgd.step()
        schedule.step()
        seen.append(sgd.param_groups[0]["lr"])
    return seen


def one_cycle(settings: dict) -> dict:
    """Learning rates and momenta of OneCycleLR, before the first step too."""
    seen = []
    for kind, key in ((torch.optim.SGD, "momentum"), (torch.optim.Adam, "betas")):
        more = {"momentum": 0.9} if key == "momentum" else {}
        optimizer = kind([torch.zeros(1, requires_grad=True)], lr=0.8, **more)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2.0, **settings)
        (group,) = optimizer.param_groups
        rows = [[group["lr"], group[key]]]
        for _ in range(12):
            optimizer.step()
            schedule.step()
            rows.append([group["lr"], group[key]])
        seen.append(rows)
    return {"settings": settings, "momentum": seen[0], "betas": seen[1]}


def sequential() -> list[float]:
    """A warm-up, a constant rate, and a decay."""
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
    kinds = torch.optim.lr_scheduler
    warm = kinds.LinearLR(sgd, start_factor=0.1, total_iters=3)
    same = kinds.ConstantLR(sgd, factor=1.0, total_iters=1)
    fall = kinds.ExponentialLR(sgd, gamma=0.5)
    schedule = kinds.SequentialLR(sgd, [warm, same, fall], milestones=[3, 5])
    seen = [sgd.param_groups[0]["lr"]]
    for _ in range(12):
        sgd.step()
        schedule.step()
        seen.append(sgd.param_groups[0]["lr"])
    return seen


PLATEAU = [5.0, 4.0, 4.0, 3.9999, 4.1, 4.0, 3.0, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5]
PLATEAU_CASES = [
    {"patience": 2},
    {"patience": 1, "factor": 0.5, "cooldown": 2, "threshold": 0.2},
    {"patience": 0, "factor": 0.5, "min_lr": 0.15},
    {"patience": 1, "mode": "max", "threshold": 0.5, "threshold_mode": "abs"},
    {"patience": 0, "mode": "max"},
]


def plateau_rates(settings: dict) -> list[float]:
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, **settings)
    seen = []
    for metric in PLATEAU:
        schedule.step(metric)
        seen.append(sgd.param_groups[0]["lr"])
    return seen


if __name__ == "__main__":
    numbers = {
        "torch": torch.__version__,
        "start": START,
        "grads": GRADS,
        "cases": [{"optimizer": n, "settings": s, "values": values(n, s)} for n, s in CASES],
        "clipped": [
            clipped(10.0, 2.0),
            clipped(1000.0, 2.0),
            clipped(10.0, 1.0),
            clipped(10.0, float("inf")),
            clipped(10.0, 3.0),
        ],
        "schedules": [
            {"schedule": n, "settings": s, "rates": rates(n, s, 12)}
            for n, s in [
                ("StepLR", {"step_size": 5}),
                ("StepLR", {"step_size": 3, "gamma": 0.5}),
                ("CosineAnnealingLR", {"T_max": 12}),
                ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.1}),
                ("MultiStepLR", {"milestones": [3, 7, 7], "gamma": 0.5}),
                ("ExponentialLR", {"gamma": 0.75}),
                ("LinearLR", {"start_factor": 0.25, "end_factor": 0.5, "total_iters": 6}),
                ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
                ("PolynomialLR", {"total_iters": 8, "power": 1.5}),
            ]
        ],
        "one_cycle": [
            one_cycle(s)
            for s in [
                {"total_steps": 13},
                {"epochs": 2, "steps_per_epoch": 10, "pct_start": 0.4, "div_factor": 10.0},
                {"total_steps": 13, "anneal_strategy": "linear", "final_div_factor": 2.0},
                {"total_steps": 13, "three_phase": True, "base_momentum": 0.5},
                {"total_steps": 13, "three_phase": True, "anneal_strategy": "linear"},
            ]
        ],
        "sequential": sequential(),
        "plateau": {
            "metrics": PLATEAU,
            "cases": [{"settings": s, "rates": plateau_rates(s)} for s in PLATEAU_CASES],
        },
    }
    path = Path(__file__).with_name("torch_optimizers.json")
    path.write_text(json.dumps(numbers, indent=1) + "\n")
