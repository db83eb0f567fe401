"""Run folders and sealed parameters: whole, verified, or a clear error."""

import errno
import json
import os

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

import tinygraph as tg
from tinygraph.base import disk
from tinygraph.base.errors import ArgumentError, CheckpointError, DtypeError
from tinygraph.files import sealed as sealed_files
from tinygraph.training import RunFolder, environment, load_arrays, save_arrays

ARRAYS = {
    "0.weight": np.arange(18, dtype=np.float32).reshape(2, 1, 3, 3),
    "0.bias": np.array([0.5, -0.0], np.float32),
    "steps": np.array(7, np.int64),
    "none": np.zeros((0, 3), np.float64),
}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    return save_arrays(tmp_path_factory.mktemp("sealed") / "parameters.safetensors", ARRAYS)


def test_round_trip(sealed):
    loaded = load_arrays(sealed)
    assert set(loaded) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name], array, strict=True)


def test_other_programs_read_it(sealed):
    for name, array in load_file(sealed).items():
        np.testing.assert_array_equal(array, ARRAYS[name], strict=True)


def test_the_same_arrays_give_the_same_bytes(sealed, tmp_path):
    again = save_arrays(tmp_path / "again", dict(reversed(ARRAYS.items())))
    assert again.read_bytes() == sealed.read_bytes()


def test_sliced_and_transposed_arrays(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    arrays = {"t": base.T, "s": base[::2, ::-1], "0-d": base[0, 0]}
    loaded = load_arrays(save_arrays(tmp_path / "file", arrays))
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)


@pytest.mark.parametrize(
    "arrays, words",
    [
        ({"__metadata__": [1.0]}, "a name that safetensors needs itself"),
        ({"\ud800": [1.0]}, "surrogate"),
        ({1: [1.0]}, "of type int"),
        ({"a": np.longdouble(1)}, r"arrays\['a'\]: expected an array of"),
        ({"a": object()}, "got object"),
        ({"a": "text"}, "got <U4"),
        ({"a": [[1], [1, 2]]}, "expected an array"),
        ({"a": np.zeros(2, ml_dtypes.bfloat16)}, "got bfloat16"),  # could be written, and not read
        ({"a": np.ma.array([1.0], mask=[True])}, "mask"),
        ([[1.0]], "a mapping"),
    ],
    ids=lambda case: "" if isinstance(case, dict) else None,
)
def test_what_nothing_could_read_is_not_written(arrays, words, tmp_path):
    path = save_arrays(tmp_path / "file", ARRAYS)
    before = path.read_bytes()
    with pytest.raises((ArgumentError, DtypeError), match=words):
        save_arrays(path, arrays)
    assert path.read_bytes() == before


def test_a_header_that_safetensors_does_not_read_is_not_written(tmp_path, monkeypatch):
    most = sealed_files._MOST_HEADER
    (tmp_path / "long").write_bytes((most + 1).to_bytes(8, "little"))
    os.truncate(tmp_path / "long", most + 9)
    with pytest.raises(SafetensorError, match="(?i)header ?too ?large"):
        load_file(tmp_path / "long")
    monkeypatch.setattr(sealed_files, "_MOST_HEADER", 1000)
    path = save_arrays(tmp_path / "file", ARRAYS)
    with pytest.raises(ArgumentError, match="names that take up to 1,000 bytes"):
        save_arrays(path, {"a" * 1000: [1.0]})
    assert load_arrays(path).keys() == ARRAYS.keys()


def test_every_flipped_byte_is_noticed(sealed, tmp_path):
    data, path = sealed.read_bytes(), tmp_path / "flipped"
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load_arrays(path)


