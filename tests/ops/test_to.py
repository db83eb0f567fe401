"""to: the tensor itself, or an error that says what is missing."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.device import Device
from tinygraph.errors import ArgumentError, DeviceError


def test_is_the_tensor_itself_where_it_lies():
    x = tg.Tensor([1.0])
    assert x.to("cpu") is x and x.to(x.device) is x


def test_an_unknown_device():
    with pytest.raises(ArgumentError, match="device: name: expected 'cpu'"):
        tg.Tensor([1.0]).to("tpu")


def test_a_copy_is_refused_rather_than_made_up():
    elsewhere = type("Elsewhere", (Device,), {"name": "elsewhere"})()
    with pytest.raises(DeviceError, match="to: device: expected cpu, where x lies, got elsewhere"):
        tg.Tensor(np.ones(2)).to(elsewhere)
