"""interpolate against exact fractions: every mode, sizes and factors, up and down, one pixel."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3, 5, 4))
IMAGES = numbers(0, (3, 5, 17, 12))


@st.composite
def resizing_problems(draw):
    axes = draw(st.integers(1, 2))
    linear = ("linear", "bilinear")[axes - 1]
    mode = draw(st.sampled_from(("nearest", "nearest-exact", linear)))
    x = numbers(draw(seeds), draw(shapes(axes + 2, axes + 2, max_side=5)))
    kwargs = {"mode": mode}
    if mode == linear:
        kwargs["align_corners"] = draw(st.booleans())
    factor = st.sampled_from((1.0, 1.25, 1.5, 2.0, 3.0))
    if draw(st.booleans()):
        kwargs["scale_factor"] = (
            draw(st.one_of(factor, st.just(0.5)))
            if axes == 1
            else draw(st.one_of(factor, st.tuples(factor, factor)))
        )
        kwargs["recompute_scale_factor"] = draw(st.sampled_from((None, False, True)))
        if kwargs["scale_factor"] == 0.5 and x.shape[2] < 2:
            kwargs["scale_factor"] = 2.0
    else:
        side = st.integers(1, 9)
        kwargs["size"] = draw(side if axes == 1 else st.one_of(side, st.tuples(side, side)))
    return Problem((x,), kwargs, (True,))


class TestInterpolate(OpContract):
    function = staticmethod(tg.interpolate)
    reference = staticmethod(reference.interpolate)
    problems = resizing_problems()
    large_problems = (
        Problem((IMAGES,), {"scale_factor": 2, "mode": "bilinear", "align_corners": True}),
        Problem((IMAGES,), {"size": (9, 25), "mode": "bilinear"}),
        Problem((IMAGES,), {"scale_factor": (1.5, 0.5)}),
    )
    conventions = [
        Convention(
            "pixels at corners reach to the border",
            ([[[1.0, 5.0]]],),
            [[[1.0, 2.0, 4.0, 5.0]]],
            ([[[2.0, 2.0]]],),
            {"scale_factor": 2, "mode": "linear"},
        ),
        Convention(
            "one output of aligned corners is the first pixel",
            ([[[1.0, 5.0]]],),
            [[[1.0]]],
            ([[[1.0, 0.0]]],),
            {"size": 1, "mode": "linear", "align_corners": True},
        ),
        Convention(
            "nearest is the pixel before, nearest-exact the one in the middle",
            ([[[1.0, 2.0, 3.0]]],),
            [[[2.0]]],
            ([[[0.0, 1.0, 0.0]]],),
            {"size": 1, "mode": "nearest-exact"},
        ),
        *[
            Convention(
                f"{mode}: 7 pixels that remain 7 are copied",
                ([[[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]]],),
                [[[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]]],
                ([[[1.0] * 7]],),
                {"scale_factor": 1.1, "mode": mode},
            )
            for mode in ("nearest", "nearest-exact", "linear")
        ],
        Convention(
            "bilinear: rows between rows, columns as they are",
            ([[[[1.0, 2.0], [3.0, 6.0]]]],),
            [[[[1.0, 2.0], [1.5, 3.0], [2.5, 5.0], [3.0, 6.0]]]],
            ([[[[2.0, 2.0], [2.0, 2.0]]]],),
            {"scale_factor": (2, 1.4), "mode": "bilinear"},
        ),
        Convention(
            "infinities stay where nearest reads them",
            ([[[np.inf, np.nan, 3.0]]],),
            [[[np.inf, np.inf, np.nan, np.nan, 3.0, 3.0]]],
            kwargs={"scale_factor": 2},
        ),
    ]
    bad_input = [
        Bad("two axes", (X[0, 0], 2), {}, ShapeError, "interpolate: x: expected 3 axes (N, C, L)"),
        Bad("five axes", (X[None], 2), {}, ShapeError, "or 4 axes (N, C, H, W), got 5 axes"),
        Bad("no pixel", (X[..., :0], 2), {}, ShapeError, "images of at least one pixel"),
        Bad("neither", (X,), {}, ArgumentError, "size, or scale_factor in its place, got neither"),
        Bad("both", (X, 2, 2.0), {}, ArgumentError, "size, or scale_factor in its place, got both"),
        Bad("size 0", (X, 0), {}, ArgumentError, "size: expected an int of at least 1"),
        Bad("three sizes", (X, (1, 2, 3)), {}, ArgumentError, "size: expected a number, or 2"),
        Bad("factor", (X,), {"scale_factor": -1.0}, ArgumentError, "scale_factor: expected"),
        Bad("small", (X,), {"scale_factor": 0.1}, ShapeError, "an output of at least one pixel"),
        Bad("mode", (X, 2), {"mode": "bicubic"}, ArgumentError, "mode: expected"),
        Bad("images", (X, 2), {"mode": "linear"}, ArgumentError, "bilinear for images"),
        Bad("sequences", (X[0], 2), {"mode": "bilinear"}, ArgumentError, "linear for (N, C, L)"),
        Bad("corners", (X, 2), {"align_corners": True}, ArgumentError, "None or False for nearest"),
        Bad(
            "a factor of a size",
            (X, 2),
            {"recompute_scale_factor": True},
            ArgumentError,
            "recompute_scale_factor: expected False with a size",
        ),
        Bad("antialias", (X, 2), {"antialias": True}, ArgumentError, "Way out: an average first"),
        Bad("integers", (X.astype(int), 2), {}, DtypeError, "float32 or float64"),
    ]
