"""Exercise 16: its functions are those of the recipe; other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph.recipes import srcnn_colour, srcnn_network, srcnn_quality
from tinygraph.recipes.srcnn_samples import Crops, Pair
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

PROJECTS = find("projects")
SOLUTION = module(PROJECTS.solution + PROJECTS.harness)


def with_body(function, body):
    """The solution with another body of one function, or another class."""
    text = PROJECTS.solution
    if function == "SRCNN":
        start, end = text.index("    def __init__(self, n1"), text.index("\n\n\ndef experiment")
        return text[:start] + body + text[end:]
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


NETWORK = """    def __init__(self, n1, n2):
        super().__init__()
        conv = tg.nn.Conv2d
        self.conv3 = conv({last})
        self.conv1, self.conv2 = conv({first}), conv(n1, n2, 1)
        self.relu = tg.nn.ReLU()

    def forward(self, x):
        for layer in {layers}:
            x = layer(x)
        return {result}
"""
LAYERS = "(self.conv1, self.relu, self.conv2, self.relu, self.conv3)"
EXPERIMENT = """
    rng = np.random.default_rng(seed)
    held_out = {draw}
    train_set = [p for i, p in enumerate(pictures) if i not in held_out]
    val_set = [pictures[i] for i in held_out]
    kept, values = [], []
    for _ in range(epochs):
        kept.append(train({learnt}))
        values.append(measure(kept[-1], {judged}))
    k = int(np.argmax(values))
    return {result}
"""
GIVEN = {
    "draw": "set(rng.choice(len(pictures), held, replace=False).tolist())",
    "learnt": "train_set",
    "judged": "val_set",
    "result": "k + 1, measure(kept[k], test)",
}


def experimented(**changes):
    return EXPERIMENT.format(**{**GIVEN, **changes})


def networked(last="n2, 1, 5", first="1, n1, 9", layers=LAYERS, result="x"):
    return NETWORK.format(last=last, first=first, layers=layers, result=result)


RIGHT = {
    "luma colour by colour": (
        "luma",
        """
    r, g, b = np.asarray(rgb, np.float64)
    return 16 / 255 + 65.481 / 255 * r + 128.553 / 255 * g + 24.966 / 255 * b
""",
    ),
    "psnr of levels": (
        "psnr",
        """
    H, W = y.shape
    a, b = 255 * y, 255 * luma(rgb)
    d = (a - b)[border : H - border, border : W - border]
    return 20 * float(np.log10(255 / np.sqrt((d * d).mean())))
""",
    ),
    "crops of a view": (
        "crops",
        """
    view = np.lib.stride_tricks.sliding_window_view
    inner = size - 2 * margin
    inputs = view(low, (size, size))[::stride, ::stride].reshape(-1, 1, size, size)
    middle = high[margin : high.shape[0] - margin, margin : high.shape[1] - margin]
    targets = view(middle, (inner, inner))[::stride, ::stride]
    return inputs.copy(), targets.reshape(-1, 1, inner, inner).copy()
