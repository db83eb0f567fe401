"""The engine: nodes, ops, the graph, and who runs them.  Read tensor.py, op.py, graph.py first.

    tensor, parameter, feeds    what a node is, and what a leaf holds
    op, promises, memory        what an op is, what it promises, where it gets its arrays
    graph, running, autograd    forward in topological order, backward in reverse
    operators, assigned, hooks  what stands behind `+`, `x.grad = g`, `register_hook`
    device, random              where, and from which numbers

Nothing here knows an op of ops/, or a kernel: these are higher floors.
"""
