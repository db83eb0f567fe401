"""The data of a page, read back; and graphs that pages are made of."""

import base64
import json
import re

import numpy as np

import tinygraph as tg

CODES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "u1"}


def data_of(path):
    """What the script of a page is given."""
    text = path.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found)


def decoded(text, code):
    return np.frombuffer(base64.b64decode(text), CODES.get(code, code))


def array_of(data, number):
    """An array of the page, as far as it is there."""
    entry = data["arrays"][number]
    flat = decoded(entry["data"], entry["code"])
    return np.broadcast_to(flat, (int(np.prod(entry["kept"])),)).reshape(entry["kept"])


def whole(data, number):
    """An array that is there whole, in its own dtype."""
    entry = data["arrays"][number]
    assert entry["kept"] == entry["shape"]
    return array_of(data, number).astype(entry["dtype"])


def rows_of(origins, shapes):
    """The rows of origins.py as dense matrices, one for each input: (rows, elements)."""
    start = decoded(origins["start"], "<u4")
    place, factor = decoded(origins["place"], "<u2"), decoded(origins["factor"], "<f4")
    found = [np.zeros((origins["rows"], int(np.prod(shape)))) for shape in shapes]
    for row in range(origins["rows"]):
        for k in range(start[row], start[row + 1]):
            found[place[k] // 4096][row, place[k] % 4096] += factor[k]
    return found


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def two_layers_and_a_skip(dtype=np.float32):
    """A loss, and its parameters by name; the value of tanh has two uses."""
    rng = np.random.default_rng(7)

    def parameter(name, *shape):
        return tg.Parameter((rng.standard_normal(shape) / 2).astype(dtype), name=name)

    w1, b1 = parameter("w1", 5, 4), parameter("b1", 5)
    w2, b2 = parameter("w2", 3, 5), parameter("b2", 3)
    x = tg.Tensor(rng.standard_normal((6, 4)).astype(dtype), name="x")
    labels = tg.Tensor(np.array([0, 1, 2, 0, 1, 2]), name="labels")

    def loss():
        h = tg.tanh(tg.linear(x, w1, b1))
        return tg.softmax_cross_entropy(tg.linear(h + tg.relu(h), w2, b2), labels)

    return loss, {"w1": w1, "b1": b1, "w2": w2, "b2": b2}


def numbers_by_name(data):
    return {node["name"]: number for number, node in data["nodes"].items()}
