"""`tinygraph gradcheck`: stages, exit codes, and what is said about a learner's file."""

import json
import re
from pathlib import Path

import pytest

from tinygraph.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "gradcheck.md"
EXAMPLE = re.search(r"```python\n(# my_op.py\n.*?)```", DOCS.read_text(), re.S)[1]
RIGHT = EXAMPLE.replace("2 * x * gy", "2 * x * gy / len(x)")


def check(tmp_path, capsys, text, *options, name="MeanSquare"):
    path = tmp_path / "my_op.py"
    path.write_text(text)
    code = main(["gradcheck", f"{path}:{name}", *options])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out + err


def test_the_example_of_the_docs(tmp_path, capsys):
    code, text = check(tmp_path, capsys, EXAMPLE)
    assert code == 1 and len(text.splitlines()) <= 24
    shown = re.search(r"```text\n(gradcheck MeanSquare\n.*?)```", DOCS.read_text(), re.S)[1]
    assert text == shown


def test_a_right_op(tmp_path, capsys):
    code, text = check(tmp_path, capsys, RIGHT)
    assert code == 0 and "FAILED" not in text and "elements compared" in text


@pytest.mark.parametrize(
    "change, stage, words",
    [
        (("import numpy", "import nunpy"), "loads", "line 2: import nunpy"),
        (("def infer", "def infer("), "loads", "SyntaxError"),
        (("np.mean(x * x, axis=0)", "np.mean(z)"), "forward", "NameError"),
        (("x.shape[1:], x.dtype", "x.shape, x.dtype"), "forward", "what infer promised"),
        (("2 * x * gy,", "gy,"), "shapes", "wrong shape"),
        (("2 * x * gy", "np.float64(2) * x.astype('f8') * gy / len(x)"), "dtype", "wrong dtype"),
        (("2 * x * gy", "np.multiply(2 * x, gy, out=x) / len(x)"), "properties", "changes input 0"),
        (("2 * x * gy", "2 * q * gy"), "gradient", "line 16: return (2 * q * gy,)"),
        (
            ("class", "def reference(x):\n    return x.sum(0)\n\n\nclass"),
            "forward",
            "the reference",
        ),
    ],
)
def test_the_first_failing_stage(tmp_path, capsys, change, stage, words):
    code, text = check(tmp_path, capsys, EXAMPLE.replace(*change))
    assert code == 1 and re.search(rf"{stage} +FAILED", text) and words in text


def test_json(tmp_path, capsys):
    code, text = check(tmp_path, capsys, EXAMPLE, "--json")
    answer = json.loads(text)
    assert code == 1 and answer["stage"] == "gradient" and not answer["ok"]
    assert answer["report"]["worst"]["input"] == 0


def test_problems_arguments_and_functions(tmp_path, capsys):
    text = RIGHT + (
        "\nPROBLEMS = [((4, 2),), (np.ones((3, 1)),)]\n"
        "def twice(x, w): return x @ w\n"
        "twice.PROBLEMS = [((2, 3), (3, 4))]\n"
        "class Scale(tg.Op):\n"
        "    PROBLEMS = [({'by': 3}, ((2,),))]\n"
        "    def __init__(self, by): self.by = by\n"
        "    def forward(self, mem, x): return x * self.by, None\n"
        "    def backward(self, mem, gy, saved, needs): return (gy * self.by,)\n"
    )
    for name in ("MeanSquare", "twice", "Scale"):
        assert check(tmp_path, capsys, text, name=name)[0] == 0


@pytest.mark.parametrize("target", ["nothing", "my_op.py", ":Op"])
def test_bad_targets(capsys, target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["gradcheck", target]) == 2
    assert "FILE.py:NAME" in capsys.readouterr().err


def test_a_name_that_is_not_there(tmp_path, capsys):
    code, text = check(tmp_path, capsys, EXAMPLE, name="MeanSqare")
    assert code == 2 and "did you mean 'MeanSquare'?" in text


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["gradcheck", f"{tmp_path}/none.py:Op"]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/none.py: expected a Python file, got no such file" in error
    assert main(["gradcheck", "my_op.py"]) == 2
    assert "a Python file, a colon and a name in it" in capsys.readouterr().err
