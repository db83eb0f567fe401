"""Pictures of graphs: everything is there, nothing overlaps, and bad requests say what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tests.show.graphs import Join, chain, network, random_graph, residual
from tinygraph.show.boxes import collect
from tinygraph.show.dot import render, to_dot

SVG = "{http://www.w3.org/2000/svg}"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def draw(outputs, tmp_path: Path, **options) -> ET.Element:
    path = tg.show.graph(outputs, tmp_path / "picture.svg", **options)
    return ET.parse(path).getroot()


def nodes_of(svg: ET.Element) -> dict[int, ET.Element]:
    found = [g for g in svg.iter(f"{SVG}g") if "node" in g.get("class", "").split()]
    return {int(g.get("data-number")): g for g in found}


def texts(element: ET.Element) -> list[str]:
    return [t.text for t in element.iter(f"{SVG}text")]


def edges_of(svg: ET.Element) -> Counter:
    edges = [p for p in svg.iter(f"{SVG}path") if p.get("class") == "edge"]
    return Counter((int(p.get("data-from")), int(p.get("data-to"))) for p in edges)


def boxes_of(svg: ET.Element) -> dict[int, tuple[float, float, float, float]]:
    """(left, top, right, bottom) of each node."""
    boxes = {}
    for number, g in nodes_of(svg).items():
        rect = g.find(f"{SVG}rect")
        x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        boxes[number] = (x, y, x + w, y + h)
    return boxes


def points_of(path: str) -> list[tuple[float, float]]:
    """Points along the pieces M, L, V and C of a path, close together."""
    points: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLVC])([^MLVC]*)", path):
        v = [float(n) for n in numbers.split()]
        if command == "M":
            points.append((v[0], v[1]))
            continue
        x0, y0 = points[-1]
        if command == "V":
            v = [x0, v[0]]
        x1, y1 = v[-2:]
        a, b = ((v[0], v[1]), (v[2], v[3])) if command == "C" else ((x0, y0), (x1, y1))
        for t in np.linspace(0, 1, 40)[1:]:
            w = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            points.append(
                (
                    w[0] * x0 + w[1] * a[0] + w[2] * b[0] + w[3] * x1,
                    w[0] * y0 + w[1] * a[1] + w[2] * b[1] + w[3] * y1,
                )
            )
    return points


def test_every_node_of_a_network_is_drawn_in_forward_order(tmp_path):
    nodes = nodes_of(draw(network(), tmp_path))
    shown = {number: tuple(texts(g)) for number, g in nodes.items()}
    assert shown == {
        1: ("1  x", "float32 (4, 2)"),
        2: ("2  w1", "float32 (8, 2)"),
        3: ("3  b1", "float32 (8,)"),
        4: ("4  linear", "float32 (4, 8)"),
        5: ("5  relu", "float32 (4, 8)"),
        6: ("6  w2", "float32 (1, 8)"),
        7: ("7  linear", "float32 (4, 1)"),
        8: ("8  target", "float32 (4, 1)"),
        9: ("9  mse_loss", "float32 ()"),
    }


def test_every_edge_of_a_network_is_drawn(tmp_path):
    edges = edges_of(draw(network(), tmp_path))
    expected = [(1, 4), (2, 4), (3, 4), (4, 5), (5, 7), (6, 7), (7, 9), (8, 9)]
    assert edges == Counter(expected)


def test_kinds_of_nodes_are_told_apart_by_class_colour_and_outline(tmp_path):
    class Track(tg.Op):
        updates = (3,)

        def forward(self, mem, *arrays):
            return arrays[0].copy(), None

    y = Track()(tg.Tensor([1.0, 2.0]), tg.Parameter([1.0, 2.0]), 3.0, tg.zeros(2, name="running"))
    svg = draw(y, tmp_path)
    kinds = {n: g.get("class").split()[1] for n, g in nodes_of(svg).items()}
    assert kinds == {1: "data", 2: "parameter", 3: "constant", 4: "state", 5: "op"}
    looks = set()
    outlines = set()
    for g in nodes_of(svg).values():
        rect = g.find(f"{SVG}rect")
        looks.add(rect.get("fill"))
        outlines.add((rect.get("rx"), rect.get("stroke-dasharray")))
    assert len(looks) == 5
    assert len(outlines) == 5
    assert "3  3" in texts(nodes_of(svg)[3])  # a constant shows its value
    legend = next(g for g in svg.iter(f"{SVG}g") if g.get("class") == "legend")
    assert texts(legend) == ["data", "constant", "parameter", "running statistics", "op"]


def test_fan_out_and_a_node_used_twice_by_one_op(tmp_path):
    x = tg.Parameter([1.0], name="x")
    square = Join()(x, x)
    y = Join()(square, x, square)
    svg = draw([y, square], tmp_path)
    assert edges_of(svg) == Counter({(1, 2): 2, (2, 3): 2, (1, 3): 1})
    paths = [p.get("d") for p in svg.iter(f"{SVG}path") if p.get("class") == "edge"]
    assert len(set(paths)) == len(paths)  # the two edges do not lie on one another


@pytest.mark.parametrize("name", ['a<b>&"c"', "</text>", "tab\tnull\0", "ψ"])
def test_names_are_escaped(name, tmp_path):
    svg = draw(tg.relu(tg.Parameter([1.0, 2.0], name=name)), tmp_path)
    expected = name.replace("\t", "\ufffd").replace("\0", "\ufffd")
    assert texts(nodes_of(svg)[1])[0] == f"1  {expected}"


def test_a_long_name_is_cut_but_kept_in_the_tooltip(tmp_path):
    name = "layer." * 30 + "weight"
    node = nodes_of(draw(tg.relu(tg.Parameter([1.0, 2.0], name=name)), tmp_path))[1]
    assert len(texts(node)[0]) < 60
    assert texts(node)[0].endswith("…")
    assert name in node.find(f"{SVG}title").text


def test_the_tooltip_of_an_op_has_its_settings(tmp_path):
    y = tg.max_pool2d(np.zeros((1, 1, 6, 6), np.float32), 3, stride=2)
    assert repr(y.op) in nodes_of(draw(y, tmp_path))[2].find(f"{SVG}title").text


GRAPHS = {
    "network": network,
    "residual": lambda: residual(3),
    "chain": lambda: chain(30),
    **{f"random {seed}": lambda seed=seed: random_graph(seed) for seed in range(8)},
}


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
def test_layout(make, tmp_path):
    """Boxes lie inside the page, apart from one another, and below what they use; no edge or trunk
    runs through a box."""
    output = make()
    svg = draw(output, tmp_path)
    boxes = boxes_of(svg)
    assert len(boxes) == len(tg.Graph(output).nodes)
    width, height = float(svg.get("width")), float(svg.get("height"))
    placed = sorted(boxes.items())
    for i, (_, (left, top, right, bottom)) in enumerate(placed):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for _, other in placed[i + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart
    for source, target in edges_of(svg):
        assert boxes[source][3] < boxes[target][1]
    for path in svg.iter(f"{SVG}path"):
        if path.get("class") in ("edge", "trunk"):
            for x, y in points_of(path.get("d")):
                for left, top, right, bottom in boxes.values():
                    inside = left + 0.1 < x < right - 0.1 and top + 0.1 < y < bottom - 0.1
                    assert not inside, (path.attrib, x, y)


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
def test_edges_connect_the_boxes_that_they_name(make, tmp_path):
    """An edge ends on top of its target.  It starts below its source, or on the trunk of it."""
    svg = draw(make(), tmp_path)
    boxes = boxes_of(svg)
    trunks = {
        p.get("data-from"): points_of(p.get("d"))
        for p in svg.iter(f"{SVG}path")
        if p.get("class") == "trunk"
    }
    for source, points in trunks.items():
        left, _, right, bottom = boxes[int(source)]
        assert left < points[0][0] < right
        assert points[0][1] == pytest.approx(bottom, abs=0.11)
    for path in svg.iter(f"{SVG}path"):
        if path.get("class") != "edge":
            continue
        (x0, y0), (x1, y1) = points_of(path.get("d"))[:: len(points_of(path.get("d"))) - 1]
        left, top, right, _ = boxes[int(path.get("data-to"))]
        assert left < x1 < right
        assert y1 == pytest.approx(top, abs=0.11)
        left, _, right, bottom = boxes[int(path.get("data-from"))]
        on_box = left < x0 < right and abs(y0 - bottom) < 0.11
        trunk = trunks.get(path.get("data-from"), [])
        assert on_box or any(abs(x - x0) < 0.11 and abs(y - y0) < 0.11 for x, y in trunk)


def test_numbers_agree_with_the_graph_and_depth_draws_a_part(tmp_path):
    whole = network()
    svg = draw(whole, tmp_path, depth=2)
    nodes = nodes_of(svg)
    assert set(nodes) == {5, 6, 7, 8, 9}  # numbers as in the whole graph
    assert texts(nodes[5])[0] == "… 5  relu"  # its input is left out
    assert texts(nodes[7])[0] == "7  linear"
    assert edges_of(svg) == Counter([(5, 7), (6, 7), (7, 9), (8, 9)])
    assert set(nodes_of(draw(whole, tmp_path, depth=0))) == {9}
    assert len(nodes_of(draw(whole, tmp_path, depth=99))) == 9


@pytest.mark.second
def test_thousands_of_nodes_are_quick(tmp_path):
    started = time.perf_counter()
    svg = draw(chain(3000), tmp_path)
    assert len(nodes_of(svg)) == 3001
    assert time.perf_counter() - started < 20  # under a second where the machine is idle


def test_a_weight_shared_by_every_step_has_one_trunk(tmp_path):
    w = tg.Parameter([1.0], name="w")
    node = tg.Tensor([1.0], name="start")
    for _ in range(400):
        node = Join()(node, w)
    svg = draw(node, tmp_path)
    assert len([p for p in svg.iter(f"{SVG}path") if p.get("class") == "trunk"]) == 1
    assert sum(edges_of(svg).values()) == 800


@pytest.mark.second
def test_a_deep_chain_is_refused_but_a_part_of_it_can_be_drawn(tmp_path):
    deep = chain(100_000)
    with pytest.raises(tg.errors.GraphError, match=r"at most 5000 nodes.*100001.*depth=20"):
        draw(deep, tmp_path)
    assert not list(tmp_path.iterdir())
    assert len(nodes_of(draw(deep, tmp_path, depth=20))) == 21


def test_more_long_edges_than_can_be_drawn_are_refused(tmp_path):
    steps = [tg.Tensor([1.0])]
    for _ in range(400):
        steps.append(tg.relu(steps[-1]))
    with pytest.raises(tg.errors.GraphError, match="long edges"):
        draw(Join()(*steps), tmp_path)


@pytest.mark.parametrize("outputs", [network, lambda: tg.Graph(network()), lambda: [network()]])
def test_what_can_be_drawn(outputs, tmp_path):
    assert len(nodes_of(draw(outputs(), tmp_path))) == 9


def test_a_leaf_alone(tmp_path):
    assert texts(nodes_of(draw(tg.Tensor([[1.0, 2.0]]), tmp_path))[1]) == [
        "1  data",
        "float32 (1, 2)",
    ]


@pytest.mark.parametrize("outputs", [None, 3, [], [1], "x", {}])
def test_what_cannot_be_drawn(outputs, tmp_path):
    with pytest.raises(tg.errors.GraphError, match=r"show\.graph: outputs: expected"):
        draw(outputs, tmp_path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("graph", "ends in one of"),
        ("graph.gif", "ends in one of"),
        ("absent/graph.svg", "folder that exists"),
        ("folder.svg", "expected a file, got the folder"),
    ],
)
def test_bad_paths(path, message, tmp_path):
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(tg.errors.ArgumentError, match=message):
        tg.show.graph(chain(1), tmp_path / path)


def test_bad_options(tmp_path):
    with pytest.raises(tg.errors.ArgumentError, match="depth"):
        draw(chain(1), tmp_path, depth=-1)


def test_without_graphviz_the_picture_is_drawn_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(nodes_of(draw(network(), tmp_path))) == 9
    with pytest.raises(tg.errors.ArgumentError, match=r"'dot' to draw a \.png.*draw an \.svg"):
        tg.show.graph(network(), tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_what_graphviz_says_is_told(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho syntax error >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(tg.errors.ArgumentError, match="syntax error"):
        tg.show.graph(network(), tmp_path / "a.png")


def test_dot_text_has_every_node_and_edge():
    y = tg.relu(tg.Parameter([1.0, 2.0], name='a "b" \\n &lt;'))
    text = to_dot(collect((Join()(y, y),)))
    assert text.startswith("digraph tinygraph {")
    assert r'label="1  a \"b\" \\n &amp;lt;\nfloat32 (2,)"' in text
    assert re.findall(r"n(\d+) -> n(\d+);", text) == [("0", "1"), ("1", "2"), ("1", "2")]


@needs_dot
def test_graphviz_reads_every_node_and_edge():
    """Also those with names that its language or its labels could take for something else."""
    name = 'a<b>&"c" \\n'
    x = tg.Parameter([1.0, 2.0], name=name)
    svg = ET.fromstring(render(collect((Join()(x, x, network()),)), ".svg"))
    groups = Counter(g.get("class") for g in svg.iter(f"{SVG}g"))
    assert (groups["node"], groups["edge"]) == (11, 11)
    assert any(t.replace("\xa0", " ") == f"1  {name}" for t in texts(svg))


@needs_dot
def test_graphviz_makes_png(tmp_path):
    data = tg.show.graph(network(), tmp_path / "graph.png").read_bytes()
    assert data.startswith(b"\x89PNG")


def test_the_same_graph_gives_the_same_picture(tmp_path):
    first = tg.show.graph(random_graph(3), tmp_path / "a.svg").read_bytes()
    second = tg.show.graph(random_graph(3), tmp_path / "b.svg").read_bytes()
    assert first == second


@pytest.mark.second
def test_pictures_of_graphs_load_neither_matplotlib_nor_graphviz(tmp_path):
    code = (
        "import sys, tinygraph as tg; tg.show.graph(tg.relu([1.0]), 'g.svg'); "
        "print({'matplotlib', 'graphviz'} & set(sys.modules))"
    )
    root = str(Path(tg.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "set()"
