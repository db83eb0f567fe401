"""Exercise 4: how a graph is walked through, forwards and backwards.

A node is a tensor of the framework:

    node.inputs          the nodes that it was computed from; () for a leaf
    node.value           its array
    node.requires_grad   of a leaf: whether its gradient is asked for; if not, it is a constant

A node is a fine key of a dict or a set: it is the same as itself alone.  But `==` compares numbers.
"""

import numpy as np

from tinygraph.autograd import local_gradients


def local(node, upstream):
    """Given: a list of (input, gradient), from the gradient of a node to what its op passes on.

    An input that needs none does not stand there, so of constants the list is empty; one that is
    used twice stands there twice.  The arrays may be one another's, or `upstream` itself: they are
    not to be changed.
    """
    return local_gradients(node, upstream) if node.requires_grad and node.inputs else []


def order(outputs):
    """Step 1: a list of all nodes that the outputs depend on, each once, behind all of its inputs.

    The outputs, a list of nodes, are among them.  Graphs may be 100,000 nodes deep.
    """
    # BEGIN SOLUTION 1: a stack of your own; a node is written down when its inputs are done
    nodes, seen = [], set()
    stack = [(node, False) for node in outputs]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            nodes.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((x, False) for x in node.inputs)
    return nodes
    # END SOLUTION


def backward(output):
    """Step 2: a dict with the gradient of `output` for each leaf below it that requires one.

    The gradient of `output` by itself is an array of ones.  `local` is called once for each node
    that has something to pass on.
    """
    # BEGIN SOLUTION 2: in which order has a node all it waits for before it passes on?
    pending, found = {output: np.ones_like(output.value)}, {}
    for node in reversed(order([output])):
        if node not in pending or not node.requires_grad:
            continue
        gradient = pending.pop(node)
        if not node.inputs:
            found[node] = gradient
            continue
        for x, part in local(node, gradient):
            pending[x] = pending[x] + part if x in pending else part
    return found
    # END SOLUTION


def needed(output):
    """Step 3: a set of the nodes below `output`, itself among them, that a gradient goes through.

    A leaf is one if it requires a gradient, any other node if one of its inputs is.
    """
    # BEGIN SOLUTION 3: inputs first, then the answer of a node is that of its inputs
    found = set()
    for node in order([output]):
        if node.requires_grad if not node.inputs else any(x in found for x in node.inputs):
            found.add(node)
    return found
    # END SOLUTION


def release(nodes):
    """Step 4: whose memory is free again, when, if nodes are computed in this order.

    A list with a list for each of the nodes: in the i-th stand those whose value is used for the
    last time when nodes[i] is computed.  Leaves stay, and so does what no node uses: the outputs.
    """
    # BEGIN SOLUTION 4: note who used a node; the last note stays
    last = {}
    for i, node in enumerate(nodes):
        for x in node.inputs:
            last[x] = i
    free = [[] for _ in nodes]
    for x, i in last.items():
        if x.inputs:
            free[i].append(x)
    return free
    # END SOLUTION
