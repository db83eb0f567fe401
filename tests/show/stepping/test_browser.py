"""The page as a browser draws it: the numbers in its document are the graph's, to the bit."""

import re

import numpy as np
import pytest

import tinygraph as tg
from tests.browser import dom, measured, with_script
from tests.show.stepping.pages import data_of, decoded, numbers_by_name, two_layers_and_a_skip

pytestmark = pytest.mark.second


def shown(document):
    """The arrays of the panel: title -> array."""
    found = {}
    for figure in document.one(id="panel").all("figure", "array"):
        flat = decoded(figure.attributes["data-bits"], figure.attributes["data-code"])
        shape = [int(n) for n in figure.attributes["data-shape"].split(",") if n]
        found[figure.one("h3").text] = flat.reshape(shape)
    return found


@pytest.fixture(scope="module")
def mlp(tmp_path_factory):
    make, parameters = two_layers_and_a_skip()
    loss = make()
    path = tg.show.steps(loss, tmp_path_factory.mktemp("page") / "steps.html", title="A <page>")
    loss.backward()
    return path, loss, parameters


def test_gradients_of_leaves_are_grad_to_the_bit(mlp):
    path, _, parameters = mlp
    data = data_of(path)
    number = numbers_by_name(data)
    for name, p in parameters.items():
        (at,) = [
            k
            for k, s in enumerate(data["steps"], start=1)
            if s["phase"] == "leaf" and s["node"] == int(number[name])
        ]
        document = dom(path, f"step={at}")
        arrays = shown(document)
        assert arrays[f".grad: d loss / d {name}"].tobytes() == p.grad.tobytes()
        assert arrays["its value"].tobytes() == p.value.tobytes()
        assert f"{number[name]} {name} keeps its gradient" == document.one(id="said").text
        numbers = [span.text for span in document.one(id="panel").all("figure")[0].all("span")]
        np.testing.assert_allclose([float(t) for t in numbers], p.grad.ravel(), rtol=5.1e-2)


def test_a_sum_over_uses_and_the_edge_that_it_comes_along(mlp):
    path, _, _ = mlp
    data = data_of(path)
    (at, step) = next(
        (k, s)
        for k, s in enumerate(data["steps"], start=1)
        if any(t["before"] is not None for t in s.get("sent", ()))
    )
    document = dom(path, f"step={at}")
    arrays = shown(document)
    total = arrays["so far"] + arrays["from here"]
    assert total.tobytes() == arrays["together"].tobytes()
    graph = document.one(id="graph")
    (now,) = graph.all("g", "now")
    assert now.attributes["data-number"] == str(step["node"]) and "back" in now.classes
    lit = {e.attributes["data-from"] for e in graph.all("path", "back") if "edge" in e.classes}
    assert lit == {str(term["to"]) for term in step["sent"]}
    formula = document.one(id="panel").one("pre").all("b")[0]
    assert formula.text.startswith("gx = gy")
    cells = sorted(
        (value, red - blue)
        for name, array in arrays.items()
        if name in ("so far", "from here", "together")
        for value, (red, _, blue) in zip(array.ravel(), colours(document, name), strict=True)
    )
    tints = [tint for _, tint in cells]  # of one scale: the larger, the more red
    assert len(tints) == 3 * total.size and tints == sorted(tints) and tints[0] < 0 < tints[-1]


def colours(document, title):
    (figure,) = [f for f in document.all("figure", "array") if f.one("h3").text == title]
    found = [
        re.search(r"background: rgb\((.*?)\)", s.attributes["style"]) for s in cells_of(figure)
    ]
    return [tuple(int(n) for n in match[1].split(",")) for match in found]


def cells_of(figure):
    return figure.one("div", "cells").all("span")


def test_backward_shows_what_forward_has_saved_for_it(mlp):
    path, loss, _ = mlp
    nodes = tg.Graph(loss).nodes
    (number,) = [k for k, node in enumerate(nodes, 1) if node.op and node.op.name == "tanh"]
    steps = enumerate(data_of(path)["steps"], 1)
    (at,) = [k for k, s in steps if s["phase"] == "backward" and s["node"] == number]
    arrays = shown(dom(path, f"step={at}"))
    assert arrays["from forward: saved"].tobytes() == nodes[number - 1].numpy().tobytes()


