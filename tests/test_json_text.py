"""JSON that is written: numbers stay numbers, others read it, what has no place is told."""

import ast
import enum
import json
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import cli
from tinygraph.base.errors import ArgumentError
from tinygraph.base.json_text import from_json, to_json
from tinygraph.base.page import value_text
from tinygraph.training import RunFolder

ROOT = Path(__file__).parents[1]
Rule = enum.Enum("Rule", {"ADAM": "adam", "SGD": 2})
Pair = namedtuple("Pair", "a b")


@dataclass
class Config:
    lr: float
    path: Path


def strict(text):
    """What a reader of nothing but JSON finds."""

    def refused(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refused)


VALUES = [
    (np.float32(0.5), 0.5),
    (np.float16(0.25), 0.25),
    (np.float32(0.1), 0.10000000149011612),
    (np.longdouble(1.5), 1.5),
    (np.int8(-3), -3),
    (np.uint64(2**64 - 1), 2**64 - 1),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.array(2.5), 2.5),
    (np.array([[1, 2], [3, 4]], np.int32), [[1, 2], [3, 4]]),
    (np.array([1.5, np.nan]), [1.5, "NaN"]),
    (np.zeros((0, 3)), []),
    (np.ma.masked_array([1, 2], [False, False]), [1, 2]),
    (np.datetime64("2026-11-28"), "2026-11-28"),
    (np.array(["2026-11-28"], "datetime64[D]"), ["2026-11-28"]),
    (tg.tensor(0.5), 0.5),
    (tg.tensor([0.5]), 0.5),
    (tg.tensor([1, 2]), [1, 2]),
    (tg.Parameter(np.float32([[0.5, 1.0]])), [[0.5, 1.0]]),
    ((1, (2.5, None)), [1, [2.5, None]]),
    (range(3), [0, 1, 2]),
    (Pair(1, np.int64(2)), [1, 2]),
    (OrderedDict(a=MappingProxyType({"b": np.int16(1)})), {"a": {"b": 1}}),
    (Config(np.float64(0.1), Path("a/b")), {"lr": 0.1, "path": "a/b"}),
    (Path("runs/ä"), "runs/ä"),
    (date(2026, 11, 28), "2026-11-28"),
    (np.dtype("float32"), "float32"),
    (np.float64, "float64"),
    (tg.float32, "float32"),
    (Rule.ADAM, "adam"),
    (Rule.SGD, 2),
    (enum.IntEnum("Count", "ONE").ONE, 1),
    (tg.device("cpu"), "cpu"),
    ({1: 0, np.int64(2): 0} | {None: 0, 0.5: 0}, {"1": 0, "2": 0, "null": 0, "0.5": 0}),
    ({True: 1, Rule.ADAM: 2, np.bool_(False): 3}, {"true": 1, "adam": 2, "false": 3}),
    ("\udcff", "\udcff"),
    (math.inf, "Infinity"),
    ([-np.float32(np.inf), math.nan], ["-Infinity", "NaN"]),
    ({math.inf: 1}, {"Infinity": 1}),
]


@pytest.mark.parametrize("value, expected", VALUES)
def test_what_is_written(tmp_path, value, expected):
    run = RunFolder(tmp_path)
    run.write_config({"x": value})
    found = strict((tmp_path / "config.json").read_text(encoding="utf-8"))["x"]
    assert found == expected and type(found) is type(expected)
    assert repr(strict(to_json("t", value))) == repr(expected)


def test_numbers_that_are_not_finite_come_back(tmp_path):
    run = RunFolder(tmp_path)
    given = {"clip": np.float32(np.inf), "low": [-math.inf, {"fill": math.nan}]}
    run.write_config(given)
    run.write_result(given)
    again = RunFolder.open(tmp_path)
    for found in (again.config, again.result()):
        assert found["clip"] == math.inf and found["low"][0] == -math.inf
        assert math.isnan(found["low"][1]["fill"])
    (tmp_path / "config.json").write_text('{"clip": Infinity}', encoding="utf-8")  # as it was
    assert RunFolder.open(tmp_path).config == {"clip": math.inf}
    assert from_json(b'["NaN ", "Infinity"]') == ["NaN ", math.inf]


def test_a_log_has_gaps(tmp_path):
    run = RunFolder(tmp_path)
    run.append({"epoch": np.int64(1), "loss": np.float32("nan"), "parts": (0.5, math.inf)})
    assert strict((tmp_path / "log.jsonl").read_text()) == run.rows()[0]
    assert run.rows() == [{"epoch": 1, "loss": None, "parts": [0.5, None]}]


