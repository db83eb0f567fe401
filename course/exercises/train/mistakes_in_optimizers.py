"""What goes wrong in steps 4 to 6 of exercise 14, the optimizers."""

from tinygraph_course.content.exercise import Mistake

_TAKEN = 'buffer = state["buffer"]'
_DECAY = 'buffer *= hyper["momentum"]'
_ADDED = "buffer += grad"
_MOVED = 'value -= hyper["lr"] * buffer'

_M = "m = beta1 * m + (1 - beta1) * g\n"
_V = "v = beta2 * v + (1 - beta2) * g**2"
_HATS = "m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)"
_ADAM = "return p - lr * m_hat / (np.sqrt(v_hat) + eps), m, v"
_BEHIND = f"{_HATS}\n    {_ADAM}"

_EG = "eg = rho * eg + (1 - rho) * g**2"
_D = "d = np.sqrt(ed + eps) / np.sqrt(eg + eps) * g"
_ED = "ed = rho * ed + (1 - rho) * d**2"
_DELTA = "return p - d, eg, ed"

_UPHILL = "You go up: the step is subtracted, against the gradient."
_EXCHANGED = "Your weights are exchanged: the old mean weighs {0}, what is new 1 - {0}."

IN_OPTIMIZERS = [
    Mistake(
        4,
        "value-not-in-place",
        "The parameter stays as it is: value = ... gives a new array that name, and the old one\n"
        "is the parameter. value -= ..., or value[...] = ...",
        [(_MOVED, 'value = value - hyper["lr"] * buffer')],
    ),
    Mistake(
        4,
        "buffer-not-kept",
        "Your steps forget: the buffer in the state is 0 at every step. buffer = ... gives a new\n"
        "array that name; change the one in the state.",
        [
            (f"{_DECAY}\n        {_ADDED}", 'buffer = hyper["momentum"] * buffer + grad'),
        ],
    ),
    Mistake(
        4,
        "momentum-missing",
        "The buffer is the sum of all gradients: before the new one is added it is multiplied by\n"
        "the momentum.",
        [(f"{_DECAY}\n        ", "")],
    ),
    Mistake(
        4,
        "moved-by-the-old",
        "You move by the buffer as it was before this gradient. The buffer first, then the value.",
        [
            (
                f"{_DECAY}\n        {_ADDED}\n        {_MOVED}",
                f"{_MOVED}\n        {_DECAY}\n        {_ADDED}",
            )
        ],
    ),
    Mistake(
        4,
        "mean-of-gradients",
        "You weigh the new gradient with 1 - momentum: a running mean. Here it is added in full.",
        [(_ADDED, 'buffer += (1 - hyper["momentum"]) * grad')],
    ),
    Mistake(
        4,
        "gradient-times-momentum",
        "The momentum multiplies the new gradient too; it belongs to the old buffer alone.",
        [(f"{_DECAY}\n        {_ADDED}", f"{_ADDED}\n        {_DECAY}")],
        [[(f"{_DECAY}\n        {_ADDED}", 'buffer += hyper["momentum"] * grad')]],
    ),
    Mistake(
        4,
        "rate-in-the-buffer",
        "The learning rate stands in the buffer. When it changes, the old gradients keep the old\n"
        "one; outside of the buffer it holds for all.",
        [(_ADDED, 'buffer += hyper["lr"] * grad'), (_MOVED, "value -= buffer")],
    ),
    Mistake(
        4,
        "looks-ahead",
        "You step by grad + momentum * buffer: that is Nesterov's variant. Here it is the buffer.",
        [(_MOVED, 'value -= hyper["lr"] * (grad + hyper["momentum"] * buffer)')],
    ),
    Mistake(4, "up", _UPHILL, [(_MOVED, 'value += hyper["lr"] * buffer')]),
    Mistake(
        4,
        "state-shared",
        "All parameters share one buffer, or it is lost when the state is saved: it stands in the\n"
        'optimizer. Each parameter has a state of its own, state["buffer"].',
        [
            (
                _TAKEN,
                'if not hasattr(self, "shared"):\n            self.shared = 0 * value\n'
                "        buffer = self.shared",
            )
        ],
        [
            [
                (
                    f"{_DECAY}\n        {_ADDED}\n        {_MOVED}",
                    'old = self.shared if hasattr(self, "shared") else 0\n'
                    '        self.shared = buffer = hyper["momentum"] * old + grad\n'
                    f"        {_MOVED}",
                )
            ]
        ],
    ),
    Mistake(
        4,
        "state-under-another-name",
        "What you remember has a name in the state that `arrays` does not list, so that a saved\n"
        'state cannot be loaded. It is state["buffer"], which begins as zeros.',
        [(_TAKEN, 'buffer = state.setdefault("velocity", 0 * value)')],
    ),
    Mistake(
        4,
        "gradient-changed",
        "You write into grad. It belongs to the parameter: who reads it after the step, to log\n"
        "its size, or adds to it, finds another one.",
        [(_ADDED, "grad += buffer\n        buffer[...] = grad")],
        [[(_MOVED, f'{_MOVED}\n        grad *= hyper["lr"]')]],
    ),
    Mistake(
        5,
        "not-corrected",
        "Your means are not corrected, or one is not. They began at 0, and are too small in the\n"
        "first steps: divide m by 1 - beta1^t, and v by 1 - beta2^t.",
        [(_HATS, "m_hat, v_hat = m, v")],
        [
            [(_HATS, "m_hat, v_hat = m / (1 - beta1**t), v")],
            [(_HATS, "m_hat, v_hat = m, v / (1 - beta2**t)")],
        ],
    ),
    Mistake(
        5,
        "corrected-once-for-all",
        "You divide by 1 - beta, whatever t is: beta is raised to the power t.",
        [(_HATS, "m_hat, v_hat = m / (1 - beta1), v / (1 - beta2)")],
        [[(_HATS, "m_hat, v_hat = m / (1 - beta1 * t), v / (1 - beta2 * t)")]],
    ),
    Mistake(
        5,
        "steps-counted-from-zero",
        "You raise beta to the power t + 1, or t - 1. The first step has t = 1 already.",
        [(_HATS, _HATS.replace("**t", "** (t + 1)"))],
        [[(_HATS, _HATS.replace("**t", "** (t - 1)"))]],
    ),
    Mistake(
        5,
        "corrected-means-kept",
        "You return the corrected means; the next step would mix and correct them again. The\n"
        "corrected ones are for this step alone.",
        [(_ADAM, _ADAM.replace(", m, v", ", m_hat, v_hat"))],
    ),
    Mistake(
        5,
        "old-means-kept",
        "You return m and v as they were given: the next step begins where this one did.",
        [
            (_M, "m_new = beta1 * m + (1 - beta1) * g\n"),
            (_V, "v_new = beta2 * v + (1 - beta2) * g**2"),
            (_HATS, "m_hat, v_hat = m_new / (1 - beta1**t), v_new / (1 - beta2**t)"),
        ],
    ),
    Mistake(
        5,
        "eps-inside",
        "You add eps inside of the root; in Adam it is added to the root.",
        [(_ADAM, _ADAM.replace("np.sqrt(v_hat) + eps", "np.sqrt(v_hat + eps)"))],
    ),
    Mistake(
        5,
        "no-root",
        "You divide by v, the mean of the squares: its root has the size of a gradient.",
        [(_ADAM, _ADAM.replace("np.sqrt(v_hat)", "v_hat"))],
    ),
    Mistake(
        5,
        "not-squared",
        "v is a mean of g; it is the mean of g * g.",
        [(_V, _V.replace("g**2", "g"))],
        [[(_V, _V.replace("g**2", "np.abs(g)"))]],
    ),
    Mistake(
        5,
        "square-of-m",
        "v is a mean of m * m; it is that of g * g.",
        [(_V, _V.replace("g**2", "m**2"))],
    ),
    Mistake(
        5,
        "betas-exchanged",
        "beta1 belongs to m and beta2 to v; yours are the other way round.",
        [
            (_M, _M.replace("beta1", "beta2")),
            (_V, _V.replace("beta2", "beta1")),
            (_HATS, "m_hat, v_hat = m / (1 - beta2**t), v / (1 - beta1**t)"),
        ],
    ),
    Mistake(
        5,
        "weights-exchanged",
        _EXCHANGED.format("beta"),
        [
            (_M, "m = (1 - beta1) * m + beta1 * g\n"),
            (_V, "v = (1 - beta2) * v + beta2 * g**2"),
        ],
    ),
    Mistake(
        5,
        "gradient-for-m",
        "You step by g; Adam steps by its running mean m.",
        [(_ADAM, _ADAM.replace("* m_hat", "* g"))],
    ),
    Mistake(5, "adam-up", _UPHILL, [(_ADAM, _ADAM.replace("p - ", "p + "))]),
    Mistake(
        6,
        "of-the-gradient-alone",
        "Your step comes from the gradient alone: the mean of its squares below, and nothing\n"
        "above. The root of the mean of former steps, ed, stands above it.",
        [(_D, "d = g / np.sqrt(eg + eps)")],
        [[(_D, "d = np.sqrt(eps) / np.sqrt(eg + eps) * g")]],
    ),
    Mistake(
        6,
        "new-ed-in-the-step",
        "Your step already contains an ed with this gradient. ed is a mean of steps: first comes\n"
        "the step, from the old one.",
        [(_D, f"ed = rho * ed + (1 - rho) * g**2\n    {_D}"), (f"    {_ED}\n", "")],
    ),
    Mistake(
        6,
        "old-eg-in-the-step",
        "Your step comes from the old eg. The new gradient goes into eg first.",
        [(f"{_EG}\n    {_D}", f"{_D}\n    {_EG}")],
    ),
    Mistake(
        6,
        "ed-of-gradients",
        "ed is a mean of g * g; it is that of d * d, the steps.",
        [(_ED, _ED.replace("d**2", "g**2"))],
    ),
    Mistake(
        6,
        "ed-not-squared",
        "ed is a mean of d; it is that of d * d, whose root stands in the step.",
        [(_ED, _ED.replace("d**2", "d"))],
        [[(_ED, _ED.replace("d**2", "np.abs(d)"))]],
    ),
    Mistake(
        6,
        "ed-not-kept",
        "You return ed as it was given: the steps would stay as small as the first one.",
        [(f"    {_ED}\n", "")],
    ),
    Mistake(
        6,
        "eps-outside-in-the-step",
        "You add eps to the roots; in Adadelta it is added inside of them. Above it decides how\n"
        "large the first step is: ed is 0 then.",
        [(_D, "d = (np.sqrt(ed) + eps) / (np.sqrt(eg) + eps) * g")],
    ),
    Mistake(
        6,
        "eps-below-alone",
        "Above the line eps is missing. ed begins at 0, and without eps no step is ever made.",
        [(_D, "d = np.sqrt(ed) / np.sqrt(eg + eps) * g")],
    ),
    Mistake(
        6,
        "roots-missing",
        "You divide the means of squares; their roots belong there, so that d has the size of a\n"
        "step.",
        [(_D, "d = (ed + eps) / (eg + eps) * g")],
    ),
    Mistake(
        6,
        "upside-down",
        "Your quotient is upside down: ed, of the steps, stands above, and eg below.",
        [(_D, "d = np.sqrt(eg + eps) / np.sqrt(ed + eps) * g")],
    ),
    Mistake(
        6,
        "rho-exchanged",
        _EXCHANGED.format("rho"),
        [
            (_EG, "eg = (1 - rho) * eg + rho * g**2"),
            (_ED, "ed = (1 - rho) * ed + rho * d**2"),
        ],
        [[(_EG, "eg = (1 - rho) * eg + rho * g**2")], [(_ED, "ed = (1 - rho) * ed + rho * d**2")]],
    ),
    Mistake(6, "adadelta-up", _UPHILL, [(_DELTA, "return p + d, eg, ed")]),
]
