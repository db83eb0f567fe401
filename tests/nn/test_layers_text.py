"""Layers: how they show themselves, that all are exported, what they refuse."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.nn.loss import Loss
from tinygraph.nn.settings import Settings

# ---- text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)"),
        (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (nn.Conv2d(1, 8, 3), "Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1))"),
        (
            nn.Conv2d(4, 8, (3, 5), 2, "same", 2, 4, False, strict=True),
            "Conv2d(4, 8, kernel_size=(3, 5), stride=(2, 2), padding='same', dilation=(2, 2), "
            "groups=4, strict=True, bias=False)",
        ),
        (
            nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False)",
        ),
        (nn.ReLU(), "ReLU()"),
        (nn.Sigmoid(), "Sigmoid()"),
        (nn.Tanh(), "Tanh()"),
        (nn.Softmax(1), "Softmax(axis=1)"),
        (nn.LogSoftmax(), "LogSoftmax(axis=-1)"),
        (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss(reduction='mean')"),
        (
            nn.CrossEntropyLoss(None, -1, "sum"),
            "CrossEntropyLoss(ignore_index=-1, reduction='sum')",
        ),
        (nn.NLLLoss([1, 2.5]), "NLLLoss(weight=[1, 2.5], reduction='mean')"),
        (
            nn.CrossEntropyLoss(np.arange(20) / 10, label_smoothing=0.1),
            "CrossEntropyLoss(weight=[0, 0.1, ..., 1.8, 1.9], reduction='mean', "
            "label_smoothing=0.1)",
        ),
        (nn.MaxPool1d(3, dilation=2), "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=2)"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2, mode='nearest')"),
        (nn.ReLU(inplace=True), "ReLU()"),
        (nn.MSELoss("sum"), "MSELoss(reduction='sum')"),
        (nn.NLLLoss(None, -1, "sum"), "NLLLoss(ignore_index=-1, reduction='sum')"),
        (nn.SmoothL1Loss(beta=0), "SmoothL1Loss(reduction='mean', beta=0.0)"),
        (nn.KLDivLoss("batchmean"), "KLDivLoss(reduction='batchmean', log_target=False)"),
        (nn.BCELoss(), "BCELoss(reduction='mean')"),
        (nn.HalfSquaredError(), "HalfSquaredError(reduction='sum')"),
        (nn.HuberLoss(delta=0.5), "HuberLoss(reduction='mean', delta=0.5)"),
        (nn.Identity(), "Identity()"),
        (nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (nn.ELU(2), "ELU(alpha=2.0)"),
        (nn.GELU(), "GELU(approximate='none')"),
        (nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
        (nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (
            nn.AvgPool2d(3, 2, 1, count_include_pad=False, strict=True),
            "AvgPool2d(kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=False, "
            "strict=True, count_include_pad=False)",
        ),
        (nn.GlobalAvgPool2d(), "GlobalAvgPool2d()"),
        (nn.Dropout(), "Dropout(p=0.5)"),
        (nn.Embedding(10, 3), "Embedding(10, 3)"),
        (
            nn.BatchNorm2d(8),
            "BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        ),
        (
            nn.BatchNorm1d(8, 1e-3, 0.5, False, False),
            "BatchNorm1d(8, eps=0.001, momentum=0.5, affine=False, track_running_stats=False)",
        ),
        (
            nn.BatchNorm1d(8, bias=False),
            "BatchNorm1d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, "
            "bias=False)",
        ),
        (nn.GroupNorm(2, 8, bias=False), "GroupNorm(2, 8, eps=1e-05, affine=True, bias=False)"),
        (
            nn.Conv1d(1, 2, 3, padding=1, padding_mode="reflect"),
            "Conv1d(1, 2, kernel_size=(3,), stride=(1,), padding=(1,), padding_mode='reflect')",
        ),
        (nn.RMSNorm(8), "RMSNorm((8,), eps=None, elementwise_affine=True)"),
        (nn.GroupNorm(2, 8), "GroupNorm(2, 8, eps=1e-05, affine=True)"),
        (nn.InstanceNorm2d(8), "InstanceNorm2d(8, eps=1e-05, affine=False)"),
        (nn.LayerNorm(8), "LayerNorm((8,), eps=1e-05, elementwise_affine=True)"),
        (
            nn.LayerNorm([2, 3], bias=False),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)",
        ),
    ],
)
def test_repr(layer, text):
    assert repr(layer) == text


def test_settings_of_a_layer_are_its_functions_arguments():
    """All of them, by their names and in their order, but for a first part: see nn/settings.py."""
    layers = [c for c in (getattr(nn, name) for name in nn.__all__) if isinstance(c, type)]
    for c in [c for c in layers if issubclass(c, Settings) and c._held]:
        arrays = 2 if issubclass(c, Loss) else 1
        names = list(inspect.signature(c.function).parameters)[arrays:]
        assert list(c._held) == names[: len(c._held)], c


def test_everything_is_exported():
    """Every layer that a file of the room defines, or what is made of it."""
    exported = [getattr(nn, name) for name in nn.__all__]
    layers = {c for c in exported if isinstance(c, type) and issubclass(c, nn.Module)}
    for file in Path(nn.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"tinygraph.nn.{file.stem}")
        for name, c in vars(module).items():
            if isinstance(c, type) and issubclass(c, nn.Module):
                assert any(issubclass(layer, c) for layer in layers), name
    assert nn.Parameter is tg.Parameter


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(0, 2), "in_features: expected an int of at least 1, got 0"),
        (lambda: nn.Linear(2, 2.5), "out_features: expected an int"),
        (lambda: nn.Conv2d(1, -1, 3), "out_channels"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups: expected a divisor"),
        (lambda: nn.Conv2d(1, 1, 3, groups=0), "groups"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), "kernel_size"),
        (lambda: nn.Conv2d(1, 1, 3, stride=0), "stride"),
        (lambda: nn.Conv2d(1, 1, 3, padding="wrong"), "padding"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="reflct"), "Conv2d: padding_mode: .*'reflect'"),
        (lambda: nn.MaxPool2d(0), "kernel_size"),
        (lambda: nn.MaxPool2d(2, stride=-1), "stride"),
        (lambda: nn.CrossEntropyLoss(reduction="average"), "CrossEntropyLoss: reduction"),
        (lambda: nn.MSELoss("meen"), "did you mean 'mean'"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2), "CrossEntropyLoss: label_smoothing"),
        (lambda: nn.SmoothL1Loss(beta=-1), "SmoothL1Loss: beta"),
        (lambda: nn.BCELoss(reduction="batchmean"), "BCELoss: reduction"),
        (lambda: nn.HuberLoss(delta=0.0), "HuberLoss: delta"),
        (lambda: nn.LeakyReLU("steep"), "LeakyReLU: negative_slope"),
        (lambda: nn.ELU(float("nan")), "ELU: alpha"),
        (lambda: nn.PReLU(0), "PReLU: num_parameters: expected an int of at least 1"),
        (lambda: nn.PReLU(init=float("inf")), "PReLU: init: expected a finite number"),
        (lambda: nn.CELU(0.0), "CELU: alpha: expected a number above 0"),
        (lambda: nn.Hardtanh(1.0), "Hardtanh: max_val: expected a number above 1"),
        (lambda: nn.GELU("tan"), "GELU: approximate: .* did you mean 'tanh'"),
        (lambda: nn.Softplus(0.0), "Softplus: beta"),
        (lambda: nn.Softplus(1.0, -1.0), "Softplus: threshold"),
        (lambda: nn.AvgPool2d(0), "AvgPool2d: kernel_size"),
        (lambda: nn.Dropout(1.5), "Dropout: p: expected a number from 0 to 1, got 1.5"),
        (lambda: nn.Dropout("half"), "Dropout: p"),
        (lambda: nn.Embedding(0, 3), "num_embeddings"),
        (lambda: nn.Embedding(3, 2.5), "embedding_dim"),
        (lambda: nn.LayerNorm(()), "normalized_shape"),
        (lambda: nn.RMSNorm(()), "RMSNorm: normalized_shape"),
        (lambda: nn.GroupNorm(3, 8), "GroupNorm: num_groups: expected a divisor"),
        (
            lambda: nn.ConvTranspose1d(2, 2, 3, padding_mode="circular"),
            "ConvTranspose1d: padding_mode: expected 'zeros'",
        ),
        (lambda: nn.InstanceNorm1d(0), "InstanceNorm1d: num_features"),
        (
            lambda: nn.InstanceNorm2d(2, track_running_stats=True),
            "InstanceNorm2d: track_running_stats: expected False",
        ),
        (lambda: nn.LayerNorm((2, 0)), "normalized_shape: expected an int of at least 1, got 0"),
        (lambda: nn.LayerNorm(2, eps=-1), "LayerNorm: eps"),
        (lambda: nn.Unflatten(1, (2.5,)), "Unflatten: shape"),
        (lambda: nn.Unflatten("a", (2,)), "Unflatten: dim"),
        (lambda: nn.BatchNorm1d(0), "BatchNorm1d: num_features"),
        (lambda: nn.BatchNorm2d(2, eps=-1.0), "BatchNorm2d: eps"),
        (
            lambda: nn.BatchNorm2d(2, momentum=1.5),
            "BatchNorm2d: momentum: expected a number from 0 to 1",
        ),
        (lambda: nn.BatchNorm2d(2, momentum=None), "BatchNorm2d: momentum"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_bad_inputs():
    with pytest.raises(ShapeError, match="3 features"):
        nn.Linear(3, 2)(tg.ones((5, 4)))
    with pytest.raises(DtypeError):
        nn.Linear(3, 2)(tg.ones((5, 3), dtype="float64"))
    with pytest.raises(DtypeError):
        nn.Linear(3, 2, dtype="int64")
