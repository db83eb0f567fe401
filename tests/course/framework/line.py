"""Exercise 2: lines by the framework's linear layer, loss and backward."""

import numpy as np

import tinygraph as tg


def descended(x, y, w, lr, steps):
    for _ in range(steps):
        leaf = tg.Tensor(w, requires_grad=True)
        tg.half_squared_error(tg.linear(tg.Tensor(x), leaf[None, 1:], leaf[:1])[:, 0], y).backward()
        w = w - lr * leaf.grad
    return w


class Framework:
    def call(self, function, *arguments):
        if function == "tg_layer":
            weights, x, targets, part = arguments
            lr = part * self.call("lr_limit", x)
            pairs = zip(weights, targets.T, strict=True)
            return np.stack([descended(x, y, w, lr, 1) for w, y in pairs])
        x, *others = arguments
        A = np.insert(x, 0, 1, axis=1)
        if function == "lr_limit":
            return 2 / np.linalg.norm(A, 2) ** 2
        if function == "descend":
            return descended(x, *others)
        if function == "closed_form":
            return np.linalg.pinv(A) @ others[0]
        assert function == "loss"
        y, w = others
        return tg.half_squared_error(A @ w, y).item()
