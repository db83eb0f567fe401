"""What tries step 4: one step, or many of them from random weights.

It stands behind the learner's file.
"""


def tg_step(times, x, y, W1, b1, W2, b2, lr):
    """The parameters after one step; of many steps, whether all outputs are on their y's side."""
    parameters = W1, b1, W2, b2
    if times == 1:
        return step(x, y, *parameters, lr)
    for _ in range(times):
        parameters = step(x, y, *parameters, lr)
    o = forward(x, *parameters)[1]
    return bool(((o > 0.5) == (y > 0.5)).all())
