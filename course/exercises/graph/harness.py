"""What tries the learner's functions: it builds graphs, and calls nodes by their numbers.

It stands behind the learner's file.  A graph comes as (leaves, trainable, steps, outputs): arrays,
bools, (op, inputs, options) for each other node, numbers of nodes.
"""

import numpy as tg_np

import tinygraph as tg_framework

tg_local = local
tg_long = [tg_framework.Tensor([1.0], requires_grad=True)]


def tg_built(leaves, trainable, steps, outputs):
    """All nodes of a graph, and its outputs."""
    nodes = [
        tg_framework.Tensor(a, requires_grad=wanted)
        for a, wanted in zip(leaves, trainable, strict=True)
    ]
    for op, inputs, options in steps:
        nodes.append(getattr(tg_framework, op)(*[nodes[i] for i in inputs], **options))
    return nodes, [nodes[i] for i in outputs]


def tg_numbers(nodes, found):
    """The numbers of some nodes, -1 for another; what is no list, tuple or set stays."""
    if not isinstance(found, (list, tuple, set, frozenset)):
        return found
    known = {id(node): i for i, node in enumerate(nodes)}
    return [known.get(id(node), -1) for node in found]


def tg_order(*graph):
    """`order`, besides inputs and outputs."""
    nodes, outputs = tg_built(*graph)
    known = {id(node): i for i, node in enumerate(nodes)}
    inputs = [[known[id(x)] for x in node.inputs] for node in nodes]
    return [tg_numbers(nodes, order(outputs)), inputs, graph[3]]


def tg_backward(*graph):
    """`backward` as numbers of leaves, their gradients, and how often `local` was called."""
    global local
    nodes, outputs = tg_built(*graph)
    calls = []

    def counted(node, upstream):
        calls.extend([node] if node.requires_grad and node.inputs else [])
        return tg_local(node, upstream)

    local = counted
    try:
        found = backward(outputs[0])
    finally:
        local = tg_local
    if not isinstance(found, dict):
        return found
    pairs = zip(tg_numbers(nodes, list(found)), found.values(), strict=True)
    pairs = sorted(pairs, key=lambda pair: pair[0])
    gradients = [tg_np.array(g.value if hasattr(g, "value") else g) for _, g in pairs]
    return [[number for number, _ in pairs], gradients, len(calls)]


def tg_needed(*graph):
    """`needed` of the first output."""
    nodes, outputs = tg_built(*graph)
    found = tg_numbers(nodes, needed(outputs[0]))
    return sorted(found) if isinstance(found, list) else found


def tg_release(*graph):
    """`release` of all nodes, in the order in which they were made."""
    nodes, _ = tg_built(*graph)
    free = release(list(nodes))
    if not isinstance(free, (list, tuple)):
        return free
    lists = [tg_numbers(nodes, some) for some in free]
    return [sorted(some) if isinstance(some, list) else some for some in lists]


def tg_chain(length):
    """Make the chain so long that `tg_long_order` and `tg_long_backward` can walk through it.

    Its nodes are copies of one that `neg` has made, each with the one before as its input: to
    compute all of them would take longer than both walks.
    """
    kind = tg_framework.Tensor
    made = tg_framework.neg(tg_long[0])
    fields = {name: getattr(made, name) for name in kind.__slots__ if name != "__weakref__"}
    while len(tg_long) <= length:
        node = kind.__new__(kind)
        for name, value in fields.items():
            setattr(node, name, value)
        node.inputs = (tg_long[-1],)
        tg_long.append(node)


def tg_long_order(length):
    """Whether `order` gives the chain as it was made."""
    return list(map(id, order([tg_long[length]]))) == list(map(id, tg_long[: length + 1]))


def tg_long_backward(length):
    """The gradient of its first node."""
    return float(tg_np.sum(backward(tg_long[length])[tg_long[0]]))


def tg_network(x, labels, *parameters):
    """A batch in the network: its loss, a gradient for each parameter, and how many nodes.

    64 pixels, a layer of 32, a second one whose result is added to its input, 10 logits.
    """
    tg, leaves = tg_framework, [tg_framework.Parameter(value) for value in parameters]
    W1, b1, W2, b2, W3, b3 = leaves
    h = tg.relu(tg.linear(tg.Tensor(x), W1, b1))
    h = h + tg.relu(tg.linear(h, W2, b2))
    loss = tg.cross_entropy(tg.linear(h, W3, b3), tg.Tensor(labels))
    found = backward(loss)
    counts = [len(order([loss])), len(needed(loss))]
    return [loss.item(), [tg_np.asarray(found[leaf]) for leaf in leaves], counts]