def test_an_axis_of_length_one_makes_no_row_of_lines(tmp_path):
    x = tg.Parameter(np.arange(48.0).reshape(6, 1, 8), name="x")
    document = dom(tg.show.steps((x * x).sum(), tmp_path / "s.html"), "step=1")
    spans = cells_of(document.one(id="panel").all("figure")[0])
    rows = [int(re.search(r"grid-(?:area|row): (\d+)", s.attributes["style"])[1]) for s in spans]
    assert rows == np.repeat(np.arange(1, 7), 8).tolist()


def test_on_a_narrow_screen_the_plan_stands_below_the_step(mlp):
    path, _, _ = mlp
    code = '["graph", "panel", "plan"].map(id => shell.$(id).getBoundingClientRect().top)'
    tops = measured(path, "step=3", 400, code)
    assert tops == sorted(tops) and tops[1] < 600


def test_forward_shows_inputs_output_and_what_is_saved(mlp):
    path, loss, _ = mlp
    nodes = tg.Graph(loss).nodes
    ops = [node for node in nodes if node.op]
    document = dom(path, f"step={len(ops)}")
    arrays = shown(document)
    assert arrays["output"].tobytes() == loss.numpy().tobytes()
    number = {id(node): k for k, node in enumerate(nodes, start=1)}
    for k, x in enumerate(loss.inputs, start=1):
        given = arrays[f"input {k}: {x.name or x.op.name} ({number[id(x)]})"]
        assert given.astype(x.dtype).tobytes() == x.numpy().tobytes()
    assert document.one(id="where").text == f"step {len(ops)} of {2 * len(ops) + 5}"
    assert document.one("h1").text == "A <page>"


def test_images_and_the_forms_of_a_convolution(tmp_path):
    rng = np.random.default_rng(0)
    x = tg.Tensor(rng.standard_normal((2, 1, 9, 9)).astype(np.float32), name="x")
    w = tg.Parameter(rng.standard_normal((2, 1, 3, 3)).astype(np.float32), name="w")
    path = tg.show.steps(tg.conv2d(x, w).sum(), tmp_path / "s.html")
    document = dom(path, "step=1")
    arrays = shown(document)
    assert arrays["input 1: x (1)"].tobytes() == x.numpy().tobytes()
    assert arrays["its windows as columns"].shape == (9, 49)
    pictures = [c for c in document.one(id="panel").all("canvas") if c.attributes.get("role")]
    assert "2 × 1 × 9 × 9" in pictures[0].attributes["aria-label"]


def test_an_update(tmp_path):
    make, parameters = two_layers_and_a_skip()
    sgd = tg.optim.SGD(parameters.items(), lr=0.5)

    def step():
        make().backward()
        sgd.step()

    path = tg.show.steps(step, tmp_path / "s.html")
    arrays = shown(dom(path, "step=999"))
    last = parameters["b2"]
    assert arrays["after"].tobytes() == last.numpy().tobytes()
    assert arrays["gradient"].tobytes() == last.grad.tobytes()


POINT = """
{
  const cell = document.querySelectorAll("#panel .array")[%d].querySelectorAll(".cells span")[%d];
  cell.dispatchEvent(new PointerEvent("pointerenter", {clientX: 5, clientY: 5}));
}
"""


def pointed(path, address, figure, cell):
    """What is noted beside the pointer over a number, and the numbers that are marked."""
    document = dom(with_script(path, POINT % (figure, cell)), address)
    marked = []
    for box in document.one(id="panel").all("figure"):
        spans = box.all("span")
        marked.append([k for k, span in enumerate(spans) if "marked" in span.classes])
    return document.one(id="tip").text, marked


