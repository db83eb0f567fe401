"""What goes wrong in exercise 4; of two that behave alike the first one is named."""

from pathlib import Path

from tinygraph_course.content.exercise import Edits, Mistake
from tinygraph_course.content.marks import Gap, parts

_SOLUTION = Path(__file__).with_name("solution.py").read_text(encoding="utf-8")
_BODIES = {part.step: "\n".join(part.lines) for part in parts(_SOLUTION) if isinstance(part, Gap)}


def _body(step: int, text: str) -> Edits:
    """Another body of the function of a step."""
    return [(_BODIES[step], "\n".join("    " + line for line in text.strip("\n").splitlines()))]


_SEEN = "elif node not in seen:"
_NODES = "return nodes"
_WALK = "for node in reversed(order([output])):"
_ADD = "pending[x] = pending[x] + part if x in pending else part"
_BEGIN = "pending, found = {output: np.ones_like(output.value)}, {}"
_ASKED = "if node not in pending or not node.requires_grad:"
_NEED = "if node.requires_grad if not node.inputs else any(x in found for x in node.inputs):"
_LAST, _KEPT = "last[x] = i", "if x.inputs:\n            free[i].append(x)"

_REVERSED_QUEUE = """
nodes, waiting = [], list(outputs)
seen = set(outputs)
while waiting:
    node = waiting.pop({end})
    nodes.append(node)
    for x in node.inputs:
        if x not in seen:
            seen.add(x)
            waiting.append(x)
return nodes[::-1]
"""
_LOOKED_UP = """
nodes, stack = [], [(node, False) for node in outputs]
while stack:
    node, inputs_done = stack.pop()
    if node in nodes:
        continue
    if inputs_done:
        nodes.append(node)
    else:
        stack.append((node, True))
        stack.extend((x, False) for x in node.inputs)
return nodes
"""
_RECURSIVE = """
nodes, seen = [], set()

def visit(node):
    if node not in seen:
        seen.add(node)
        for x in node.inputs:
            visit(x)
        nodes.append(node)

for node in outputs:
    visit(node)
return nodes
"""
_FIRST_SIGHT = """
found, pending, waiting = {{}}, {{output: np.ones_like(output.value)}}, [output]
seen = {{output}}
while waiting:
    node = waiting.pop({end})
    if not node.requires_grad:
        continue
    if not node.inputs:
        found[node] = pending[node]
        continue
    for x, part in local(node, pending[node]):
        pending[x] = pending[x] + part if x in pending else part
        {leaf}
        if x not in seen:
            seen.add(x)
            waiting.append(x)
return found
"""
_LATE_LEAVES = "if x in found: found[x] = pending[x]"
_EVERY_PATH = """
found, waiting = {}, [(output, np.ones_like(output.value))]
while waiting:
    node, gradient = waiting.pop()
    if node.inputs and node.requires_grad:
        waiting.extend(local(node, gradient))
    elif node.requires_grad:
        found[node] = found[node] + gradient if node in found else gradient
return found
"""
_EVERY_PATH_BY_CALLS = """
found = {}

def walk(node, gradient):
    if not node.requires_grad:
        return
    if not node.inputs:
        found[node] = found[node] + gradient if node in found else gradient
        return
    for x, part in local(node, gradient):
        walk(x, part)

walk(output, np.ones_like(output.value))
return found
"""
_CALLS_FOR_USERS = """
nodes, seen = [], set()

def visit(node):
    if node not in seen:
        seen.add(node)
        for x in node.inputs:
            visit(x)
        nodes.append(node)

visit(output)
pending, found = {output: np.ones_like(output.value)}, {}
for node in reversed(nodes):
    if node in pending and node.requires_grad and node.inputs:
        for x, part in local(node, pending[node]):
            pending[x] = pending[x] + part if x in pending else part
    elif node in pending and node.requires_grad:
        found[node] = pending[node]
return found
"""

