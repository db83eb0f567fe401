"""splice: small made files for the faults, the real files where they are at hand."""

import gzip
import sys

import numpy as np
import pytest

from tests.data.real_files import splice_folder
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import splice

BASES = {
    "A": "1,0,0,0",
    "G": "0,1,0,0",
    "C": "0,0,1,0",
    "T": "0,0,0,1",
    "D": ".333333,.333333,.333333,0",
    "N": "0.25,0.25,0.25,0.25",
    "S": "0,0.5,0,0.5",
}


def line(sequence="AGCT" * 15, outputs="1,0,0"):
    return f"inputOutputVector({','.join(BASES[base] for base in sequence)};{outputs})"


def write(folder, *lines, pack=bytes, suffix=""):
    folder.mkdir(exist_ok=True)
    (folder / f"spliceTest.tr{suffix}").write_bytes(pack("\n".join(lines).encode()))


@pytest.mark.parametrize("pack, suffix", [(gzip.compress, ".gz"), (bytes, "")])
@pytest.mark.parametrize("inner", ["", "splice"])
def test_small_files(tmp_path, pack, suffix, inner):
    write(
        tmp_path / inner,
        line(),
        "",
        line("DNS" * 20, "0,0,1"),
        line("C" * 60, "0,1,0"),
        pack=pack,
        suffix=suffix,
    )
    data = splice("test", tmp_path, verify=False)
    assert data.inputs.shape == (3, 240) and data.inputs.dtype == np.float32
    assert data.labels.tolist() == [0, 2, 1] and data.labels.dtype == np.int64
    assert data.classes == ("EI", "IE", "N")
    bases = data.inputs.reshape(3, 60, 4)
    np.testing.assert_array_equal(bases[0, :4], np.eye(4))
    third = np.float32(0.333333)
    expected = [[third, third, third, 0], [0.25] * 4, [0, 0.5, 0, 0.5]]
    np.testing.assert_array_equal(bases[1, -3:], np.array(expected, np.float32))


def test_folder_from_the_environment(tmp_path, monkeypatch):
    write(tmp_path, line())
    monkeypatch.setenv("TINYGRAPH_DATA", str(tmp_path))
    assert len(splice("test", verify=False)) == 1


@pytest.mark.parametrize(
    "bad, message",
    [
        ("inputVector(1,0;1,0,0)", "line 2: expected inputOutputVector.240 inputs;3 outputs., got"),
        (line()[:-1], "line 2: expected inputOutputVector"),
        (line().replace(";", ","), "line 2: expected inputOutputVector"),
        (line("A" * 59), "line 2: expected 240 inputs, 60 bases of 4, got 236"),
        (line("A" * 61), "line 2: expected 240 inputs, 60 bases of 4, got 244"),
        (line(outputs="0,1"), "line 2: expected three outputs, of which one is 1 .*, got 0,1"),
        (line(outputs="1,1,0"), "line 2: expected three outputs, of which one is 1 .*, got 1,1,0"),
        (line(outputs="0.5,0.5,0"), "line 2: expected three outputs"),
        (line().replace("(1,", "(x,"), "line 2: expected numbers from 0 to 1, got 'x'"),
        (line().replace("(1,", "(,"), "line 2: expected numbers from 0 to 1, got ''"),
        (line().replace("(1,", "(nan,"), "line 2: expected numbers from 0 to 1, got 'nan'"),
        (line().replace("(1,", "(1.5,"), "line 2: expected numbers from 0 to 1, got '1.5'"),
        (line().replace("(1,", "(0_1,"), "line 2: expected numbers from 0 to 1, got '0_1'"),
        ("é", "expected ASCII text, got byte 0xc3"),
    ],
)
def test_malformed_lines(tmp_path, bad, message):
    write(tmp_path, line(), bad)
    with pytest.raises(DatasetError, match=message) as error:
        splice("test", tmp_path, verify=False)
    assert "spliceTest.tr" in str(error.value)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda data: data[:-9], "expected an intact gzip file"),
        (
            lambda data: data[:20] + bytes([data[20] ^ 255]) + data[21:],
            "expected an intact gzip file",
        ),
        (lambda data: b"", "expected lines inputOutputVector.*, got none"),
        (lambda data: gzip.compress(bytes(1 << 25)), "expected at most 16777216 bytes of text"),
    ],
)
def test_damaged_files(tmp_path, damage, message):
    write(tmp_path, line(), pack=lambda text: damage(gzip.compress(text)), suffix=".gz")
    with pytest.raises(DatasetError, match=message):
        splice("test", tmp_path, verify=False)


def test_another_text_than_the_published_one(tmp_path):
    write(tmp_path, line())
    with pytest.raises(DatasetError, match="expected 191292 bytes of text, got .* truncated"):
        splice("test", tmp_path)
    write(tmp_path, "x" * 191292)
    with pytest.raises(DatasetError, match="expected SHA-256 9100dbf9.*it is corrupt"):
        splice("test", tmp_path)
    write(tmp_path, "x" * 191293)
    with pytest.raises(DatasetError, match="it is too long"):
        splice("test", tmp_path)


@pytest.mark.parametrize("exists", [True, False])
def test_missing_file(tmp_path, exists):
    folder = tmp_path if exists else tmp_path / "absent"
    with pytest.raises(DatasetError) as error:
        splice("train", folder)
    for part in ("spliceTrain.tr", str(folder), "--data-dir", "$TINYGRAPH_DATA", "--download"):
        assert part in str(error.value)


def test_another_split():
    with pytest.raises(ArgumentError, match="did you mean 'train'"):
        splice("trian")


def test_download_checks_the_published_hash(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch", reason="needs pooch")
    asked = []

    def retrieve(url, known_hash, name, folder):
        asked.append((url, known_hash))
        write(tmp_path, line())
        return str(folder / name)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert len(splice("test", tmp_path, download=True, verify=False)) == 1
    assert asked[0][0].endswith("/testData/splice/spliceTest.tr")
    assert asked[0][1].startswith("sha256:9100dbf918f123b1")


def test_download_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match=r"pip install -e '\.\[data\]'"):
        splice("test", tmp_path, download=True)


def test_the_real_files():
    """Counts of the classes, the shares of the bases against UCI's, and the bases at a junction."""
    folder = splice_folder()
    train, test = splice("train", folder), splice("test", folder)
    assert np.bincount(train.labels).tolist() == [682, 674, 1456]
    assert np.bincount(test.labels).tolist() == [85, 94, 199]
    # UCI: of the bases of class EI 22.153 % are A, 31.415 % G, 24.561 % C, 21.771 % T, and 0.1 % N.
    inputs = np.concatenate([part.inputs[part.labels == 0] for part in (train, test)])
    share = inputs.reshape(-1, 4).mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(share, [0.22178, 0.3144, 0.24586, 0.21796], atol=1e-5)
    # Behind an exon an intron begins with GT, before one it ends with AG.
    bases = train.inputs.reshape(-1, 60, 4).argmax(axis=2)
    assert np.mean((bases[train.labels == 0][:, 30:32] == [1, 3]).all(axis=1)) > 0.95
    assert np.mean((bases[train.labels == 1][:, 28:30] == [0, 1]).all(axis=1)) > 0.95
