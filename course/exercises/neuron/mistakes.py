"""What goes wrong in exercise 1; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_FIRES = "int(w[0] + w[1:] @ x >= 0)"
_ERROR = "y - respond(x, w)  #"
_COPY = "new = w.copy()"
_BIAS = "new[0] += eta * error"
_WEIGHTS = "new[1:] += eta * error * x"
_TO_ALL = [(_BIAS, "new += eta * error * x"), (_WEIGHTS, "")]
_BEGIN = "w = np.zeros(x.shape[1] + 1)"
_EPOCHS = "in range(epochs):"
_ZERO = "        wrong = 0\n"
_COUNT = "            wrong += int(respond(sample, w) != label)\n"
_LEARN = "            w = update(w, sample, label, eta)\n"
_NOTE = "        mistakes.append(wrong)\n"
_END = "        if wrong == 0:\n            break\n"
_ALL = "sum(respond(a, w) != b for a, b in zip(x, y, strict=True))"
_RETURN = "    return w, mistakes\n"
_EARLIER = "in range(j):"
_SAME = "np.array_equal(history[i], history[j])"
_FOUND = "return i, j"


def _always(change: str) -> list[tuple[str, str]]:
    """An edit after which the weights move whatever the response is."""
    return [(_BIAS, f"new[0] += eta * {change}"), (_WEIGHTS, f"new[1:] += eta * {change} * x")]


def _right(then: str) -> list[tuple[str, str]]:
    """An edit of what is done where a response is right."""
    body = f"            if respond(sample, w) == label:\n{then}            wrong += 1\n"
    return [(_COUNT, body)]


def _once_right(before: str) -> list[tuple[str, str]]:
    return _right(f"{before}                return w, mistakes\n")


MISTAKES = [
    Mistake(
        1,
        "silent-at-zero",
        "At a sum of 0 your neuron does not fire. Here it does: np.heaviside(0, 1), or >=.",
        [(_FIRES, "int(w[0] + w[1:] @ x > 0)")],
    ),
    Mistake(
        1,
        "bias-missing",
        "The bias is missing from your sum: w[0] is added to it, whatever the inputs are.",
        [(_FIRES, "int(w[1:] @ x >= 0)")],
    ),
    Mistake(
        1,
        "bias-last",
        "You take the last weight for the bias, and it is the first: w[0] is the bias, w[1:] has\n"
        "a weight for each input.",
        [(_FIRES, "int(w[-1] + w[:-1] @ x >= 0)")],
    ),
    Mistake(
        1,
        "one-input-too-few",
        "w has one number more than x: w[0] is the bias, and has no input in x. Multiply w[1:]\n"
        "with x, and add w[0].",
        [(_FIRES, "int(w @ x >= 0)")],
    ),
    Mistake(
        1,
        "bias-as-threshold",
        "You compare the weighted inputs with the bias, as if it were a threshold. It is added:\n"
        "a large bias lets the neuron fire, it does not hinder it.",
        [(_FIRES, "int(w[1:] @ x >= w[0])")],
    ),
    Mistake(
        1,
        "truth-value",
        "You return True or False. A number is asked for, 1 or 0, since it is subtracted from y\n"
        "later: int(...) makes one of it.",
        [(_FIRES, "bool(w[0] + w[1:] @ x >= 0)")],
    ),
    Mistake(
        1,
        "minus-one",
        "Where it does not fire your neuron gives -1. Here it is 0: classes are 0 and 1.",
        [(_FIRES, "2 * int(w[0] + w[1:] @ x >= 0) - 1")],
    ),
    Mistake(
        1,
        "no-step",
        "You return the sum itself. A response is 1 or 0: is the sum at least 0?",
        [(_FIRES, "w[0] + w[1:] @ x")],
    ),
    Mistake(
        1,
        "reversed",
        "Your neuron fires where its sum is below 0, and is silent above.",
        [(_FIRES, "int(w[0] + w[1:] @ x < 0)")],
        [[(_FIRES, "int(w[0] + w[1:] @ x <= 0)")]],
    ),
    Mistake(
        1,
        "one-by-one",
        "You give a response for each input. A neuron has one: add up all products first, with\n"
        "w[1:] @ x or np.sum.",
        [(_FIRES, "(w[0] + w[1:] * x >= 0).astype(int)")],
        [
            [(_FIRES, f"np.heaviside({products}, 1)")]
            for products in ("w[0] + w[1:] * x", "w[1:] * x")
        ],
    ),
    Mistake(
        1,
        "bias-for-each-input",
        "You add the bias once for each input. It belongs to the neuron: add it once, to the sum.",
        [(_FIRES, "int(np.sum(w[0] + w[1:] * x) >= 0)")],
    ),
    Mistake(
        1,
        "above-one-half",
        "Your neuron fires from a sum of 0.5 or 1 on. The border is 0; whatever else it should be\n"
        "is what the bias is for.",
        [(_FIRES, "int(w[0] + w[1:] @ x >= 1)")],
        [[(_FIRES, "int(w[0] + w[1:] @ x > 1)")]],
    ),
    Mistake(
        2,
        "walks-away",
        "Your weights walk away: where the neuron should fire and does not, its sum gets smaller.\n"
        "The error is y - o, not o - y.",
        [(_ERROR, "respond(x, w) - y  #")],
    ),
    Mistake(
        2,
        "bias-stays",
        "The bias is never changed, so the border stays where it is, at the origin if it began\n"
        "at 0. The bias learns like a weight whose input is 1.",
        [(_BIAS, "new[0] += 0")],
    ),
    Mistake(
        2,
        "x-without-its-one",
        "You add a multiple of x to all of w, which has one number more: the bias, whose input\n"
        "is 1 and is not in x. With one input numpy takes that for both, and raises no error.",
        _TO_ALL,
        [[(_COPY, f"{_COPY}\n    if error == 0:\n        return new"), *_TO_ALL]],
    ),
    Mistake(
        2,
        "learns-where-right",
        "The weights change where the response was right, too. Nothing is to be corrected there:\n"
        "y - o is 0.",
        _always("y"),
        [_always("(2 * y - 1)"), _always("(1 - y)")],
    ),
    Mistake(
        2,
        "changes-given-weights",
        "The caller's w is another one after the call: += writes into the array that you were\n"
        "given. Copy it first.",
        [(_COPY, "new = w")],
    ),
    Mistake(
        2,
        "eta-missing",
        "eta is missing: your weights move by the whole of (y - o) * x.",
        [(_BIAS, "new[0] += error"), (_WEIGHTS, "new[1:] += error * x")],
    ),
    Mistake(
        2,
        "bias-without-eta",
        "The bias moves by y - o, without eta. It learns at the same rate as all weights.",
        [(_BIAS, "new[0] += error")],
    ),
    Mistake(
        2,
        "weights-without-eta",
        "The weights of the inputs move by (y - o) * x, without eta; only the bias has it.",
        [(_WEIGHTS, "new[1:] += error * x")],
    ),
    Mistake(
        2,
        "input-missing",
        "All weights move by the same. Each moves by eta * (y - o) times its own input: one whose\n"
        "input was 0 had no part in the mistake.",
        [(_WEIGHTS, "new[1:] += eta * error")],
    ),
    Mistake(
        2,
        "sum-for-response",
        "Your error is y minus the sum, not y minus the response: the step is missing, and the\n"
        "weights change where the neuron is right, too.",
        [(_ERROR, "y - (w[0] + w[1:] @ x)  #")],
    ),
    Mistake(
        2,
        "one-kind-of-mistake",
        "You correct one kind of mistake alone: a neuron that is silent and should fire, or one\n"
        "that fires and should not. y - o is 1 for one of them and -1 for the other.",
        [(_ERROR, "max(y - respond(x, w), 0)  #")],
        [[(_ERROR, "min(y - respond(x, w), 0)  #")]],
    ),
    Mistake(
        2,
        "always-towards-firing",
        "You add eta * x at every mistake. Where the neuron fires and should not, the sign is\n"
        "minus: y - o, without an absolute value.",
        [(_ERROR, "abs(y - respond(x, w))  #")],
        [[(_ERROR, "-abs(y - respond(x, w))  #")]],
    ),
    Mistake(
        2,
        "change-alone",
        "You return by how much the weights change. Add it to w.",
        [(_COPY, "new = np.zeros(len(w))")],
    ),
    Mistake(
        2,
        "bias-alone",
        "Only the bias changes; the weights of the inputs stay as they were.",
        [(_WEIGHTS, "new[1:] += 0")],
    ),
    Mistake(
        2,
        "bias-the-other-way",
        "The bias goes the other way than the weights. It is added to the sum, as they are, so it\n"
        "moves by + eta * (y - o).",
        [(_BIAS, "new[0] -= eta * error")],
    ),
    Mistake(
        2,
        "bias-takes-an-input",
        "The bias moves by the error times an input, or the sum of them. Its own input is 1.",
        [(_BIAS, "new[0] += eta * error * x[0]")],
        [[(_BIAS, f"new[0] += eta * error * {of}")] for of in ("x.sum()", "x[-1]")],
    ),
    Mistake(
        3,
        "old-weights",
        "All samples of your epoch meet the weights that it began with. The weights change after\n"
        "each sample, and the next one meets the new ones.",
        [
            (_ZERO, "        wrong, begin = 0, w\n"),
            (_COUNT, _COUNT.replace("w)", "begin)")),
            (_LEARN, "            w = w + update(begin, sample, label, eta) - begin\n"),
        ],
        [
            [
                (_ZERO, "        wrong, begin = 0, w\n"),
                (_COUNT, _COUNT.replace("w)", "begin)")),
                (_LEARN, "            w = update(begin, sample, label, eta)\n"),
            ],
        ],
    ),
    Mistake(
        3,
        "stops-at-first-right",
        "You stop at the first sample that is right. It takes a whole epoch without a mistake:\n"
        "what is learnt from one sample can spoil another.",
        _once_right("                mistakes.append(wrong)\n"),
        [
            _once_right(""),
            _right("                break\n"),
        ],
    ),
    Mistake(
        3,
        "goes-on",
        "You go on after an epoch without a mistake, up to the last. Nothing changes any more:\n"
        "the first such epoch is the end.",
        [(_END, "")],
    ),
    Mistake(
        3,
        "end-not-noted",
        "The epoch without a mistake is missing from your list. It is the last one, and its count\n"
        "is 0: note the count before you ask whether it is 0.",
        [(_NOTE, ""), (_END, _END + _NOTE)],
    ),
    Mistake(
        3,
        "counted-after",
        "You count whether a sample is wrong after its update. It is counted when it is its turn,\n"
        "with the weights that the samples before it have left.",
        [(_COUNT, ""), (_LEARN, _LEARN + _COUNT)],
    ),
    Mistake(
        3,
        "counted-at-once",
        "You count the mistakes of an epoch all at once, after it or before it. A sample counts\n"
        "when it is its turn, with the weights that it meets then.",
        [(_COUNT, ""), (_NOTE, f"        wrong = {_ALL}\n{_NOTE}")],
        [[(_COUNT, ""), (_ZERO, f"        wrong = {_ALL}\n")]],
    ),
    Mistake(
        3,
        "count-goes-on",
        "Your count goes on from epoch to epoch, so after one mistake it is never 0 again. Each\n"
        "epoch counts from 0.",
        [(_ZERO, ""), (_BEGIN, f"{_BEGIN}\n    wrong = 0")],
    ),
    Mistake(
        3,
        "added-up",
        "You return one number for all mistakes. A list is asked for, with a number for each\n"
        "epoch.",
        [(_RETURN, "    return w, sum(mistakes)\n")],
        [[(_RETURN, f"    return w, {one}\n")] for one in ("mistakes[-1]", "len(mistakes)")],
    ),
    Mistake(
        3,
        "mistakes-cancel",
        "Your mistakes cancel: you add up y - o, where one of 1 and one of -1 are none. Count\n"
        "them, or add up absolute values.",
        [(_COUNT, _COUNT.replace("respond(sample, w) != label", "label - respond(sample, w)"))],
        [[(_COUNT, _COUNT.replace("respond(sample, w) != label", "respond(sample, w) - label"))]],
    ),
    Mistake(
        3,
        "begins-anew",
        "Each of your epochs begins with weights of 0 again: what was learnt before is lost.",
        [(_BEGIN, "w = None"), (_ZERO, f"        {_BEGIN}\n{_ZERO}")],
    ),
    Mistake(
        3,
        "return-in-the-loop",
        "You return after the first epoch: the return stands inside of the loop.",
        [(_END, f"    {_RETURN}")],
        [[(_RETURN, f"    {_RETURN}")]],
    ),
    Mistake(
        3,
        "one-epoch-off",
        "You go through one epoch too few, or one too many: `range(epochs)` has as many as asked\n"
        "for, if none without a mistake comes before.",
        [(_EPOCHS, "in range(1, epochs):")],
        [[(_EPOCHS, "in range(epochs + 1):")]],
    ),
    Mistake(
        3,
        "no-place-for-the-bias",
        "Your w has as many numbers as there are inputs. It needs one more, for the bias.",
        [(_BEGIN, "w = np.zeros(x.shape[1])")],
    ),
    Mistake(
        3,
        "learns-nothing",
        "Your weights stay at 0: update gives back new weights and leaves those that it was given\n"
        "as they are.",
        [(_LEARN, "            update(w, sample, label, eta)\n")],
    ),
    Mistake(
        4,
        "neighbours-alone",
        "You compare each row with the one before it. A circle can take several epochs: compare\n"
        "with all rows before.",
        [(_EARLIER, "in range(max(j - 1, 0), j):")],
    ),
    Mistake(
        4,
        "first-alone",
        "You compare with the first row alone. The weights may come back to any row; XOR never\n"
        "comes back to 0.",
        [(_EARLIER, "in range(min(j, 1)):")],
    ),
    Mistake(
        4,
        "last-alone",
        "You look whether the last row was there before. It may have come back earlier: the first\n"
        "row that does is asked for.",
        [("for j in range(len(history)):", "for j in range(len(history) - 1, len(history)):")],
    ),
    Mistake(
        4,
        "one-number-is-enough",
        "Two rows are the same to you as soon as one of their numbers is. All of them have to be:\n"
        "np.array_equal, or .all().",
        [(_SAME, "(history[i] == history[j]).any()")],
    ),
    Mistake(
        4,
        "bias-compared-alone",
        "You compare the bias alone, or one weight. All numbers of both rows have to be the same.",
        [(_SAME, "history[i][0] == history[j][0]")],
        [[(_SAME, "history[i][-1] == history[j][-1]")]],
    ),
    Mistake(
        4,
        "bias-not-compared",
        "You leave the bias out. It has a part in each response: all numbers have to be the same.",
        [(_SAME, "np.array_equal(history[i][1:], history[j][1:])")],
    ),
    Mistake(
        4,
        "sums-compared",
        "You compare a number that stands for a row, such as its sum. Different weights can have\n"
        "the same sum, or the same length.",
        [(_SAME, "history[i].sum() == history[j].sum()")],
        [[(_SAME, "history[i] @ history[i] == history[j] @ history[j]")]],
    ),
    Mistake(
        4,
        "close-is-not-the-same",
        "You let weights count as the same that are close. A proof needs the very same ones: from\n"
        "others the next epoch may go another way.",
        [(_SAME, "np.allclose(history[i], history[j])")],
        [[(_SAME, "np.abs(history[i] - history[j]).max() < 1e-6")]],
    ),
    Mistake(
        4,
        "with-itself",
        "You compare a row with itself, too, and that is always the same: i is below j.",
        [(_EARLIER, "in range(j + 1):")],
        [[(_EARLIER, "in range(len(history)):")]],
    ),
    Mistake(
        4,
        "truth-of-an-array",
        "The comparison of two rows is an array of truth values; `if` and `in` need a single one.\n"
        "np.array_equal gives it, and tuples can be compared with `==`.",
        [(_SAME, "history[i] == history[j]")],
    ),
    Mistake(
        4,
        "counted-from-one",
        "Your row numbers are one too large: row 0 is that before the first epoch.",
        [(_FOUND, "return i + 1, j + 1")],
    ),
    Mistake(
        4,
        "exchanged",
        "You return the later row first. The earlier one is asked for first: (i, j) with i < j.",
        [(_FOUND, "return j, i")],
    ),
    Mistake(
        4,
        "one-number",
        "You return one number, or a truth value. The pair (i, j) is asked for: which row, and\n"
        "where it comes back.",
        [(_FOUND, "return j")],
        [[(_FOUND, f"return {one}")] for one in ("True", "i", "j - i")],
    ),
]
