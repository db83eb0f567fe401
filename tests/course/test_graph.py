"""Exercise 4: it is the walk of the framework; answers in other styles are right, or named."""

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

COUNTED = """
    users, waiting = {{}}, list(dict.fromkeys(outputs))
    below = {{id(x): x for x in waiting}}
    while waiting:
        node = waiting.pop()
        for x in node.inputs:
            users[id(x)] = users.get(id(x), 0) + 1
            if id(x) not in below:
                below[id(x)] = x
                waiting.append(x)
    ready = [x for x in below.values() if users.get(id(x), 0) == 0]
    result = []
    while ready:
        node = ready.pop()
        result.append(node)
        for x in node.inputs:
            users[id(x)] -= {less}
            if users[id(x)] == 0:
                ready.append(x)
    return {give}
"""
BACK = """
    grads = {{output: {first}}}
    for node in {walk}:
        if node.op is None or not node.requires_grad{also}:
            continue
        for child, part in local(node, {upstream}):
            {add}
    return {give}
"""
GOOD = {
    "first": "np.full(output.shape, 1, output.dtype)",
    "walk": "order([output])[::-1]",
    "also": "",
    "upstream": "grads[node]",
    "add": "grads[child] = np.add(grads.get(child, 0), part)",
    "give": "{k: g for k, g in grads.items() if k.op is None and k.requires_grad}",
}
RELEASE = """
    result = []
    for i, node in enumerate(nodes):
        later = {later}
        gone = [x for x in {among} if x.inputs and not any(x is y for n in later for y in n.inputs)]
        result.append({give})
    return result
"""
FREE = {
    "later": "nodes[i + 1 :]",
    "among": "dict.fromkeys(node.inputs)",
    "give": "gone",
}
RIGHT = {
    "users counted down": ("order", COUNTED.format(less=1, give="result[::-1]")),
    "iterators on a stack": (
        "order",
        """
    result, met = [], set()
    for top in outputs:
        if top in met:
            continue
        met.add(top)
        path = [(top, iter(top.inputs))]
        while path:
            node, inputs = path[-1]
            for x in inputs:
                if x not in met:
                    met.add(x)
                    path.append((x, iter(x.inputs)))
                    break
            else:
                result.append(node)
                path.pop()
    return result
""",
    ),
    "a dict with a default": ("backward", BACK.format(**GOOD)),
    "lists of parts, added up on arrival": (
        "backward",
        """
    parts = {id(output): [np.ones(output.shape, output.dtype)]}
    answer = {}
    for node in reversed(order([output])):
        mine = parts.get(id(node), [])
        if not mine or not node.requires_grad:
            continue
        total = sum(mine[1:], start=mine[0])
        if len(node.inputs) > 0:
            for x, g in local(node, total):
                parts.setdefault(id(x), []).append(g)
        else:
            answer[node] = total
    return answer
""",
    ),
    "a copy that is added into": (
        "backward",
        BACK.format(
            **{
                **GOOD,
                "add": "if child in grads: grads[child] += part\n"
                "            else: grads[child] = np.array(part)",
            }
        ),
    ),
    "the framework's flag": (
        "needed",
        "\n    return {node for node in order([output]) if node.requires_grad}\n",
    ),
    "a table of bools": (
        "needed",
        """
    table = {}
    for node in order([output]):
        table[node] = any([table[x] for x in node.inputs]) if node.inputs else node.requires_grad
    return [node for node, wanted in table.items() if wanted]
""",
    ),
    "asked of all later nodes": ("release", RELEASE.format(**FREE)),
    "from the end": (
        "release",
        """
    used, result = set(), []
    for node in reversed(nodes):
        new = {x for x in node.inputs if x.inputs} - used
        used |= new
        result.insert(0, list(new))
    return result
""",
    ),
}
WRONG = {  # function, body, name of the mistake
    "the list not turned round": ("order", COUNTED.format(less=1, give="result"), "users-first"),
    "levels by distance": (
        "order",
        """
    level, result, met = list(outputs), [], set()
    while level:
        following = []
        for node in level:
            if node not in met:
                met.add(node)
                result.insert(0, node)
                following += node.inputs
        level = following
    return result
""",
        "reversed-at-first-sight",
    ),
    "a generator that calls itself": (
        "order",
        """
    met = set()
    def below(node):
        if node in met:
            return
        met.add(node)
        for x in node.inputs:
            yield from below(x)
        yield node
    return [node for top in outputs for node in below(top)]
""",
        "recursion",
    ),
    "looked up in the list": (
        "order",
        """
    result, stack = [], [(x, 0) for x in outputs]
    while stack:
        node, state = stack.pop()
        if node in result:
            continue
        if state:
            result.append(node)
        else:
            stack += [(node, 1)] + [(x, 0) for x in node.inputs]
    return result
""",
        "by-value",
    ),
    "the last part alone": (
        "backward",
        BACK.format(**{**GOOD, "add": "grads.update({child: part})"}),
        "overwritten",
    ),
    "shared arrays": (
        "backward",
        BACK.format(
            **{
                **GOOD,
                "add": "g = grads.setdefault(child, part)\n"
                "            if g is not part or child in done: g += part\n"
                "            done.add(child)",
            }
        ).replace("    grads =", "    done = set()\n    grads =", 1),
        "adds-into-what-it-was-given",
    ),
    "ones for all": (
        "backward",
        BACK.format(**{**GOOD, "upstream": "np.ones(node.shape)", "also": " or node not in grads"}),
        "ignores-upstream",
    ),
    "everything that has a gradient": (
        "backward",
        BACK.format(**{**GOOD, "give": "grads if output.requires_grad else {}"}),
        "nodes-too",
    ),
    "its own value first": (
        "backward",
        BACK.format(**{**GOOD, "first": "np.array(output.value)"}),
        "begins-with-the-value",
    ),
    "a queue of ways": (
        "backward",
        """
    from collections import deque
    answer, queue = {}, deque([(output, np.ones_like(output.value))])
    while queue:
        node, g = queue.popleft()
        if not node.requires_grad:
            continue
        if node.inputs:
            queue.extend(local(node, g))
        else:
            answer[node] = answer.get(node, 0) + g
    return answer
""",
        "every-path",
    ),
    "everything below": ("needed", "\n    return set(order([output]))\n", "all-nodes"),
    "every input has to": (
        "needed",
        """
    table = {}
    for node in order([output]):
        wanted = [table[x] for x in node.inputs] or [node.requires_grad]
        table[node] = min(wanted)
    return {node for node in table if table[node]}
""",
        "all-inputs",
    ),
    "leaves as well": (
        "release",
        RELEASE.format(**FREE).replace("x.inputs and not any", "not any"),
        "leaves-freed",
    ),
    "before it is read": (
        "release",
        "\n    last = {x: i for i, n in enumerate(nodes) for x in n.inputs}\n"
        "    out = [[x for x in last if x.inputs and last[x] == i + 1]"
        " for i in range(len(nodes))]\n    return out\n",
        "one-too-early",
    ),
    "after each use": (
        "release",
        "\n    return [[x for x in {*node.inputs} if x.op is not None] for node in nodes]\n",
        "after-the-next",
    ),
}
OUTSIDE = {
    "constants twice": (
        "order",
        """
    nodes, seen, stack = [], set(), [(node, False) for node in outputs]
    while stack:
        node, done = stack.pop()
        if done:
            nodes.append(node)
            if not node.requires_grad:
                nodes.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((x, False) for x in node.inputs)
    return nodes
""",
    ),
    "the mean of the parts": (
        "backward",
        BACK.format(**{**GOOD, "add": "grads[child] = (grads.get(child, part) + part) / 2"}),
    ),
    "twice as much": (
        "backward",
        BACK.format(**{**GOOD, "upstream": "2 * grads[node]"}),
    ),
    "those with two inputs": (
        "needed",
        "\n    return {n for n in order([output]) if n.requires_grad and len(n.inputs) != 1}\n",
    ),
    "half of the graph": (
        "needed",
        "\n    nodes = order([output])\n"
        "    return {n for n in nodes[len(nodes) // 2 :] if n.requires_grad}\n",
    ),
    "only what has one user": (
        "release",
        """
    uses = [x for node in nodes for x in node.inputs]
    return [[x for x in node.inputs if x.inputs and sum(x is u for u in uses) == 1]
            for node in nodes]
""",
    ),
}


def with_body(function, body):
    """The solution with another body of one function."""
    text = GRAPH.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(GRAPH, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(GRAPH, with_body(function, body), tmp_path).failure
    assert failure.mistake.name == name and failure.sure, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_mistakes_outside_of_the_catalogue_are_never_named_surely(style, tmp_path):
    failure = of(GRAPH, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None
    assert failure.mistake is None or not failure.sure, failure


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
    assert outcome.step == 2 and outcome.failure.text.startswith("NameError")
