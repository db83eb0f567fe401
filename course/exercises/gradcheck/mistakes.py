"""What goes wrong in exercise 5; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_SLOPE = "(f(x + h) - f(x - h)) / (2 * h)"
_COPIES = "[np.array(a, np.float64) for a in arrays]"
_FULL = "np.sum(upstream * op.forward(*arrays))\n"
_EACH = "in zip(arrays, gradients, strict=True):"
_PLACES = "np.ndindex(a.shape)"
_BACK = "            a[i] = x\n    return gradients"
_GRADIENT = "slope(loss, x, 1e-6)"
_UPSTREAM = "np.random.default_rng(0).standard_normal(op.forward(*arrays).shape)"
_PAIRS = "in zip(op.backward(upstream, *arrays), expected, strict=True):"
_ALL = "np.abs(given - right).max() / max(1.0, np.abs(right).max())"
_LARGEST = "np.maximum(largest, far)"
_SIZES = "draw(size), draw(size), draw(size)"
_NUMBERS = "np.random.default_rng(draw(st.integers(0, 999))).standard_normal"
_GIVEN = "[a.copy() for a in (upstream, *problem)]"
_CHANGED = "zip(given, (upstream, *problem), strict=True)"
_VERDICT = "not changed and worst(op, problem) < 1e-4"

_TOO_SMALL = (
    "Your h drowns in rounding: x + h is x, or some digits of it. float64 has 16 digits; h\n"
    "near 1e-6 leaves ten of them to x and to the difference."
)
_TOO_LARGE = (
    "Your h is so large that the curve bends between x - h and x + h: the error is h * h\n"
    "times the third derivative. Near 1e-6 it is lost in rounding."
)
_LEFT = (
    "The element is not put back before the next one moves, whose slope is then taken at\n"
    "another place. At a kink that is another slope."
)
_DIGITS = (
    "The differences are taken in float32, which has 7 digits: near 2048 it does not see a\n"
    "step of 1e-6. Take float64 copies of the arrays first."
)
_TINY = ("1e-13", "1e-14", "1e-15", "1e-16")


def _h(h: str) -> list[tuple[str, str]]:
    """An edit of the step of `numeric`."""
    return [(_GRADIENT, f"slope(loss, x, {h})")]


def _signed(far: str, seed: int, largest: str) -> list[tuple[str, str]]:
    """An edit of `worst`; which errors are seen depends on the signs of the upstream."""
    divided = f"{far} / max(1.0, np.abs(right).max())"
    return [(_UPSTREAM, _UPSTREAM.replace("0", str(seed))), (_ALL, divided), (_LARGEST, largest)]


_SIGNED = [
    _signed(far, seed, largest)
    for seed in range(4)
    for largest in (_LARGEST, "max(largest, far)")
    for far in ("(given - right).max()", "(right - given).max()")
]

MISTAKES = [
    Mistake(
        1,
        "forward-difference",
        "You look to one side, from x to x + h. That is wrong by h times half the curvature; seen\n"
        "from both sides these errors cancel, and h * h is left.",
        [(_SLOPE, "(f(x + h) - f(x)) / h")],
    ),
    Mistake(
        1,
        "backward-difference",
        "You look to one side, from x - h to x. That is wrong by h times half the curvature; seen\n"
        "from both sides these errors cancel, and h * h is left.",
        [(_SLOPE, "(f(x) - f(x - h)) / h")],
    ),
    Mistake(
        1,
        "divided-by-h",
        "From x - h to x + h the way is 2 h; you divide by h.",
        [(_SLOPE, "(f(x + h) - f(x - h)) / h")],
    ),
    Mistake(
        1,
        "parentheses-missing",
        "Only f(x - h) is divided: a difference that is divided needs parentheses.",
        [(_SLOPE, "f(x + h) - f(x - h) / (2 * h)")],
    ),
    Mistake(
        1,
        "times-h",
        "a / 2 * h is (a / 2) * h: you multiply by h. Write / (2 * h).",
        [(_SLOPE, "(f(x + h) - f(x - h)) / 2 * h")],
    ),
    Mistake(
        1,
        "sign-reversed",
        "The sign is reversed: what rises to the right has a positive slope.",
        [(_SLOPE, "(f(x - h) - f(x + h)) / (2 * h)")],
    ),
    Mistake(
        1,
        "half-a-step",
        "You go h / 2 to each side. Here it is h, and the two points lie 2 h apart.",
        [(_SLOPE, "(f(x + h / 2) - f(x - h / 2)) / h")],
    ),
    Mistake(
        2,
        "ignores-upstream",
        "L is the sum of y in your code: an upstream of ones. Weigh each y by its upstream first.",
        [(_FULL, "np.sum(op.forward(*arrays))\n")],
    ),
    Mistake(
        2,
        "mean-for-sum",
        "You take the mean of upstream * y; L is their sum.",
        [(_FULL, "np.mean(upstream * op.forward(*arrays))\n")],
    ),
    Mistake(
        2,
        "one-sided",
        "You look to one side, from x to x + h: at the kink of |x| that is the slope of a branch.\n"
        "`slope` of step 1 looks to both.",
        [(_GRADIENT, "(loss(x + 1e-6) - loss(x)) / 1e-6")],
    ),
    Mistake(2, "not-put-back", _LEFT, [(_BACK, "    return gradients")]),
    Mistake(
        2,
        "not-put-back-in-place",
        "The element is not put back before the next one moves, and the caller's array is another\n"
        "one afterwards.",
        [(_BACK, "    return gradients"), (_COPIES, "list(arrays)")],
    ),
    Mistake(2, "float32", _DIGITS, [(_COPIES, "[np.array(a) for a in arrays]")]),
    Mistake(2, "all-in-float32", _DIGITS, [(_COPIES, "[np.array(a, np.float32) for a in arrays]")]),
    Mistake(2, "h-too-small", _TOO_SMALL, _h("1e-12"), [*map(_h, ("1e-10", "1e-11", *_TINY))]),
    Mistake(2, "h-too-large", _TOO_LARGE, _h("0.1"), [*map(_h, ("0.01", "0.05", "1.0"))]),
    Mistake(
        2,
        "first-array-alone",
        "Only the first array gets a gradient; all the others stay at 0.",
        [(_EACH, "in list(zip(arrays, gradients, strict=True))[:1]:")],
    ),
    Mistake(
        2,
        "one-element",
        "Only the first element of each array gets a slope.",
        [(_PLACES, "list(np.ndindex(a.shape))[:1]")],
    ),
    Mistake(
        2,
        "changes-a-copy",
        "All your slopes are 0: the element moves in an array that forward does not see, such as\n"
        "the copy that flatten() gives.",
        [("return np.sum(upstream * op.forward(*arrays))", "return 0.0")],
    ),
    Mistake(
        3,
        "upstream-of-ones",
        "Your upstream is of ones: under it a backward that ignores gy is right, and so is a\n"
        "softmax that gives zeros. Take random numbers.",
        [(_UPSTREAM, "np.ones(op.forward(*arrays).shape)")],
    ),
    Mistake(
        3,
        "all-wrong",
        "Your check finds every backward wrong, right ones too. Analytic and numeric need the\n"
        "same upstream: it is drawn once, for both.",
        [(_PAIRS, _PAIRS.replace("(upstream", "(np.roll(upstream, 1) * 2"))],
    ),
    Mistake(
        3,
        "first-gradient-alone",
        "Only the gradient of the first array counts.",
        [(_PAIRS, "in list(zip(op.backward(upstream, *arrays), expected, strict=True))[:1]:")],
    ),
    Mistake(
        3,
        "last-gradient-alone",
        "Only the gradient of the last array counts: each takes the place of the one before. Keep\n"
        "the largest.",
        [(_LARGEST, "far")],
    ),
    Mistake(
        3,
        "first-element-alone",
        "Only the first element of each gradient is compared; a backward can be right there and\n"
        "nowhere else.",
        [(_ALL, "np.abs(given - right).flat[0] / max(1.0, np.abs(right).max())")],
    ),
    Mistake(
        3,
        "sums-compared",
        "You compare sums of gradients. With the same numbers at other places, as in a transposed\n"
        "gradient, the sum is the same.",
        [(_ALL, "np.abs(given.sum() - right.sum()) / max(1.0, np.abs(right).max())")],
    ),
    Mistake(
        3,
        "mean-for-worst",
        "You take the mean over the elements. Where few are wrong it is small; the worst one is\n"
        "asked for.",
        [(_ALL, "np.abs(given - right).mean() / max(1.0, np.abs(right).max())")],
    ),
    Mistake(
        3,
        "no-absolute-value",
        "You take no absolute value: an error counts if it is too much, not if it is too little,\n"
        "or the other way round.",
        _SIGNED[0],
        _SIGNED[1:],
    ),
    Mistake(
        3,
        "not-relative",
        "Your error is not relative: a right gradient near 1e8 is off by 0.01 for rounding alone.\n"
        "Divide by the largest |numeric|.",
        [(_ALL, "np.abs(given - right).max()")],
    ),
    Mistake(
        3,
        "divided-by-zero",
        "You divide by a gradient that is 0, and 0 / 0 is NaN: a right backward is found wrong\n"
        "behind a ReLU. Divide by 1 where gradients are smaller.",
        [(_ALL, "(np.abs(given - right) / np.abs(right)).max()")],
    ),
    Mistake(
        3,
        "shapes-not-compared",
        "(1, O) minus (O,) is no error, numpy repeats what is missing: a gradient of the wrong\n"
        "shape passes. Compare the shapes.",
        [("        if given.shape != right.shape:\n            return np.inf\n", "")],
    ),
    Mistake(
        3,
        "nan-lost",
        "A NaN is lost: every comparison with NaN is false, so max(0.0, nan) is 0.0. np.maximum\n"
        "and np.max keep it.",
        [(_LARGEST, "max(largest, far)")],
    ),
    Mistake(
        3,
        "compares-with-itself",
        "Both sides of your comparison are slopes: backward is never called, or does not count.",
        [(_PAIRS, "in zip(expected, expected, strict=True):")],
    ),
    Mistake(
        4,
        "square",
        "I and O are always the same. Where w is square, a backward may take one for the other.",
        [(_SIZES, "draw(size), *[draw(size)] * 2")],
    ),
    Mistake(
        4,
        "one-sample",
        "There is always one sample: a sum over the batch that is missing does not show.",
        [(_SIZES, "1, draw(size), draw(size)")],
    ),
    Mistake(
        4,
        "one-output",
        "There is always one output: a gradient of w that is transposed has the same numbers at\n"
        "the same places.",
        [(_SIZES, "draw(size), draw(size), 1")],
    ),
    Mistake(
        4,
        "one-input",
        "There is always one input: a maximum over inputs has no choice, and a transposed\n"
        "gradient has the same numbers at the same places.",
        [(_SIZES, "draw(size), 1, draw(size)")],
    ),
    Mistake(
        4,
        "one-number-each",
        "Each array has one number. Nothing can be transposed there, and no sum be missing.",
        [(_SIZES, "1, 1, 1")],
    ),
    Mistake(
        4,
        "positive",
        "Your numbers are all positive: no ReLU is ever closed, no sign is ever seen.",
        [(_NUMBERS, _NUMBERS.replace("standard_normal", "random"))],
    ),
    Mistake(
        4,
        "at-kinks",
        "Some of your problems lie on a kink: a number that is exactly 0 before a ReLU, two that\n"
        "are equal before a max. There the slope is between two derivatives, and a right backward\n"
        "is accused. Draw numbers that are never 0 and hardly ever equal.",
        [(_NUMBERS, f"lambda shape: np.round({_NUMBERS}(shape))")],
    ),
    Mistake(
        4,
        "positive-and-equal",
        "None of your numbers is negative: no ReLU is ever closed. And some are equal: where the\n"
        "largest of them is taken there is a tie, and a right backward is accused.",
        [(_NUMBERS, "np.ones")],
    ),
    Mistake(
        4,
        "all-zeros",
        "All your numbers are 0, or as good as 0: most gradients are so as well, right or wrong,\n"
        "and a ReLU is at its kink.",
        [(_NUMBERS, "np.zeros")],
    ),
    Mistake(
        5,
        "changes-not-looked-for",
        "A backward that writes into its arguments passes: where gy goes on to another op too,\n"
        "that op gets a wrong one.",
        [(_VERDICT, "worst(op, problem) < 1e-4")],
    ),
    Mistake(
        5,
        "too-loose",
        "Your limit is too loose: a backward that is wrong by a hundredth passes. Rounding alone\n"
        "stays below 1e-8.",
        [(_VERDICT, _VERDICT.replace("1e-4", "0.1"))],
    ),
    Mistake(
        5,
        "too-tight",
        "Your limit is below what rounding does to a difference, and right backwards fail.",
        [(_VERDICT, _VERDICT.replace("1e-4", "1e-14"))],
    ),
    Mistake(
        5,
        "nan-passes",
        "NaN passes: it is not above the limit. It is not below either; ask that worst is below.",
        [(_VERDICT, "not changed and not worst(op, problem) > 1e-4")],
    ),
    Mistake(
        5,
        "alias-accused",
        "A backward may give a view of gy as a gradient: that changes nothing.\n"
        "You take it for one that writes.",
        [
            ("op.backward(*given)", "made = op.backward(*given)"),
            (
                _VERDICT,
                "not any(np.shares_memory(a, b) for a in made for b in given) and not changed "
                "and worst(op, problem) < 1e-4",
            ),
        ],
    ),
    Mistake(
        5,
        "reversed",
        "The verdict is reversed: you return True where the backward is wrong.",
        [(_VERDICT, "changed or not worst(op, problem) < 1e-4")],
    ),
    Mistake(
        5,
        "always-true",
        "Every op agrees: worst does not count.",
        [(_VERDICT, "not changed")],
    ),
]
