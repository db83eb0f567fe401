"""Recurrent layers, one number after the other.  Nothing here calls tinygraph."""

import math

import numpy as np


def logistic(v):
    return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))


def steps_of(cell):
    """A layer from `cell(i, h, state)`: the gates' numbers from input and state, the state."""

    def layer(gi, s0, w, b=None, **settings):
        (steps, samples, _), (gates, units) = gi.shape, (len(w) // w.shape[1], w.shape[1])
        y = np.zeros((len(s0), steps, samples, units))
        for n in range(samples):
            state = [[float(v) for v in part[n]] for part in s0]
            for t in range(steps):
                after = [[0.0] * units for _ in state]
                for u in range(units):
                    rows = [g * units + u for g in range(gates)]
                    i = [float(gi[t, n, r]) for r in rows]
                    h = [sum(w[r, k] * state[0][k] for k in range(units)) for r in rows]
                    h = [v + (0 if b is None else b[r]) for v, r in zip(h, rows, strict=True)]
                    own = cell(i, h, [part[u] for part in state], **settings)
                    for part, value in zip(after, own, strict=True):
                        part[u] = value
                state = after
                y[:, t, n] = state
        return y

    return layer


def _lstm(i, h, state):
    a = [p + q for p, q in zip(i, h, strict=True)]
    c = logistic(a[1]) * state[1] + logistic(a[0]) * math.tanh(a[2])
    return logistic(a[3]) * math.tanh(c), c


def _gru(i, h, state):
    r, z = logistic(i[0] + h[0]), logistic(i[1] + h[1])
    return ((1 - z) * math.tanh(i[2] + r * h[2]) + z * state[0],)


def _rnn(i, h, state, nonlinearity="tanh"):
    a = i[0] + h[0]
    return (math.tanh(a) if nonlinearity == "tanh" else max(a, 0.0),)


lstm_layer, gru_layer, rnn_layer = steps_of(_lstm), steps_of(_gru), steps_of(_rnn)
