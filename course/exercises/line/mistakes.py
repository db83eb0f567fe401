"""What goes wrong in exercise 2; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_PREDICT = "w[0] + x @ w[1:]"
_LOSS = "np.sum((predict(x, w) - y) ** 2) / 2"
_ERROR = "error = predict(x, w) - y  # (N,)"
_GRADIENT = "np.concatenate([[error.sum()], error @ x])"
_STEPS = "    for _ in range(steps):\n"
_STEP = "        w = w - lr * gradient(x, y, w)\n"
_LOOP = _STEPS + _STEP
_COLUMNS = "A = np.column_stack([np.ones(len(x)), x])"
_SOLVE = "np.linalg.lstsq(A, y, rcond=None)[0]"
_OTHER = "columns = np.column_stack([np.ones(len(x)), x])"
_LIMIT = "2 / np.linalg.eigvalsh(columns.T @ columns).max()"

_DIVERGES = "lr above 2 / largest eigenvalue diverges."


MISTAKES = [
    Mistake(
        1,
        "bias-missing",
        "The bias is missing: without w[0] each line goes through the origin.",
        [(_PREDICT, "x @ w[1:]")],
    ),
    Mistake(
        1,
        "bias-last",
        "You take the last weight for the bias, and it is the first: w[0] is the bias, w[1:] has\n"
        "a weight for each input.",
        [(_PREDICT, "w[-1] + x @ w[:-1]")],
    ),
    Mistake(
        1,
        "one-input-too-few",
        "w has one number more than a row of x: w[0] is the bias, and has no column there.\n"
        "Multiply x with w[1:], and add w[0].",
        [(_PREDICT, "x @ w")],
    ),
    Mistake(
        1,
        "bias-subtracted",
        "You subtract the bias, as if it were a threshold. It is added.",
        [(_PREDICT, "x @ w[1:] - w[0]")],
    ),
    Mistake(
        1,
        "bias-for-each-input",
        "You add the bias once for each input. It belongs to the line: add it once to each sum.",
        [(_PREDICT, "(w[0] + x * w[1:]).sum(axis=1)")],
    ),
    Mistake(
        1,
        "a-column",
        "You return a column, (N, 1). y has the shape (N,), and (N, 1) minus (N,) is N x N: numpy\n"
        "takes each row with each number of y.",
        [(_PREDICT, "w[0] + x @ w[1:, None]")],
    ),
    Mistake(
        1,
        "not-added-up",
        "You multiply and do not add up: there is a number for each input of each sample. A\n"
        "sample has one prediction.",
        [(_PREDICT, "w[0] + x * w[1:]")],
    ),
    Mistake(
        1,
        "one-for-all",
        "You add up over the samples too, and have one number. Each sample has its prediction:\n"
        "x @ w[1:], or a sum over axis 1.",
        [(_PREDICT, "w[0] + (x * w[1:]).sum()")],
    ),
    Mistake(
        1,
        "wrong-axis",
        "You add up over the samples, and have a number for each input. It is the other axis:\n"
        "over the inputs, axis 1.",
        [(_PREDICT, "w[0] + (x * w[1:]).sum(axis=0)")],
    ),
    Mistake(
        1,
        "x-transposed",
        "x stands the wrong way in your product: w[1:] @ x and x.T @ w[1:] sum over the samples.\n"
        "Sum over the inputs: x @ w[1:].",
        [(_PREDICT, "w[0] + w[1:] @ x")],
    ),
    Mistake(
        1,
        "a-step",
        "You return 1 and 0, as the neuron of exercise 1. A line has no step: the sum itself is\n"
        "asked for.",
        [(_PREDICT, "np.heaviside(w[0] + x @ w[1:], 1)")],
    ),
    Mistake(
        2,
        "half-missing",
        "Your loss is twice as large: the half is missing. It is there to cancel the 2 that the\n"
        "derivative of the square brings.",
        [(_LOSS, "np.sum((predict(x, w) - y) ** 2)")],
    ),
    Mistake(
        2,
        "mean",
        "You take the mean over the samples, which is N times smaller. The squares are added up.",
        [(_LOSS, "np.mean((predict(x, w) - y) ** 2) / 2")],
    ),
    Mistake(
        2,
        "mean-of-squares",
        "You take the mean of the squares, without the half. Here the squares are added up, and\n"
        "half of that is the loss.",
        [(_LOSS, "np.mean((predict(x, w) - y) ** 2)")],
    ),
    Mistake(
        2,
        "broadcasting",
        "Each prediction meets each y: (N, 1) minus (N,) is N x N. Both have to be (N,).",
        [(_LOSS, "np.sum((predict(x, w)[:, None] - y) ** 2) / 2")],
    ),
    Mistake(
        2,
        "not-squared",
        "You add up absolute errors, not their squares.",
        [(_LOSS, "np.sum(np.abs(predict(x, w) - y)) / 2")],
        [[(_LOSS, "np.sum(np.abs(predict(x, w) - y))")]],
    ),
    Mistake(
        2,
        "neither-squared-nor-absolute",
        "Your errors cancel: nothing is squared, and what is too much makes up for what is too\n"
        "little.",
        [(_LOSS, "np.sum(predict(x, w) - y) / 2")],
        [[(_LOSS, "np.sum(predict(x, w) - y)")], [(_LOSS, "np.sum(y - predict(x, w)) / 2")]],
    ),
    Mistake(
        2,
        "squared-too-late",
        "You add the errors up and square the sum, so that they cancel. First square, then add.",
        [(_LOSS, "np.sum(predict(x, w) - y) ** 2 / 2")],
        [[(_LOSS, "np.sum(predict(x, w) - y) ** 2")]],
    ),
    Mistake(
        2,
        "half-squared-as-well",
        "The half stands inside of the square, where it becomes a quarter.",
        [(_LOSS, "np.sum(((predict(x, w) - y) / 2) ** 2)")],
    ),
    Mistake(
        2,
        "root",
        "You take the root of the sum: that is the length of the error. Half its square is asked\n"
        "for.",
        [(_LOSS, "np.linalg.norm(predict(x, w) - y)")],
        [
            [(_LOSS, "np.linalg.norm(predict(x, w) - y) / 2")],
            [(_LOSS, "np.sqrt(np.sum((predict(x, w) - y) ** 2) / 2)")],
        ],
    ),
    Mistake(
        2,
        "one-for-each-sample",
        "You return a loss for each sample. Add them up: L is one number.",
        [(_LOSS, "(predict(x, w) - y) ** 2 / 2")],
        [[(_LOSS, "(predict(x, w) - y) ** 2")]],
    ),
    Mistake(
        3,
        "factor-two",
        "Your gradient is twice as large. The derivative of the square brings a 2, and the half\n"
        "of the loss cancels it.",
        [(_GRADIENT, f"2 * {_GRADIENT}")],
    ),
    Mistake(
        3,
        "half-kept",
        "Your gradient is half as large. The half of the loss is gone here: the derivative of the\n"
        "square brings a 2, which cancels it.",
        [(_GRADIENT, f"{_GRADIENT} / 2")],
    ),
    Mistake(
        3,
        "gradient-of-the-mean",
        "You take the mean over the samples, which is N times too small: the loss is a sum, and\n"
        "so is its gradient.",
        [(_GRADIENT, f"{_GRADIENT} / len(x)")],
    ),
    Mistake(
        3,
        "two-and-mean",
        "You multiply by 2 / N: that belongs to the mean of the squares. The loss here is half\n"
        "their sum.",
        [(_GRADIENT, f"2 * {_GRADIENT} / len(x)")],
    ),
    Mistake(
        3,
        "sign",
        "The sign is reversed: your gradient points downhill. The error is p - y, not y - p; to\n"
        "go against the gradient is what descend does.",
        [(_ERROR, "error = y - predict(x, w)")],
    ),
    Mistake(
        3,
        "broadcasting-in-the-gradient",
        "Each prediction meets each y: (N, 1) minus (N,) is N x N. Both have to be (N,).",
        [
            (_ERROR, "error = predict(x, w)[:, None] - y"),
            (_GRADIENT, "np.concatenate([[error.sum()], x.T @ error.sum(axis=1)])"),
        ],
        [[(_ERROR, "error = predict(x, w)[:, None] - y")]],
    ),
    Mistake(
        3,
        "bias-without-gradient",
        "The gradient of the bias is 0 in your code, so descent never moves it. Its input is 1:\n"
        "it is the sum of the errors.",
        [(_GRADIENT, "np.concatenate([[0.0], error @ x])")],
    ),
    Mistake(
        3,
        "no-gradient-of-the-bias",
        "You have a gradient for each input and none for the bias: (F,) in the place of (F+1,).\n"
        "Its input is a column of ones.",
        [(_GRADIENT, "error @ x")],
    ),
    Mistake(
        3,
        "bias-last-in-the-gradient",
        "The gradient of the bias stands last. It is the first one, as in w.",
        [(_GRADIENT, "np.concatenate([error @ x, [error.sum()]])")],
    ),
    Mistake(
        3,
        "bias-averaged",
        "The gradient of the bias is the mean of the errors in your code. It is a sum over the\n"
        "samples like the others.",
        [(_GRADIENT, "np.concatenate([[error.mean()], error @ x])")],
    ),
    Mistake(
        3,
        "x-transposed-in-the-gradient",
        "x stands the wrong way in your product: x @ error sums over the inputs. x.T @ error, or\n"
        "error @ x, sums over the samples.",
        [(_GRADIENT, "np.concatenate([[error.sum()], x @ error])")],
    ),
    Mistake(
        3,
        "input-missing",
        "All weights have the same gradient, the sum of the errors. Each error counts for an\n"
        "input as much as that input was: multiply by x before you add up.",
        [(_GRADIENT, "np.full(len(w), error.sum())")],
    ),
    Mistake(
        3,
        "sums-multiplied",
        "You add up the errors, add up the inputs, and multiply the sums. Multiply each error by\n"
        "its own sample, then add up.",
        [(_GRADIENT, "np.concatenate([[error.sum()], error.sum() * x.sum(axis=0)])")],
    ),
    Mistake(
        3,
        "error-squared",
        "You multiply the inputs by squared errors. The derivative of a square is the error once.",
        [(_GRADIENT, "np.concatenate([[np.sum(error**2)], error**2 @ x])")],
        [
            [(_GRADIENT, "np.concatenate([[np.sum(error**2) / 2], error**2 / 2 @ x])")],
            [(_GRADIENT, "np.concatenate([[np.sum(error)], error**2 @ x])")],
        ],
    ),
    Mistake(
        3,
        "sign-of-the-error",
        "You take the sign of each error, for the bias too: that is the gradient of absolute\n"
        "errors. Of squares it is the error itself.",
        [(_ERROR, "error = np.sign(predict(x, w) - y)")],
    ),
    Mistake(
        3,
        "y-forgotten",
        "You take predictions for errors, for the bias too: y is missing.",
        [(_ERROR, "error = predict(x, w)")],
    ),
    Mistake(
        3,
        "first-sample-alone",
        "Only one sample counts, the first or the last one. The gradient is a sum over all.",
        [(_GRADIENT, "np.concatenate([[error[0]], error[0] * x[0]])")],
        [[(_GRADIENT, "np.concatenate([[error[-1]], error[-1] * x[-1]])")]],
    ),
    Mistake(
        4,
        "climbs",
        "You add the gradient: it points uphill, and the loss grows with each step.",
        [(_STEP, _STEP.replace("-", "+"))],
    ),
    Mistake(
        4,
        "writes-into-w",
        "The caller's w is another one after the call: -= writes into the array that you were\n"
        "given. w = w - ... makes a new one.",
        [(_STEP, _STEP.replace("w = w -", "w -="))],
    ),
    Mistake(
        4,
        "old-gradient",
        "You take the gradient once, before the loop. After a step the weights are others, and so\n"
        "is the gradient.",
        [(_LOOP, "    g = gradient(x, y, w)\n" + _STEPS + "        w = w - lr * g\n")],
    ),
    Mistake(
        4,
        "one-step",
        "Only one of your steps counts: the return stands inside of the loop, there is no loop,\n"
        "or each step begins at the first weights again.",
        [(_STEP, _STEP + "        return w\n")],
        [[(_LOOP, "    w = w - lr * gradient(x, y, w)\n")]],
    ),
    Mistake(
        4,
        "lr-missing",
        "lr is missing: you go by the whole gradient, which diverges where the curvature is\n"
        "above 2.",
        [(_STEP, _STEP.replace("lr * ", ""))],
    ),
    Mistake(
        4,
        "lr-divided",
        "You divide the gradient by lr. A small lr means small steps: multiply.",
        [(_STEP, "        w = w - gradient(x, y, w) / lr\n")],
    ),
    Mistake(
        4,
        "divided-by-samples",
        "You divide by the number of samples. The gradient is a sum here, and lr times it is the\n"
        "step.",
        [(_STEP, _STEP.replace("lr *", "lr / len(x) *"))],
    ),
    Mistake(
        4,
        "sample-by-sample",
        "You take a step after each sample, as the neuron of exercise 1 does. Here one step is\n"
        "made for all samples together.",
        [
            (
                _STEP,
                "        for n in range(len(x)):\n"
                "            w = w - lr * gradient(x[n : n + 1], y[n : n + 1], w)\n",
            )
        ],
    ),
    Mistake(
        4,
        "bias-first",
        "You change the bias first, and the gradient of the others is that at the new bias. All\n"
        "move together: one gradient for a step.",
        [
            (
                _STEP,
                "        w = w.copy()\n"
                "        w[0] -= lr * gradient(x, y, w)[0]\n"
                "        w[1:] -= lr * gradient(x, y, w)[1:]\n",
            )
        ],
    ),
    Mistake(
        4,
        "bias-stays",
        "The bias never moves; only the weights of the inputs do.",
        [(_STEP, _STEP.replace("lr *", "lr * (np.arange(len(w)) > 0) *"))],
    ),
    Mistake(
        4,
        "steps-off",
        "You take one step too few, or one too many: `range(steps)` has as many as asked for.",
        [(_STEPS, _STEPS.replace("steps", "steps + 1"))],
        [[(_STEPS, _STEPS.replace("steps", "1, steps"))]],
    ),
    Mistake(
        4,
        "length-one",
        "You divide the gradient by its length, so that each step is lr long. Steps get shorter\n"
        "near the bottom because the gradient does.",
        [
            (
                _STEP,
                "        g = gradient(x, y, w)\n"
                "        w = w - lr * g / max(np.linalg.norm(g), 1e-12)\n",
            )
        ],
    ),
    Mistake(
        4,
        "loss-for-gradient",
        "You subtract lr times the loss from each weight. Which way is down, and how steep, only\n"
        "the gradient knows.",
        [(_STEP, _STEP.replace("gradient", "loss"))],
    ),
    Mistake(
        5,
        "inverse",
        "You invert A^T A, or solve with it. It is singular where samples do not settle all\n"
        "weights, such as one sample for two of them. np.linalg.lstsq takes these, too.",
        [(_SOLVE, "np.linalg.inv(A.T @ A) @ A.T @ y")],
    ),
    Mistake(
        5,
        "not-the-shortest",
        "Your line is as good as any, and its w is not the shortest, bias and weights together.\n"
        "np.linalg.lstsq gives that one if A has the column of ones.",
        [
            (
                f"return {_SOLVE}",
                "mean = A[:, 1:].mean(axis=0)\n"
                "    slopes = np.linalg.lstsq(A[:, 1:] - mean, y - y.mean(), rcond=None)[0]\n"
                "    return np.concatenate([[y.mean() - mean @ slopes], slopes])",
            )
        ],
    ),
    Mistake(
        5,
        "no-bias-column",
        "A has no column of ones in your code, so there is no bias: (F,) in the place of (F+1,).",
        [(_COLUMNS, "A = x")],
        [[(_COLUMNS, "A = x"), (_SOLVE, "np.linalg.inv(A.T @ A) @ A.T @ y")]],
    ),
    Mistake(
        5,
        "through-the-origin",
        "Your bias is always 0: the line goes through the origin. A column of ones lets it find\n"
        "its height.",
        [(_COLUMNS, "A = np.column_stack([np.zeros(len(x)), x])")],
    ),
    Mistake(
        5,
        "ones-last",
        "Your column of ones stands last, and so does the bias. It is the first of w.",
        [(_COLUMNS, "A = np.column_stack([x, np.ones(len(x))])")],
    ),
    Mistake(
        5,
        "all-that-lstsq-gives",
        "np.linalg.lstsq gives four things: the weights, what is left, the rank, and singular\n"
        "values. Return the first one.",
        [(_SOLVE, "np.linalg.lstsq(A, y, rcond=None)")],
    ),
    Mistake(
        5,
        "weights-as-a-column",
        "You return a column, (F+1, 1). w has the shape (F+1,): let y be (N,).",
        [(_SOLVE, "np.linalg.lstsq(A, y[:, None], rcond=None)[0]")],
    ),
    Mistake(
        5,
        "as-if-square",
        "You invert A, or solve A w = y: that needs as many samples as weights, and goes through\n"
        "all of them. With more samples no line does.",
        [(_SOLVE, "np.linalg.inv(A) @ y")],
    ),
    Mistake(
        5,
        "ones-on-the-diagonal",
        "You add a number to the diagonal of A^T A. That can be solved, and is another problem:\n"
        "ridge regression, whose weights are smaller.",
        [(_SOLVE, "np.linalg.solve(A.T @ A + np.eye(A.shape[1]), A.T @ y)")],
        [
            [(_SOLVE, f"np.linalg.solve(A.T @ A + {size} * np.eye(A.shape[1]), A.T @ y)")]
            for size in ("0.1", "0.01", "1e-3", "1e-4", "1e-5")
        ],
    ),
    Mistake(
        5,
        "transpose-for-inverse",
        "You stop at A^T y. That is the right side of A^T A w = A^T y, which is still to be\n"
        "solved for w.",
        [(_SOLVE, "A.T @ y")],
    ),
    Mistake(
        6,
        "ones-forgotten",
        "The column of ones is missing: the bias has its curvature, too, and shares in that of\n"
        f"the inputs. {_DIVERGES}",
        [(_OTHER, "columns = x")],
    ),
    Mistake(
        6,
        "half",
        "You return 1 / largest eigenvalue. There a step leads to the bottom of the steepest\n"
        "direction; with twice as much it comes as far up on the other side, and no nearer.",
        [(_LIMIT, "1 / np.linalg.eigvalsh(columns.T @ columns).max()")],
    ),
    Mistake(
        6,
        "smallest-eigenvalue",
        "You take the smallest eigenvalue, that of the flattest direction. The steepest one goes\n"
        f"first: {_DIVERGES}",
        [(_LIMIT, "2 / np.linalg.eigvalsh(columns.T @ columns).min()")],
    ),
    Mistake(
        6,
        "eigenvalue-itself",
        "You return the eigenvalue, or twice of it. The steeper it is, the smaller has lr to be:\n"
        "2 divided by it.",
        [(_LIMIT, "np.linalg.eigvalsh(columns.T @ columns).max()")],
        [[(_LIMIT, "2 * np.linalg.eigvalsh(columns.T @ columns).max()")]],
    ),
    Mistake(
        6,
        "singular-value",
        "You take the largest singular value of A. Its square is the eigenvalue of A^T A, and an\n"
        f"{_DIVERGES}",
        [(_LIMIT, "2 / np.linalg.svd(columns)[1].max()")],
    ),
    Mistake(
        6,
        "times-samples",
        "You divide A^T A by the number of samples: that belongs to a mean. The loss here is a\n"
        f"sum. {_DIVERGES}",
        [(_LIMIT, "2 * len(x) / np.linalg.eigvalsh(columns.T @ columns).max()")],
    ),
    Mistake(
        6,
        "all-eigenvalues",
        "You take the sum of all eigenvalues, the trace or the squares of A. It is above the\n"
        "largest, so that your limit is smaller than it need be.",
        [(_LIMIT, "2 / np.sum(columns**2)")],
    ),
    Mistake(
        6,
        "largest-entry",
        "You take the largest entry of A^T A, which lies on its diagonal. Where directions act\n"
        "together the curvature is larger: take the largest eigenvalue.\n"
        f"{_DIVERGES}",
        [(_LIMIT, "2 / (columns.T @ columns).max()")],
    ),
]
