"""What tries steps 3 and 4: dropout with numbers that are known, and steps of the optimizer.

It stands behind the learner's file.
"""

from itertools import cycle


def tg_dropout(x, p, numbers, gy):
    """y, and the gradient of x; `uniform` gives one array of numbers after the other."""
    arrays = cycle(numbers)

    def uniform(shape):
        return next(arrays).ravel()[: int(np.prod(shape))].reshape(shape).copy()

    made = dropout(x, p, uniform)
    if not isinstance(made, (tuple, list)) or len(made) != 2 or not callable(made[1]):
        return made
    return [made[0], made[1](gy)]


def tg_momentum(values, gradients, rates, momentum, pause):
    """The values of all parameters after each step, and their gradients after the last one.

    `gradients` and `rates` are those of each step.  Before the step number `pause`, counted from 0,
    another optimizer takes over, with the state of the first one.
    """
    parameters = [tg.Parameter(value.copy()) for value in values]
    optimizer, after = Momentum(parameters, rates[0], momentum), []
    for t, (some, lr) in enumerate(zip(gradients, rates, strict=True)):
        if t == pause:
            saved = optimizer.state_dict()
            optimizer = Momentum(parameters, lr, momentum)
            optimizer.load_state_dict(saved)
        optimizer.groups[0]["lr"] = lr
        for parameter, g in zip(parameters, some, strict=True):
            parameter.grad = g.copy()
        optimizer.step()
        after.append([parameter.numpy().copy() for parameter in parameters])
    return [after, [parameter.grad.copy() for parameter in parameters]]
