"""Networks as text: exact round trips, files as nnP writes them, and what is wrong with a file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.recipes.splice_mlp_network import SigmoidMLP
from tinygraph.recipes.splice_mlp_text import read_network, write_network

# As nnP writes a file: 8 digits, its own comments, weights of a node before its bias.
PUBLISHED = """\
version(1,2,0)
name(t9,0,0,0)
networkTopology(3;2,2,1)
learning(0.5,0)
comment(link(layer, to node, from node, weight))
comment(node(layer, node, bias))
comment(Storing layer:1)
comment(TBD:layer modifiers)
link(1,0,0,1.8813761)
link(1,0,1,-1.473814)
node(1,0,-4.631814)
comment(TBD:node modifiers)
link(1,1,0,-0.4193933)
link(1,1,1,2.5e-05)
node(1,1,7)
comment(TBD:node modifiers)
comment(Storing layer:2)
comment(TBD:layer modifiers)
link(2,0,0,.25)
link(2,0,1,-0.14978909)
node(2,0,-0)
comment(TBD:node modifiers)
"""


def read(tmp_path, text, dtype=np.float32):
    path = tmp_path / "network.nn"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_network(path, dtype)


def test_a_file_as_it_was_published(tmp_path):
    network = read(tmp_path, PUBLISHED, np.float64)
    assert network.widths == (2, 2, 1) and network.name == "t9"
    assert (network.lr, network.momentum) == (0.5, 0.0)
    expected = (
        [[1.8813761, -1.473814], [-0.4193933, 2.5e-05]],
        [-4.631814, 7],
        [[0.25, -0.14978909]],
        [-0.0],
    )
    for parameter, values in zip(network.parameters(), expected, strict=True):
        np.testing.assert_array_equal(parameter.value, values)
    x = np.array([[1.0, 0.5]])  # link(layer,to,from): from the second input to the first node
    h = 1 / (
        1
        + np.exp(-np.array([1.8813761 - 0.5 * 1.473814 - 4.631814, -0.4193933 + 0.5 * 2.5e-05 + 7]))
    )
    y = 1 / (1 + np.exp(-(0.25 * h[0] - 0.14978909 * h[1])))
    assert network(x).item() == pytest.approx(y, rel=1e-14)


def test_order_spaces_and_empty_lines_do_not_matter(tmp_path):
    lines = PUBLISHED.replace(",", " , ").splitlines()
    shuffled = [*lines[:3], *reversed(lines[3:]), ""]
    again = read(tmp_path, "\r\n\n".join(shuffled))
    for a, b in zip(again.parameters(), read(tmp_path, PUBLISHED).parameters(), strict=True):
        np.testing.assert_array_equal(a.value, b.value)


def test_what_may_be_left_out(tmp_path):
    network = read(tmp_path, "networkTopology(2;1,1)\nlink(1,0,0,1)\nnode(1,0,2)")
    assert (network.lr, network.momentum, network.name) == (0.5, 0.0, "network")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip_of_random_networks(tmp_path, dtype):
    tg.manual_seed(0)
    network = SigmoidMLP([7, 5, 4, 3], lr=0.1, momentum=1 / 3, name="trip", dtype=dtype)
    path = write_network(network, tmp_path / "a.nn")
    again = read_network(path, dtype)
    assert (again.widths, again.lr, again.momentum, again.name) == (
        (7, 5, 4, 3),
        0.1,
        1 / 3,
        "trip",
    )
    for a, b in zip(again.parameters(), network.parameters(), strict=True):
        assert a.value.dtype == dtype and a.value.tobytes() == b.value.tobytes()
    assert write_network(again, tmp_path / "b.nn").read_bytes() == path.read_bytes()


def one_weight(tmp_path, number):
    """The weight of a network of one link, written and read again."""
    network = SigmoidMLP([1, 1], dtype=number.dtype)
    next(network.parameters()).value[...] = number
    again = read_network(write_network(network, tmp_path / "one.nn"), number.dtype)
    return next(again.parameters()).value[0, 0]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_any_finite_bits_are_restored(tmp_path_factory, bits32, bits64):
    folder = tmp_path_factory.mktemp("bits")
    for number in (np.uint32(bits32).view(np.float32), np.uint64(bits64).view(np.float64)):
        if np.isfinite(number):
            assert one_weight(folder, number).tobytes() == number.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_at_the_edges_are_restored(tmp_path, dtype):
    info = np.finfo(dtype)
    below = [np.nextafter(number, dtype(0)) for number in (dtype(2), info.tiny)]
    edges = [0.0, -0.0, 0.1, info.max, info.min, info.tiny, info.smallest_subnormal, 1 + info.eps]
    for edge in edges + below:
        assert one_weight(tmp_path, dtype(edge)).tobytes() == dtype(edge).tobytes()


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "networkTopology(3;2,2,1)\n",
            "",
            "line 8: expected networkTopology before links and nodes, got none so far",
        ),
        ("(3;2,2,1)", "(4;2,2,1)", "line 3: expected 4 layers, got the widths of 3"),
        (
            "(3;2,2,1)",
            "(3:2,2,1)",
            "line 3: expected the number of nodes of a layer, at least 1, got ''",
        ),
        (
            "(3;2,2,1)",
            "(3;2,0,1)",
            "line 3: expected the number of nodes of a layer, at least 1, got '0'",
        ),
        ("(3;2,2,1)", "(1;2)", "line 3: expected the number of layers, at least 2, got '1'"),
        (
            "(3;2,2,1)",
            "(3;999999999,999999999,1)",
            "line 3: expected "
            "1000000000000000000 links and nodes for this topology, got a file of 22 lines",
        ),
        (
            "name(t9,0,0,0)",
            "networkTopology(3;2,2,1)",
            "line 3: expected networkTopology once, got a second one",
        ),
        (
            "learning(0.5,0)",
            "learning(0,0)",
            "line 4: expected a rate above 0 and a momentum from 0 to below 1, got 0,0",
        ),
        ("learning(0.5,0)", "learning(0.5,1)", "line 4: expected a rate above 0 and a momentum"),
        (
            "learning(0.5,0)",
            "learning(0.5)",
            r"line 4: expected learning\(rate,momentum\), got 1 "
            "values: '0.5'",
        ),
        (
            "learning(0.5,0)",
            "learning(inf,0)",
            "line 4: expected a finite float64 in decimal, got 'inf'",
        ),
        (
            "node(1,0,-4.631814)",
            "nodes(1,0,-4.6)",
            "line 11: expected one of version, .*node, got nodes. Way out: did you mean 'node'",
        ),
        (
            "node(1,0,-4.631814)",
            "node(1,0,-4.6",
            r"line 11: expected a statement such as "
            r"node\(layer,node,bias\), got 'node\(1,0,-4.6'",
        ),
        ("node(1,0,-4.631814)", "node(1,0)", r"line 11: expected node\(layer,node,bias\), got 2"),
        ("node(1,0,-4.631814)", "node(0,0,1)", "line 11: expected a layer from 1 to 2, got 0"),
        ("node(1,0,-4.631814)", "node(3,0,1)", "line 11: expected a layer from 1 to 2, got 3"),
        ("node(1,0,-4.631814)", "node(1,2,1)", "line 11: expected a node from 0 to 1, got 2"),
        (
            "node(1,0,-4.631814)",
            "node(1,-1,1)",
            "line 11: expected the number of a node, at least 0, got '-1'",
        ),
        (
            "node(1,0,-4.631814)",
            "node(1,1,1)",
            "line 15: expected each link and each node once, got it a second time",
        ),
        (
            "node(1,0,-4.631814)\n",
            "",
            r"line 21: expected node\(1,0,bias\) and 0 more like it, got the "
            "end of the file",
        ),
        ("link(1,0,1,-1.473814)", "link(1,0,2,1)", "line 10: expected a node from 0 to 1, got 2"),
        ("link(1,0,1,-1.473814)", "link(1,2,1,1)", "line 10: expected a node from 0 to 1, got 2"),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,0,1)",
            "line 10: expected each link and each node once",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,1,x)",
            "line 10: expected a finite float32 in decimal, got 'x'",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,1,nan)",
            "line 10: expected a finite float32 in decimal",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,1,1e39)",
            "line 10: expected a finite float32 in decimal",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,1,1_0)",
            "line 10: expected a finite float32 in decimal",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1,0,1,)",
            "line 10: expected a finite float32 in decimal, got ''",
        ),
        (
            "link(1,0,1,-1.473814)",
            "link(1.0,0,1,1)",
            "line 10: expected the number of a layer, at least 0, got '1.0'",
        ),
        (
            "link(1,0,1,-1.473814)\n",
            "",
            r"line 21: expected link\(1,0,1,weight\) and 0 more like it",
        ),
    ],
)
def test_malformed_files(tmp_path, old, new, message):
    assert PUBLISHED.count(old) == 1
    with pytest.raises(CheckpointError, match=message) as error:
        read(tmp_path, PUBLISHED.replace(old, new))
    assert str(error.value).startswith(f"network file: {tmp_path / 'network.nn'}, line ")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", r"expected networkTopology\(layers;w0,w1,..\), got the end of the file"),
        ("comment(nothing)", "line 1: expected networkTopology"),
        (b"comment(\xff)", "expected text in UTF-8, got byte 0xff"),
    ],
)
def test_files_without_a_network(tmp_path, text, message):
    with pytest.raises(CheckpointError, match=message):
        read(tmp_path, text)


def test_places_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(CheckpointError, match="absent.nn: expected a file that can be read"):
        read_network(tmp_path / "absent.nn")
    with pytest.raises(CheckpointError, match="expected a file that can be read"):
        read_network(tmp_path)
    with pytest.raises(CheckpointError, match="expected a place that can be written"):
        write_network(SigmoidMLP([1, 1]), tmp_path / "absent" / "a.nn")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_is_not_written(tmp_path, number):
    network = SigmoidMLP([2, 1])
    path = write_network(network, tmp_path / "a.nn")
    before = path.read_bytes()
    next(network.parameters()).value[0, 1] = number
    with pytest.raises(ArgumentError, match="expected finite weights"):
        write_network(network, path)
    assert path.read_bytes() == before  # the file of before is whole


@pytest.mark.parametrize("name", ["a,b", "a)", "a\nnode(1,0,0)"])
def test_names_that_would_break_the_format(tmp_path, name):
    with pytest.raises(ArgumentError, match="no comma, bracket or line break"):
        write_network(SigmoidMLP([2, 1], name=name), tmp_path / "a.nn")
