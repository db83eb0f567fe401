"""Exercise 4: by the framework's own walk."""

import numpy as np

import tinygraph as tg


class Framework:
    def call(self, function, x, labels, *values):
        assert function == "tg_network"
        W1, b1, W2, b2, W3, b3 = leaves = [tg.Parameter(value) for value in values]
        h = tg.relu(tg.linear(tg.Tensor(x), W1, b1))
        h = tg.add(h, tg.relu(tg.linear(h, W2, b2)))
        loss = tg.cross_entropy(tg.linear(h, W3, b3), labels)
        nodes = tg.Graph(loss).nodes
        loss.backward()
        counts = [len(nodes), sum(node.requires_grad for node in nodes)]
        return [loss.item(), [np.asarray(leaf.grad) for leaf in leaves], counts]