MISTAKES = [
    Mistake(
        1,
        "users-first",
        "Your nodes stand before their inputs: a node is written down when it is met. It has to\n"
        "wait until all of its inputs are.",
        [(_NODES, "return nodes[::-1]")],
    ),
    Mistake(
        1,
        "reversed-at-first-sight",
        "You note a node when you first meet it, and turn the list round at the end. Where it is\n"
        "used again, further down, that was too early: it stands behind a user.",
        _body(1, _REVERSED_QUEUE.format(end=0)),
        [_body(1, _REVERSED_QUEUE.format(end=""))],
    ),
    Mistake(
        1,
        "visited-again",
        "A node that is used twice is visited twice, and what lies below it too. In a ladder of\n"
        "such nodes that is 2**depth visits: remember whom you have met.",
        [(_SEEN, "else:")],
    ),
    Mistake(
        1,
        "recursion",
        "A function that calls itself for each input overflows where a graph is deep: Python\n"
        "allows some thousand calls inside each other. Keep a stack of your own.",
        _body(1, _RECURSIVE),
    ),
    Mistake(
        1,
        "by-value",
        "Two nodes with equal numbers are taken for one: `==`, and `in` for a list, compare\n"
        "values. Nodes are told apart by what they are: `is`, a set, or a dict.",
        [
            ("nodes, seen = [], set()", "nodes, seen = [], []"),
            (
                "seen.add(node)\n            stack.append",
                "seen.append(node)\n            stack.append",
            ),
        ],
        [_body(1, _LOOKED_UP)],
    ),
    Mistake(
        1,
        "first-output-alone",
        "You begin at one of the outputs alone: what only the others depend on is missing.",
        [("for node in outputs]", "for node in outputs[:1]]")],
        [[("for node in outputs]", "for node in outputs[-1:]]")]],
    ),
    Mistake(
        1,
        "leaves-missing",
        "The leaves are missing. They are nodes too, those without inputs.",
        [(_NODES, "return [node for node in nodes if node.inputs]")],
    ),
    Mistake(
        1,
        "constants-missing",
        "You leave out what requires no gradient. The order is that of the forward pass too,\n"
        "which needs every node.",
        [(_NODES, "return [node for node in nodes if node.requires_grad]")],
    ),
    Mistake(
        1,
        "outputs-missing",
        "The outputs themselves are missing: they are the last nodes.",
        [(_NODES, "return [node for node in nodes if node not in set(outputs)]")],
    ),
    Mistake(
        2,
        "overwritten",
        "Where a node is used twice the second gradient replaces the first, and half of it is\n"
        "lost. The gradients of all uses are added up.",
        [(_ADD, "pending[x] = part")],
    ),
    Mistake(
        2,
        "passed-on-early",
        "A node passes its gradient on before all of its uses have told it theirs; what comes\n"
        "later is lost. Go through the order backwards: then all users come first.",
        _body(2, _FIRST_SIGHT.format(end=0, leaf="")),
        [
            _body(2, _FIRST_SIGHT.format(end=0, leaf=_LATE_LEAVES)),
            _body(2, _FIRST_SIGHT.format(end="", leaf="")),
            _body(2, _FIRST_SIGHT.format(end="", leaf=_LATE_LEAVES)),
        ],
    ),
    Mistake(
        2,
        "every-path",
        "You follow each way from the output down by itself. The sums are right, and a ladder of\n"
        "n nodes has 2**n ways: add up in a node first, then pass on once.",
        _body(2, _EVERY_PATH),
        [_body(2, _EVERY_PATH_BY_CALLS)],
    ),
    Mistake(
        2,
        "recursion-on-the-way-back",
        "A function that calls itself for each input overflows where a graph is deep. `order`\n"
        "gives you all nodes: a loop over them will do.",
        _body(2, _CALLS_FOR_USERS),
    ),
    Mistake(
        2,
        "adds-into-what-it-was-given",
        "pending[x] += part writes into an array of which `local` may have given the same to\n"
        "other inputs: their gradient changes too. Make a new one: pending[x] + part.",
        [
            (
                _ADD,
                "if x in pending:\n                pending[x] += part\n"
                "            else:\n                pending[x] = part",
            )
        ],
    ),
    Mistake(
        2,
        "forwards",
        "You walk from the inputs to the output: nobody has told the first nodes anything yet.\n"
        "The gradient comes from the output.",
        [(_WALK, "for node in order([output]):")],
    ),
    Mistake(
        2,
        "constants-differentiated",
        "You ask `local` for nodes that no gradient reaches, or give constants a gradient. Only\n"
        "what lies between the output and a leaf that requires one takes part.",
        [
            (
                _BEGIN,
                f"{_BEGIN}\n    for node in order([output])[:-1]:\n"
                "        pending[node] = np.zeros_like(node.value)",
            ),
            (_ASKED, "if node not in pending:"),
        ],
        [
            [
                (
                    "        if not node.inputs:\n            found[node] = gradient",
                    "        if not node.inputs:\n            found[node] = gradient\n"
                    "            for leaf in order([output]):\n"
                    "                if not (leaf.inputs or leaf.requires_grad):\n"
                    "                    found[leaf] = np.zeros_like(leaf.value)",
                )
            ]
        ],
    ),
    Mistake(
        2,
        "nodes-too",
        "Your answer has the gradients of all nodes. Asked for are those of the leaves, the ones\n"
        "without inputs.",
        [
            (
                "if not node.inputs:\n            found[node] = gradient\n            continue",
                "found[node] = gradient\n        if not node.inputs:\n            continue",
            )
        ],
    ),
    Mistake(
        2,
        "ignores-upstream",
        "You give `local` ones at each node. That is the derivative of one op alone; the chain\n"
        "rule hands down what has come so far.",
        [("local(node, gradient)", "local(node, np.ones_like(node.value))")],
    ),
    Mistake(
        2,
        "begins-with-the-value",
        "You begin with the value of the output. Its gradient by itself is 1, everywhere.",
        [(_BEGIN, "pending, found = {output: output.value.copy()}, {}")],
    ),
    Mistake(
        2,
        "told-apart-by-value",
        "Nodes with equal numbers share a gradient in your dict, or one of them has none. The key\n"
        "is the node itself, not what it holds.",
        [
            (
                _ADD,
                "x = next((k for k in pending if np.array_equal(k.value, x.value)), x)\n"
                f"            {_ADD}",
            )
        ],
    ),
    Mistake(
        3,
        "all-nodes",
        "You take every node. A gradient has no business with constants, nor with what is made of\n"
        "constants alone.",
        [(_NEED, "if True:")],
    ),
    Mistake(
        3,
        "all-inputs",
        "You take a node only if all of its inputs are needed. One is enough: through it the\n"
        "result depends on a leaf.",
        [
            (
                "node.requires_grad if not node.inputs else any(x",
                "node.requires_grad if not node.inputs else all(x",
            )
        ],
    ),
    Mistake(
        3,
        "leaves-alone",
        "You have the leaves alone. On its way to them a gradient goes through the nodes above.",
        [(_NEED, "if node.requires_grad and not node.inputs:")],
    ),
    Mistake(
        3,
        "without-leaves",
        "The leaves are missing: a gradient ends there, and they are asked for.",
        [
            (
                "found.add(node)\n    return found",
                "found.add(node)\n    return {x for x in found if x.inputs}",
            )
        ],
    ),
    Mistake(
        3,
        "next-to-a-leaf",
        "You look at the inputs that are leaves alone: what lies higher up is missing. The answer\n"
        "of an input counts, whatever it is.",
        [
            (
                _NEED,
                "if (\n            node.requires_grad if not node.inputs\n"
                "            else any(not x.inputs and x.requires_grad for x in node.inputs)\n"
                "        ):",
            )
        ],
    ),
    Mistake(
        3,
        "output-alone-asked",
        "You take every node if the output needs a gradient. Constants below it do not.",
        [(_NEED, "if output.requires_grad:")],
    ),
    Mistake(
        3,
        "constants",
        "You have what needs no gradient: the other nodes are asked for.",
        [(_NEED, "if not node.requires_grad:")],
    ),
    Mistake(
        4,
        "first-use",
        "You free a node after its first use; it may be used again further on. The last use\n"
        "counts.",
        [(_LAST, "last.setdefault(x, i)")],
    ),
    Mistake(
        4,
        "leaves-freed",
        "You free leaves too. They are data and parameters: the next batch needs them.",
        [(_KEPT, "free[i].append(x)")],
    ),
    Mistake(
        4,
        "outputs-freed",
        "You free what no node uses: these are the outputs, somebody wants to read them.",
        [("last = {}", "last = {node: i for i, node in enumerate(nodes)}")],
        [
            [
                (
                    "return free",
                    "if nodes[-1].inputs:\n        free[-1].append(nodes[-1])\n    return free",
                )
            ]
        ],
    ),
    Mistake(
        4,
        "one-too-late",
        "You free a node one step too late: its last user is computed by then.",
        [(_LAST, "last[x] = min(i + 1, len(nodes) - 1)")],
    ),
    Mistake(
        4,
        "one-too-early",
        "You free a node before its last user is computed, which still has to read it.",
        [(_LAST, "last[x] = i - 1")],
    ),
    Mistake(
        4,
        "after-the-next",
        "You free the inputs of each node as if it were their last user, or once for each use.\n"
        "Others may come: note the last one, then free once.",
        _body(4, "return [[x for x in node.inputs if x.inputs] for node in nodes]"),
        [_body(4, "return [[x for x in set(node.inputs) if x.inputs] for node in nodes]")],
    ),
    Mistake(
        4,
        "all-at-the-end",
        "You free everything when the last node is computed. Most of it could have gone before.",
        [(_LAST, "last[x] = len(nodes) - 1")],
    ),
    Mistake(
        4,
        "users-for-nodes",
        "Your lists hold the users. Asked for is whose value is free: their inputs.",
        [("free[i].append(x)", "free[i].append(nodes[i])")],
    ),
    Mistake(
        4,
        "a-list-for-each-node-itself",
        "Your i-th list is about the node i itself. It belongs to the moment i: whose last use is\n"
        "the computation of nodes[i]?",
        [("free[i].append(x)", "free[[n is x for n in nodes].index(True)].append(nodes[i])")],
    ),
]