def test_every_truncation_is_noticed(sealed, tmp_path):
    data, path = sealed.read_bytes(), tmp_path / "short"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CheckpointError):
            load_arrays(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(CheckpointError):
        load_arrays(path)


@given(data=st.binary(max_size=200))
def test_any_other_bytes_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    for is_sealed in (True, False):
        with pytest.raises(CheckpointError, match="load_arrays"):
            load_arrays(path, sealed=is_sealed)


def test_a_file_of_another_program(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(save({"w": np.ones(3, np.float32)}))
    with pytest.raises(CheckpointError, match="a seal in its metadata, got none.*sealed=False"):
        load_arrays(path)
    assert load_arrays(path, sealed=False)["w"].tolist() == [1, 1, 1]


def test_an_absent_file(tmp_path):
    with pytest.raises(CheckpointError, match="No such file"):
        load_arrays(tmp_path / "absent")


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch, call):
    path = save_arrays(tmp_path / "file", ARRAYS)
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(CheckpointError, match="No space left.*free some space"):
        save_arrays(path, {"w": np.ones(1000)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]  # no temporary file stays behind


def test_the_new_file_is_synced_before_it_takes_the_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), replace(a, b))[1])
    save_arrays(tmp_path / "file", ARRAYS)
    assert calls == ["fsync", "replace", "fsync"]  # the file, then the folder


# ---- RunFolder ------------------------------------------------------------------------------


def test_contents(tmp_path):
    run = RunFolder(tmp_path / "a" / "run")
    run.write_config({"recipe": "numba_cnn"})
    run.write_environment(seeds={"all": 3}, command=["x"])
    run.append({"epoch": 1, "loss": 0.1})
    run.append({"epoch": 2, "loss": 0.05})
    run.save_parameters(ARRAYS)
    again = RunFolder.open(run.path)
    assert again.config == {"recipe": "numba_cnn"}
    assert again.rows() == [{"epoch": 1, "loss": 0.1}, {"epoch": 2, "loss": 0.05}]
    assert again.load_parameters()["steps"] == 7
    facts = json.loads((run.path / "environment.json").read_text())
    assert facts["seeds"] == {"all": 3} and facts["numpy"] == np.__version__
    assert {"python", "platform", "blas", "threads", "date", "command"} <= set(facts)


def test_a_run_is_never_written_over(tmp_path):
    RunFolder(tmp_path / "run").append({"epoch": 1})
    with pytest.raises(ArgumentError, match="never written over"):
        RunFolder(tmp_path / "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArgumentError, match="got a file"):
        RunFolder(tmp_path / "file")


def test_new_folders_of_one_second_get_a_counter(tmp_path):
    paths = {RunFolder.new("cnn", tmp_path / "runs").path for _ in range(4)}
    assert len(paths) == 4
    assert all(path.name.startswith("cnn-") and path.is_dir() for path in paths)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="Not a directory"):
        RunFolder(tmp_path / "file" / "run")
    with pytest.raises(CheckpointError, match="a place that can be written"):
        RunFolder.new("cnn", tmp_path / "file")


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.append({"epoch": 1})
    with (run.path / "log.jsonl").open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert run.rows() == [{"epoch": 1}]


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "\xff"])
def test_a_config_that_is_no_json_object(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"config\.json"):
        RunFolder.open(tmp_path)


