"""Colour by ITU-R BT.601, as MATLAB's rgb2ycbcr has it: luma, on which SRCNN works, and chroma.

    Y  =  16 +  65.481 R + 128.553 G +  24.966 B        R, G, B from 0 to 1
    Cb = 128 -  37.797 R -  74.203 G + 112.000 B        Y from 16 to 235
    Cr = 128 + 112.000 R -  93.786 G -  18.214 B        Cb, Cr from 16 to 240

All three are divided by 255 here.  Arrays have axes (3, H, W) or (..., 3, H, W).

Source: Recommendation ITU-R BT.601; the coefficients are those of MATLAB's documentation.
"""

from __future__ import annotations

import numpy as np

from tinygraph.engine import Array

TO_YCBCR = (
    np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
    / 255
)
OFFSET = np.array([16.0, 128.0, 128.0]) / 255
TO_RGB = np.linalg.inv(TO_YCBCR)


def luma(rgb: Array) -> Array:
    """Y of a picture (3, H, W) of floats from 0 to 1: (1, H, W), in the dtype of the picture.

    >>> white = np.ones((3, 1, 1))
    >>> float(255 * luma(white)[0, 0, 0])
    235.0
    """
    y = np.tensordot(TO_YCBCR[0], rgb, 1) + OFFSET[0]  # (H, W), float64
    return y[None].astype(rgb.dtype)


def to_ycbcr(rgb: Array) -> Array:
    """Y, Cb and Cr (3, H, W) of a picture of floats from 0 to 1."""
    return (np.tensordot(TO_YCBCR, rgb, 1) + OFFSET[:, None, None]).astype(rgb.dtype)


def to_rgb(ycbcr: Array) -> Array:
    """The picture (3, H, W) of Y, Cb and Cr; what lies outside 0 to 1 is clipped."""
    rgb = np.tensordot(TO_RGB, ycbcr - OFFSET[:, None, None].astype(ycbcr.dtype), 1)
    return np.clip(rgb, 0, 1).astype(ycbcr.dtype)
