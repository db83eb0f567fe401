"""super_resolution: the pictures with which super-resolution is trained and measured.

    T91     91 small pictures, to train on
    Set5    baby, bird, butterfly, head, woman
    Set14   14 more, one of them grey

The pictures are not part of tinygraph, and have no explicit licence: a folder is named that holds
the folders T91, Set5 and Set14.  They are found beside many implementations of SRCNN, as PNG or as
BMP.  What is verified is their pixels, so that neither format nor file names matter.

Source: Yang, Wright, Huang, Ma, "Image super-resolution via sparse representation", IEEE TIP 2010
(T91); Bevilacqua, Roumy, Guillemot, Alberi-Morel, "Low-complexity single-image super-resolution
based on nonnegative neighbor embedding", BMVC 2012 (Set5); Zeyde, Elad, Protter, "On single image
scale-up using sparse-representations", 2010 (Set14).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from tinygraph.base import AnyPath, one_of
from tinygraph.data import files
from tinygraph.data.image_folder import ImageFolder, image_folder
from tinygraph.data.images import decode, pixels


class PublishedPictures(NamedTuple):
    """How many pictures a set has, and the SHA-256 over those of their pixels, sorted."""

    number: int
    sha256: str


SETS = {
    "T91": PublishedPictures(
        91, "74ec4a268626f6365a3d68c577ea402a5afde668f5986a1b1e95259ff5cc048b"
    ),
    "Set5": PublishedPictures(
        5, "8e9b8ac8d5a30e6668661b1c3430fcc0bd1f23381ef5f60166e9f818f0b1abf4"
    ),
    "Set14": PublishedPictures(
        14, "58088330eb1aae5e06e236176581cc86466e219a55db11ff3751e90152d2e126"
    ),
}
WAY_OUT = (
    "name the folder that holds T91, Set5 and Set14 with --data-dir or $TINYGRAPH_DATA; "
    "github.com/tegg89/SRCNN-Tensorflow has the pictures"
)


def super_resolution(
    name: str, data_dir: AnyPath | None = None, verify: bool = True
) -> ImageFolder:
    """The pictures of one of the usual sets.

    Parameters
    ----------
    name : {"T91", "Set5", "Set14"}
        Which set.
    data_dir : str or Path, optional
        The folder that holds a folder of that name, or has it in its folder `super_resolution`; by
        default the folder that the environment variable TINYGRAPH_DATA names.
    verify : bool
        Whether the pixels must be the published ones; all pictures are decoded for it.

    Returns
    -------
    ImageFolder
        Pictures (3, H, W) of different sizes, float32 from 0 to 1, sorted by name.

    Raises
    ------
    DatasetError
        The folder is missing; a picture is missing, damaged, or another one; Pillow is not
        installed.
    ArgumentError
        Another name of a set.

    Examples
    --------
    >>> import pathlib, tempfile, tinygraph as tg
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (pathlib.Path(folder) / "Set5").mkdir()
    ...     Image.new("RGB", (6, 4), "red").save(f"{folder}/Set5/baby.png")
    ...     pictures = tg.data.super_resolution("Set5", folder, verify=False)
    ...     pictures[0][0].shape
    (3, 4, 6)
    """
    one_of("super_resolution", "name", name, SETS)
    folders = files.folders(data_dir, "super_resolution")
    path = next((folder / name for folder in folders if (folder / name).is_dir()), None)
    if path is None:
        raise files.missing("super_resolution", name, folders, WAY_OUT)
    pictures = image_folder(path)
    if verify:
        _verify(path, pictures, SETS[name])
    return pictures


def _verify(path: Path, pictures: ImageFolder, published: PublishedPictures) -> None:
    """Raise unless the pictures are, pixel for pixel, the published ones."""
    if len(pictures) != published.number:
        raise files.fault(
            "super_resolution", path, f"{published.number} pictures", len(pictures), WAY_OUT
        )
    found = pixel_digest(pictures)
    if found != published.sha256:
        raise files.fault(
            "super_resolution",
            path,
            f"the published pictures (SHA-256 {published.sha256} of their pixels)",
            f"{found}: a picture is another one, or was compressed with loss",
            WAY_OUT,
        )


def pixel_digest(pictures: ImageFolder) -> str:
    """The SHA-256 over the sorted SHA-256 of each picture's height, width and RGB bytes.

    Whatever the files are called and however they are compressed.
    """
    digests = []
    for picture in pictures.paths:
        array = pixels(decode("super_resolution", str(picture), picture))  # (3, H, W)
        one = hashlib.sha256(repr(array.shape).encode() + array.tobytes())
        digests.append(one.digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()
