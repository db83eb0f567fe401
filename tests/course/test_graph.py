"""Exercise 4: it is the walk of the framework."""

import numpy as np
import pytest
from hypothesis import given, settings

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph.testing import strategies as ts
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.graph.steps import GRAPHS, program, wrong_with

GRAPH = find("graph")
SOLUTION = module(GRAPH.solution + GRAPH.harness)


def with_body(function, body):
    """The solution with another body of one function."""
    text = GRAPH.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


@settings(max_examples=60)
@given(ts.graphs())
def test_the_solution_is_the_walk_of_the_framework(problem):
    leaves = problem.nodes()
    outputs = list(problem.build(leaves))
    nodes, ours = tg.Graph(*outputs).nodes, SOLUTION.order(outputs)
    assert set(ours) == set(nodes) and len(ours) == len(nodes)
    place = {node: i for i, node in enumerate(ours)}
    assert all(place[x] < place[node] for node in ours for x in node.inputs)
    for output in outputs:
        below = tg.Graph(output).nodes
        assert SOLUTION.needed(output) == {node for node in below if node.requires_grad}
        found = SOLUTION.backward(output)
        if output.requires_grad:
            output.backward(np.ones(output.shape), retain_graph=True)
        assert set(found) == {leaf for leaf in leaves if leaf.grad is not None}
        for leaf, gradient in found.items():
            np.testing.assert_allclose(gradient, leaf.grad, rtol=1e-12, atol=1e-15)
            leaf.grad = None


@settings(max_examples=60)
@given(ts.graphs())
def test_what_is_released_is_read_no_more(problem):
    """A forward pass that forgets what the solution releases: it ends, and holds no more."""
    leaves = problem.nodes()
    outputs = problem.build(leaves)
    nodes = tg.Graph(*outputs).nodes
    held, kept = set(), {node for node in nodes if not node.inputs}
    for node, free in zip(nodes, SOLUTION.release(nodes), strict=True):
        assert all(x in held or x in kept for x in node.inputs)
        if node.inputs:
            held.add(node)
        assert set(free) <= held and len(set(free)) == len(free)
        held -= set(free)
    used = {x for node in nodes for x in node.inputs}
    assert held == {node for node in nodes if node.inputs and node not in used}


def test_by_hand_as_on_the_page():
    assert SOLUTION.tg_backward(*program("a = [3]", "b = neg(a)", "c = mul(a, b)"))[1][0] == -6
    lines = "a = [2]", "b = neg(a)", "c = neg(b)", "d = add(b, c)", "e = mul(d, a)"
    assert SOLUTION.tg_release(*program(*lines)) == [[], [], [], [1, 2], [3]]
    ladder = program("a = [1]", "b = add(a, a)", "c = add(b, b)", "d = add(c, c)")
    assert SOLUTION.tg_backward(*ladder)[1:] == [[8], 3]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0, 1, 2], ""),
        ([1, 0, 2], "b stands before its input a"),
        ([0, 1], "c is missing"),
        ([0, 1, 1, 2], "b stands there twice"),
        ([0, 1, 2, -1], "n-1 is below no output"),
    ],
)
def test_an_order_is_judged_by_what_it_is_for(numbers, words):
    assert wrong_with([numbers, [[], [0], [0, 1]], [2]])[0] == words


def test_each_graph_of_the_cases_is_what_its_lines_say():
    assert GRAPHS[3][1] == [False, True] and GRAPHS[3][2] == [["mul", [0, 1], {}]]
    assert GRAPHS[-1][3] == [len(GRAPHS[-1][2])]


LONG = "nodes.append(node)\n        elif"
STALLED = (
    "nodes.append(node)\n            while len(nodes) > 99_000:\n                pass\n        elif"
)


@pytest.mark.second
def test_the_chain_of_100_000_is_walked_through(tmp_path):
    """Whoever hangs behind 99,000 nodes is told so: nothing shorter shows it."""
    failure = of(GRAPH, GRAPH.solution.replace(LONG, STALLED), tmp_path).failure
    assert failure.case == "a chain of 100,000 nodes" and "no end after" in failure.text
    assert "len(nodes) > 99_000" in failure.source or failure.source == "pass"


GIVEN_AWAY = {
    "grad": "return dict(zip(leaves, grad(output, leaves, np.ones(output.shape)), strict=True))",
    "above": "(above,)[0].backward([output], [np.ones(output.shape)])\n"
    "    return {leaf: leaf.grad for leaf in leaves}",
}


@pytest.mark.second
@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_the_walk_of_the_framework_is_not_there(name, tmp_path):
    place = {"grad": "autograd", "above": "operators"}[name]
    body = f"""
    from tinygraph.{place} import {name}
    leaves = [node for node in order([output]) if not node.inputs and node.requires_grad]
    {GIVEN_AWAY[name]}
"""
    outcome = of(GRAPH, with_body("backward", body), tmp_path)
    assert outcome.step == 2
    assert outcome.failure.text.startswith(("NameError", "AttributeError"))
