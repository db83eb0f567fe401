"""The contract of a function of one number: `OpContract` with all filled in that members share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import DtypeError

FLOATS = "float32 or float64"
INTEGERS = "float32, float64 or an integer"
BOOLS = "float32, float64, an integer or bool"


class IntegersToFloats:
    """Mixed into the contract of a function that has floats for integers and bools too."""

    converts = True

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
    def test_of_integers_and_bools_it_is_float32(self, dtype, device):
        whole = np.array([1, 2, 1], dtype)  # where each of the functions has a value
        y = type(self).function(tg.Tensor(whole, device=device))
        assert y.dtype == np.float32 and not y.requires_grad
        expected = type(self).reference(whole.astype(np.float64))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6, atol=1e-7)


class UnaryContract(OpContract):
    """A member says its function and reference, by `edges` its conventions, and what is its own."""

    interval = -3.0, 3.0  # that numbers are drawn from
    settings: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    takes = FLOATS
    converts = False  # integers and bools, to float32: see IntegersToFloats
    bad_settings: ClassVar[tuple[Bad, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.problems = st.builds(
            lambda problem, settings: problem._replace(kwargs=settings),
            elementwise_problems(*cls.interval),
            st.sampled_from(cls.settings),
        )
        blocks = np.linspace(*cls.interval, 700)  # three, the last one in part
        cls.large_problems = tuple(Problem((blocks,), settings) for settings in cls.settings)
        refused = [np.ones(2, np.float16)]
        if not cls.converts:
            refused += [np.array([1, 2])] if cls.takes == FLOATS else []
            refused += [np.array([True])] if cls.takes != BOOLS else []
        words = f"{cls.function.__name__}: x: expected {cls.takes}"
        cls.bad_input = [Bad(str(a.dtype), (a,), {}, DtypeError, words) for a in refused]
        cls.bad_input += cls.bad_settings


def edges(*rows: tuple[float, float, float], **kwargs: Any) -> Convention:
    """What is agreed at some numbers: rows of (x, y, derivative)."""
    x, y, slopes = map(list, zip(*rows, strict=True))
    return Convention("edges", (x,), y, (slopes,), kwargs)
