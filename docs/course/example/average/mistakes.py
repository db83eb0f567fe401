"""What goes wrong in exercise 21."""

from tinygraph_course.content.exercise import Mistake

_NEXT = "m = beta * m + (1 - beta) * value"

MISTAKES = [
    Mistake(
        1,
        "weights-exchanged",
        "beta is what is kept of the average; you take it of the new value.",
        [(_NEXT, "m = (1 - beta) * m + beta * value")],
    ),
    Mistake(
        1,
        "whole-value",
        "Your new value comes in whole: take 1 - beta of it, else m grows beyond all values.",
        [(_NEXT, "m = beta * m + value")],
    ),
    Mistake(
        1,
        "begins-at-the-first",
        "Your average begins at the first value. Here it begins at 0: step 3 mends that.",
        [("m, averages = 0.0,", "m, averages = x[0],")],
    ),
    Mistake(
        2,
        "newest-first",
        "Your newest value stands first: the array begins with the oldest one.",
        [("np.arange(n - 1, -1, -1.0)", "np.arange(0.0, n)")],
    ),
    Mistake(
        2,
        "not-of-the-new",
        "You leave 1 - beta out: a value is multiplied by it as it comes in.",
        [("return (1 - beta) * beta **", "return beta **")],
    ),
    Mistake(
        2,
        "one-too-many",
        "You multiply by beta once too often: the newest value has not been multiplied by it.",
        [("np.arange(n - 1, -1, -1.0)", "np.arange(n, 0, -1.0)")],
    ),
    Mistake(
        3,
        "counted-from-zero",
        "You count values from 0: after the first one t is 1, and 1 - beta ** 0 is 0.",
        [("np.arange(1.0, len(x) + 1)", "np.arange(0.0, len(x))")],
    ),
    Mistake(
        3,
        "all-by-the-last",
        "You divide all averages by the last sum of weights: each has its own, of t values.",
        [("np.arange(1.0, len(x) + 1)", "len(x)")],
    ),
]