""",
    ),
    "layers in a loop": ("SRCNN", networked()),
    "drawn without replacement": ("experiment", experimented()),
    "a generator of numpy's that is shuffled": (
        "experiment",
        experimented(
            draw="(lambda all: (rng.shuffle(all), all)[1][-held:])(list(range(len(pictures))))"
        ),
    ),
    "sorted times": (
        "timed",
        """
    found = []
    for k in range(repeats + 1):
        t = clock()
        run()
        found += [clock() - t] if k else []
    found.sort()
    return 0.5 * (found[(repeats - 1) // 2] + found[repeats // 2])
""",
    ),
}
WRONG = {  # function, body, name of the mistake
    "weights of JPEG": (
        "luma",
        "\n    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] + np.zeros(rgb.shape[1:])\n",
        "full-range",
    ),
    "levels": (
        "luma",
        "\n    r, g, b = rgb.astype(float)\n"
        "    return 16 + 65.481 * r + 128.553 * g + 24.966 * b\n",
        "not-divided-by-255",
    ),
    "three planes": (
        "psnr",
        """
    H, W = y.shape
    d = (np.stack([y, y, y]) - rgb)[:, border : H - border, border : W - border]
    return float(-10 * np.log10((d ** 2).mean()))
""",
        "on-rgb",
    ),
    "the whole picture": (
        "psnr",
        "\n    return -10 * float(np.log10(np.square(luma(rgb) - y).mean()))\n",
        "without-border",
    ),
    "bytes first": (
        "psnr",
        """
    H, W = y.shape
    a, b = np.round(y * 255), np.round(luma(rgb) * 255)
    d = (a - b)[border : H - border, border : W - border]
    return float(10 * np.log10(255 ** 2 / np.mean(d ** 2)))
""",
        "rounded-levels",
    ),
    "from the corner": (
        "crops",
        """
    H, W = low.shape
    k = size - 2 * margin
    rows, columns = (range(0, n - size + 1, stride) for n in (H, W))
    places = [(i, j) for i in rows for j in columns]
    x = np.array([low[i : i + size, j : j + size] for i, j in places])
    t = np.array([high[i : i + k, j : j + k] for i, j in places])
    return x[:, None], t[:, None]
""",
        "target-in-the-corner",
    ),
    "while it fits": (
        "crops",
        """
    x, t, top = [], [], 0
    while top + size < low.shape[0]:
        left = 0
        while left + size < low.shape[1]:
            x.append(low[top : top + size, left : left + size])
            t.append(high[top : top + size, left : left + size][margin : size - margin])
            t[-1] = t[-1][:, margin : size - margin]
            left += stride
        top += stride
    return np.array(x)[:, None], np.array(t)[:, None]
""",
        "last-window-lost",
    ),
    "a ReLU in the result": ("SRCNN", networked(result="self.relu(x)"), "relu-at-the-end"),
    "same": (
        "SRCNN",
        networked(first="1, n1, 9, padding='same'", last="n2, 1, 5, padding='same'"),
        "padded",
    ),
    "all pictures": ("experiment", experimented(learnt="pictures"), "validation-in-training"),
    "the test's curve": ("experiment", experimented(judged="test"), "best-on-test"),
    "its best value": (
        "experiment",
        experimented(result="k + 1, max(values)"),
        "validation-reported",
    ),
    "what was made last": (
        "experiment",
        experimented(result="k + 1, measure(kept[-1], test)"),
        "last-parameters",
    ),
    "always the same": (
        "experiment",
        experimented(draw="set(np.random.default_rng(42).permutation(len(pictures))[:held])"),
        "seed-not-fixed",
    ),
    "the first ones": ("experiment", experimented(draw="range(held)"), "not-drawn"),
    "no warm-up": (
        "timed",
        """
    found = []
    for _ in range(repeats):
        t = clock()
        run()
        found.append(clock() - t)
    return float(np.percentile(found, 50))
""",
        "warm-up-counted",
    ),
    "one": (
        "timed",
        "\n    run()\n    t = clock()\n    run()\n    return clock() - t\n",
        "one-timing",
    ),
}
OUTSIDE = {  # wrong, and like none of the catalogue
    "green": ("luma", "\n    return (16 + 219.0 * rgb[1].astype(float)) / 255\n"),
    "the worst pixel": (
        "psnr",
        "\n    return float(-10 * np.log10(np.max((y - luma(rgb)) ** 2)))\n",
    ),
    "only the first": (
        "crops",
        """
    x = low[:size, :size]
    return x[None, None], high[margin : size - margin, margin : size - margin][None, None]
""",
    ),
    "the first layer twice": ("SRCNN", networked(result="x + x")),
    "half of the epochs": (
        "experiment",
        experimented().replace("range(epochs)", "range((epochs + 1) // 2)"),
    ),
    "the slowest": (
        "timed",
        """
    run()
    found = [0.0]
    for _ in range(repeats):
        t = clock()
        run()
        found.append(clock() - t)
    return max(found)
""",
    ),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(PROJECTS, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(PROJECTS, with_body(function, body), tmp_path).failure
    assert failure.mistake is not None and failure.mistake.name == name, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_is_not_in_the_catalogue_is_not_named_surely(style, tmp_path):
    failure = of(PROJECTS, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and (failure.mistake is None or not failure.sure), failure


# ---- the recipe of the framework --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_luma_and_psnr_are_those_of_the_recipe(seed):
    """Whose psnr takes levels, and rounds nothing itself."""
    draw = np.random.default_rng(seed)
    rgb, border = draw.random((3, 9, 11)), int(draw.integers(0, 3))
    y = srcnn_colour.luma(rgb)[0]
    np.testing.assert_allclose(SOLUTION.luma(rgb), y, rtol=1e-12)
    other = draw.random(y.shape)
    inner = slice(border, 9 - border), slice(border, 11 - border)
    expected = srcnn_quality.psnr(255 * other[inner], 255 * y[inner])
    assert SOLUTION.psnr(other, rgb, border) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("stride", [1, 3])
def test_crops_are_those_of_the_recipe(stride):
    low, high = np.random.default_rng(stride).random((2, 1, 15, 18)).astype(np.float32)
    inputs, targets = SOLUTION.crops(low[0], high[0], 9, stride, 2)
    whole = Crops("grid", 9, stride, 2).cut([Pair("made up", low, high)])[:]
    np.testing.assert_array_equal(inputs, whole[0])
    np.testing.assert_array_equal(targets, whole[1])


def test_the_network_is_that_of_the_recipe():
    ours, theirs = SOLUTION.SRCNN(4, 3), srcnn_network.model(4, 3)
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        mine.value[...] = its.value
    x = np.random.default_rng(0).standard_normal((2, 1, 14, 16)).astype(np.float32)
    with tg.no_grad():
        np.testing.assert_array_equal(ours(x).numpy(), theirs(x).numpy())