def test_over_a_number_one_sees_what_it_comes_from(tmp_path):
    x = tg.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), name="x")
    w = tg.Parameter(np.array([[0.5, -1.0], [0.0, 2.0]], np.float32), name="w")
    path = tg.show.steps(tg.linear(x, w).sum(), tmp_path / "s.html")
    text, marked = pointed(path, "step=1", 2, 2)  # y[1, 0] = 0.5 * 3 - 1 * 4
    assert text.splitlines() == [
        "y[1, 0] = -2.5",
        "changes with",
        "0.5 × x[1, 0]  (3)",
        "-1 × x[1, 1]  (4)",
        "3 × w[0, 0]  (0.5)",
        "4 × w[0, 1]  (-1)",
    ]
    assert marked[:3] == [[2, 3], [0, 1], [2]]
    # backward, of sum, of linear: gw[0, 1] is the sum over samples of gy[n, 0] * x[n, 1]
    text, marked = pointed(path, "step=5", 1, 1)
    assert text.splitlines() == [
        "g w[0, 1] = 6",
        "is the sum of",
        "2 × gy[0, 0]  (1)",
        "4 × gy[1, 0]  (1)",
    ]
    assert marked == [[0, 2], [1], [], []]  # nothing of what forward has saved


AT_A_PIXEL = """
{
  const canvas = document.querySelectorAll("#panel canvas[role]")[%d];
  const {left, top, width, height} = canvas.getBoundingClientRect();
  canvas.parentElement.dispatchEvent(new PointerEvent("pointermove", {
    clientX: left + width / canvas.width * %f, clientY: top + height / canvas.height * %f,
  }));
}
"""


def test_over_a_pixel_of_an_image_that_is_cut_to_its_corner(tmp_path):
    """Many arrays: each keeps less than the corner in which places are counted."""
    x = tg.Parameter(np.arange(130.0 * 130).reshape(1, 1, 130, 130), name="x")
    z = tg.avg_pool2d(x, 3, stride=1)
    for _ in range(12):
        z = z * 1.5
    path = tg.show.steps(z.sum(), tmp_path / "s.html")
    kept = data_of(path)["arrays"][0]
    assert kept["corner"] == [1, 1, 64, 64] and kept["kept"][2] == kept["kept"][3] < 60
    document = dom(with_script(path, AT_A_PIXEL % (1, 7.5, 0.5)), "step=1")
    head, _, *terms = document.one(id="tip").text.splitlines()
    assert head == f"y[0, 0, 0, 7] = {x.value[0, 0, 0:3, 7:10].mean():.0f}"
    assert terms[0].startswith("0.111 × x[0, 0, 0, 7]")
    assert terms[4].startswith("0.111 × x[0, 0, 1, 8]")
    steps = data_of(path)["steps"]
    last = max(k for k, step in enumerate(steps, 1) if step["phase"] == "backward")
    document = dom(with_script(path, AT_A_PIXEL % (1, 7.5, 0.5)), f"step={last}")
    head, _, *terms = document.one(id="tip").text.splitlines()
    assert head.startswith("g x[0, 0, 0, 7] =") and terms[0].startswith("0.111 × gy[0, 0, 0, 5]")


def test_keys_and_clicks_go_from_step_to_step(mlp):
    path, loss, _ = mlp
    count = len(data_of(path)["steps"])
    press = 'dispatchEvent(new KeyboardEvent("keydown", {key: "%s"}));'

    def at(code):
        return int(dom(with_script(path, code), "step=3").one("html").attributes["data-step"])

    moves = {"ArrowRight": 4, "ArrowLeft": 2, "Home": 1, "End": count}
    code = "".join(
        f"{press % key} document.body.dataset.{key.lower()} = shell.at() + 1; shell.go(2);"
        for key in moves
    )
    body = dom(with_script(path, code), "step=3").one("body").attributes
    assert {key: int(body[f"data-{key.lower()}"]) for key in moves} == moves
    number = len(tg.Graph(loss).nodes)
    node = f"document.querySelector(\"#graph .node[data-number='{number}']\")"
    click = f'{node}.dispatchEvent(new MouseEvent("click"));'
    steps = data_of(path)["steps"]
    assert steps[at(click) - 1]["node"] == number and at(press % "x") == 3
