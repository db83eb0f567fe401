"""splice: 3,190 pieces of primate DNA, 60 bases each, with or without a splice junction.

    base     A 1,0,0,0   G 0,1,0,0   C 0,0,1,0   T 0,0,0,1      60 bases of 4 inputs: 240
    unsure   N (any) .25 each; other letters that stand for two or three bases share 1 likewise
    class    EI 1,0,0   IE 0,1,0   N 0,0,1
    line     inputOutputVector(240 inputs;3 outputs)

The junction, where there is one, lies between bases 30 and 31.  EI: an exon ends there and an
intron begins; IE: the other way round; N: neither.

The notes beside the published files name the four columns A, G, T, C.  The files have A, G, C, T:
so read, the 3,190 lines are the sequences of UCI's file; the other way round two of them are.

The two files are not part of tinygraph: a folder with them is named, or they are downloaded.  31
distinct lines of the test file stand in the training file too: a tenth of the whole was set apart
without a look at repeated sequences.
"""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np

from tinygraph.base import AnyPath, one_of
from tinygraph.data import files
from tinygraph.data.dataset import SPLITS, ArrayDataset
from tinygraph.data.files import Published, fault, opened
from tinygraph.engine import Array

URL = (
    "https://raw.githubusercontent.com/nickoppen/nnP/0c5169bdca9431ac3de7d315680e099b228d014e/"
    "testData/splice/"
)
FILES = {  # as published: text
    "spliceTrain.tr": Published(
        1423570, "319781a483f679ef9e4c02a7544767c32ea56c98abde0929dd6d509bd2a5c6a0"
    ),
    "spliceTest.tr": Published(
        191292, "9100dbf918f123b131da6edf06a7f98c9b32b4372a95958bb141705a3e0c3a27"
    ),
}
BASES = ("A", "G", "C", "T")  # the order of the four inputs of a base
INPUTS = 240
CLASSES = ("EI", "IE", "N")

_MAX_BYTES = 1 << 24  # the larger of the files has 1.4 MB
_LINE = "inputOutputVector(240 inputs;3 outputs)"


def splice(
    split: str = "train",
    data_dir: AnyPath | None = None,
    download: bool = False,
    verify: bool = True,
) -> ArrayDataset:
    """Splice junctions in primate DNA: 2,812 sequences for training, 378 for the test.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.
    data_dir : str or Path, optional
        The folder that holds spliceTrain.tr and spliceTest.tr, or that has them in its folder
        `splice`; by default the folder that the environment variable TINYGRAPH_DATA names.  Files
        may be text, as published, or compressed with gzip (`.tr.gz`).
    download : bool
        Fetch a file that is missing into `data_dir`, or into the user's cache where none is named.
        Needs pooch.
    verify : bool
        Whether the text must be the published one, by its SHA-256.

    Returns
    -------
    ArrayDataset
        Inputs (N, 240), float32 from 0 to 1; labels (N,), int64: 0 for EI, 1 for IE, 2 for N.

    Raises
    ------
    DatasetError
        A file is missing, corrupt, malformed, or not the published one.
    ArgumentError
        Another name of a split.

    References
    ----------
    Noordewier, Towell, Shavlik, "Training knowledge-based neural networks to recognize genes in DNA
    sequences", NIPS 3, 1991 (UCI Machine Learning Repository, "Molecular Biology (Splice-junction
    Gene Sequences)"); the encoding and the two parts are those of the project nnP, 2015.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> adenines = ",".join(["1,0,0,0"] * 60)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/spliceTest.tr", "w") as file:
    ...         _ = file.write(f"inputOutputVector({adenines};0,0,1)")
    ...     tg.data.splice("test", folder, verify=False)
    ArrayDataset(splice: 1 samples of float32 (240,))
    """
    one_of("splice", "split", split, SPLITS)
    name = "spliceTrain.tr" if split == "train" else "spliceTest.tr"
    folders = files.folders(data_dir, "splice")
    names = [name, f"{name}.gz"]
    path = files.find("splice", names, folders, URL, FILES[name], download)
    with opened("splice", path) as stream:
        text = stream.read(_MAX_BYTES + 1)  # no more is ever decompressed
    if len(text) > _MAX_BYTES:
        raise fault("splice", path, f"at most {_MAX_BYTES} bytes of text", "more")
    if verify:
        files.verify("splice", path, FILES[name], text)
    inputs, labels = _parse(path, text)
    return ArrayDataset(inputs, labels, "splice", CLASSES)


def _parse(path: Path, text: bytes) -> tuple[Array, Array]:
    """Inputs (N, 240) and labels (N,) of the lines; empty lines are left out."""
    try:
        lines = text.removeprefix(codecs.BOM_UTF8).decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise fault("splice", path, "ASCII text", f"byte {text[error.start]:#04x}") from None
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise fault("splice", path, f"lines {_LINE}", "none")
    inputs = np.empty((len(numbered), INPUTS), np.float32)
    labels = np.empty(len(numbered), np.int64)
    for row, (number, line) in enumerate(numbered):
        inputs[row], labels[row] = _parse_line(path, number, line)
    return inputs, labels


def _parse_line(path: Path, number: int, line: str) -> tuple[list[float], int]:
    """The 240 inputs and the class of one line."""
    start, end = "inputOutputVector(", ")"
    parts = line.removeprefix(start).removesuffix(end).split(";")
    if not (line.startswith(start) and line.endswith(end)) or len(parts) != 2:
        raise fault("splice", f"{path}, line {number}", _LINE, _shortened(line))
    inputs, outputs = ([_number(path, number, word) for word in p.split(",")] for p in parts)
    if len(inputs) != INPUTS:
        raise fault(
            "splice", f"{path}, line {number}", f"{INPUTS} inputs, 60 bases of 4", len(inputs)
        )
    if sorted(outputs) != [0.0, 0.0, 1.0]:
        raise fault(
            "splice",
            f"{path}, line {number}",
            "three outputs, of which one is 1 and two are 0",
            parts[1],
        )
    return inputs, outputs.index(1.0)


def _number(path: Path, line: int, word: str) -> float:
    try:
        value = -1.0 if "_" in word else float(word)  # Python reads 1_0 as ten
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:  # NaN is neither
        raise fault("splice", f"{path}, line {line}", "numbers from 0 to 1", repr(_shortened(word)))
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
