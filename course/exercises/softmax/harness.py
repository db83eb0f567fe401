"""What tries steps 5 and 6: models of the framework with given weights, and its SGD.

It stands behind the learner's file.
"""


class StepTooEarly(Exception):
    """A backward after a step that has written over what it needs: the framework refuses it."""


class tg_Model(tg.nn.Module):
    """Linear layers without bias, ReLU between them; copies of the weights (outputs, inputs)."""

    def __init__(self, weights):
        super().__init__()
        self.weights = tg.nn.ParameterList([tg.Parameter(w.copy()) for w in weights])

    def forward(self, x):
        first, *rest = self.weights
        x = tg.linear(x, first)
        for w in rest:
            x = tg.linear(tg.relu(x), w)
        return x


def tg_train(weights, batches, lr):
    """What `train` returns, and the weights after it."""
    model = tg_Model(weights)
    try:
        losses = train(model, batches, tg.optim.SGD(model.parameters(), lr=lr))
    except tg.errors.GraphError as error:
        if "overwritten since, by an optimiser's step" not in str(error):
            raise
        raise StepTooEarly(str(error)).with_traceback(error.__traceback__) from None
    return [losses, [w.numpy() for w in model.weights]]


def tg_learn(starts, batches, test, lr, epochs):
    """What `learn` returns for a model of each of some starting weights."""
    shares = []
    for weights in starts:
        model = tg_Model(weights)
        optimizer = tg.optim.SGD(model.parameters(), lr=lr)
        shares.append(learn(model, batches, test, optimizer, epochs))
    return shares