def test_open_what_is_no_run(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        RunFolder.open(tmp_path / "absent")
    with pytest.raises(CheckpointError, match=r"config\.json: expected a file that a run wrote"):
        RunFolder.open(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "log.jsonl").write_text("nonsense\n")
    with pytest.raises(CheckpointError, match="one JSON object on each line"):
        RunFolder.open(tmp_path).rows()


def test_environment_reports_thread_settings(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = environment()
    assert found["threads"]["OPENBLAS_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in found["threads"]
    assert found["blas"]["name"]
    json.dumps(found)


def test_environment_with_a_blas_that_threadpoolctl_does_not_know(monkeypatch):
    monkeypatch.setitem(environment.__globals__, "threadpool_info", list)
    blas = environment()["blas"]
    assert blas["name"] == np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    assert blas["threads"] is None


# ---- files that were edited ----------------------------------------------------------------------

ROWS = {
    "a number": "5",
    "null": "null",
    "a list": "[]",
    "deep": "[" * 100_000,
    "a key twice": '{"epoch": 1, "epoch": 2}',
    "cut": '{"epoch": 1',
    "epoch x": '{"epoch": "x"}',
    "epoch null": '{"epoch": null}',
    "epoch NaN": '{"epoch": NaN}',
    "epoch 1e400": '{"epoch": 1e400}',
    "epoch 1.5": '{"epoch": 1.5}',
    "epoch true": '{"epoch": true}',
    "epoch -1": '{"epoch": -1}',
    "5000 digits": '{"epoch": ' + "9" * 5000 + "}",
    "loss x": '{"epoch": 1, "loss": "x"}',
    "loss []": '{"epoch": 1, "validation_loss": []}',
    "loss 1e400": '{"epoch": 1, "loss": 1e400}',
    "a loss of 400 digits": '{"epoch": 1, "loss": ' + "9" * 400 + "}",
    "seconds true": '{"epoch": 1, "seconds": true}',
}


@pytest.fixture
def run(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.write_config({"recipe": "numba_cnn", "settings": {}})
    made.write_environment()
    made.append({"epoch": 1, "loss": float("nan"), "note": "a text of the user's own"})
    return made


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_were_edited(name, run):
    log = run.path / "log.jsonl"
    log.write_text(log.read_text(encoding="utf-8") + ROWS[name] + "\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"log.jsonl, line 2: expected"):
        RunFolder.open(run.path).rows()
    with pytest.raises(CheckpointError, match="line 2"):
        assert RunFolder.open(run.path).epochs_done


def test_null_in_a_metric_is_ours(run):
    assert run.rows() == [{"epoch": 1, "loss": None, "note": "a text of the user's own"}]
    assert RunFolder.open(run.path).epochs_done == 1


@pytest.mark.parametrize("content", ["[" * 100_000, "5", "null", "", "{", '{"a":1,"a":1}', "1e400"])
@pytest.mark.parametrize("name", ["config.json", "environment.json", "result.json", "tuning.json"])
def test_files_of_a_run_that_were_edited(name, content, run):
    (run.path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=name):
        opened = RunFolder.open(run.path)
        _ = opened.environment(), opened.result(), opened.tuning()


@pytest.mark.parametrize("resumed", [5, None, "x", {}, [5]])
def test_an_entry_of_the_environment_that_was_edited(resumed, run):
    path = run.path / "environment.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**found, "resumed": resumed}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"environment.json: expected resumed: a list"):
        RunFolder.open(run.path).write_environment()


@pytest.mark.parametrize("key", ["recipe", "file", "data_dir"])
@pytest.mark.parametrize("value", [5, [], {}, True])
def test_names_in_the_config_are_texts(key, value, run):
    run.write_config({**run.config, key: value})
    with pytest.raises(CheckpointError, match=f"config.json: expected {key}: a text"):
        RunFolder.open(run.path)


def test_a_log_of_64_gib_is_not_read(run):
    os.truncate(run.path / "log.jsonl", 2**36)
    with pytest.raises(CheckpointError, match="log.jsonl: .*more than"):
        run.rows()


def test_a_file_in_the_place_of_a_run_is_called_so(run):
    with pytest.raises(CheckpointError, match="expected the folder of a run, got a file"):
        RunFolder.open(run.path / "config.json")


def test_an_error_in_another_one_has_one_stop():
    inner = ArgumentError("op", "x", "1", 0)
    assert str(ArgumentError("op", "y", "2", inner)).endswith("got op: x: expected 1, got 0.")
    assert str(ArgumentError("op", "y", "2", inner, "do")).endswith("got 0. Way out: do")


def test_a_full_disk_says_nothing_of_runs_where_there_is_none(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(disk, "replace_file", full)
    with pytest.raises(CheckpointError) as error:
        tg.save({"x": np.ones(2)}, tmp_path / "file")
    assert "run" not in str(error.value).replace(str(tmp_path), "")
    assert "save: " in str(error.value) and "choose another place" in str(error.value)