ENDLESS: list = []
ENDLESS.append(ENDLESS)
BAD = [
    ({"act": [0, tg.relu]}, r"\['act'\]\[1\]", "write its name: x.__name__"),
    ({"model": {"kind": tg.nn.Linear}}, r"\['model'\]\['kind'\]", "x.__name__"),
    ({"a": {1, 2}}, r"\['a'\]", r"sorted\(x\)"),
    ({"a": b"x"}, r"\['a'\]", "hex"),
    ({"a": 1j}, r"\['a'\]", r"repr\(x\)"),
    ({"a": np.array([1j])}, r"\['a'\]\[0\]", r"repr\(x\)"),
    ({"a": (i for i in range(2))}, r"\['a'\]", r"list\(x\)"),
    ({"a": object()}, r"\['a'\]", r"repr\(x\)"),
    ({"a": np.ma.masked_array([1.0, 2.0], [True, False])}, r"\['a'\]", "x.filled"),
    ({"a": {(1, 2): 3}}, r"\['a'\]: expected keys that are texts", r"str\(key\)"),
    ({"a": {1: 2, "1": 3}}, r"\['a'\].*'1' twice", "rename"),
    (ENDLESS, "one that holds itself", ""),
    ({"a": 10**5000}, "fewer digits", "hex"),
]


@pytest.mark.parametrize("value, place, way_out", BAD)
def test_what_has_no_place_is_told_and_the_old_file_stays(tmp_path, value, place, way_out):
    run = RunFolder(tmp_path)
    run.write_config({"lr": 0.5})
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(ArgumentError, match=f"config.json: .*{place}.*{way_out}|{place}"):
        run.write_config({"x": value} if value is ENDLESS else value)
    assert run.config == {"lr": 0.5} and (tmp_path / "config.json").read_bytes() == before
    with pytest.raises(ArgumentError):
        run.append({"x": value})
    assert not (tmp_path / "log.jsonl").exists()


def test_the_way_out_of_an_error_is_a_value_that_is_written():
    with pytest.raises(ArgumentError, match="got a function, <function .*write its name"):
        to_json("t", {"f": strict})
    assert to_json("t", {"f": strict.__name__}) == '{"f": "strict"}'


def test_json_of_the_command_line(monkeypatch, capsys):
    answer = {"ok": np.bool_(True), "loss": np.float32(0.5), "best": math.nan, "to": Path("a")}
    args = SimpleNamespace(command="x", json=True, run_command=lambda _: answer)
    monkeypatch.setattr(cli, "parse", lambda _: args)
    assert cli.main([]) == 0
    found = strict(capsys.readouterr().out)
    assert found == {"ok": True, "loss": 0.5, "best": "NaN", "to": "a"}


def test_lists_of_a_report():
    assert value_text((np.float32(0.5), np.int64(2), Path("a"))) == '[0.5, 2, "a"]'


def test_a_saved_document_is_json(tmp_path):
    """Numbers that JSON lacks, as values and as keys, and they come back."""
    given = {"best": math.inf, "low": [-math.inf], math.inf: 1, 2: "NaN", "also": np.float32(1)}
    path = tg.save(given, tmp_path / "a.safetensors")
    arrays = tg.training.load_arrays(path)
    strict(arrays["tinygraph.document"].tobytes())
    assert tg.load(path) == given
    assert math.isnan(tg.load(tg.save([math.nan], path))[0])


# Messages between two processes of ours, digests, and what goes through `saving` or is refused.
WRITERS = ("json.dump", "json.dumps")
OTHER_WRITERS = {
    "tinygraph/base/json_text.py": 2,
    "tinygraph/files/saving.py": 1,
    "tinygraph/data/cache.py": 1,
    "course/tinygraph_course/commands/protocol.py": 1,
    "course/tinygraph_course/grading/crew.py": 1,
    "benchmarks/course_check.py": 1,
    "benchmarks/cpu/worker.py": 1,
    "benchmarks/distributed/worker.py": 1,
    "benchmarks/distributed/switch.py": 1,
}


def test_there_is_one_encoder():
    found: dict[str, int] = {}
    for folder in ("tinygraph", "course", "benchmarks", "docs", ".ci"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "json.dump" in text else ():
                if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS:
                    name = path.relative_to(ROOT).as_posix()
                    found[name] = found.get(name, 0) + 1
    assert found == {name: n for name, n in OTHER_WRITERS.items() if (ROOT / name).exists()}
