"""The JSON config of srcnn: the example of the program of 2015, and what is refused."""

import json

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph.recipes import srcnn
from tinygraph.recipes.srcnn_config import DISTRIBUTIONS, read_config

NORMAL = {"mean_w": 0.0, "mean_b": 0.0, "std_deviation_w": 0.005, "std_deviation_b": 0.0}


def config_file(path, **changes):
    """The example of the program of 2015, changed; None takes a key out."""
    content = {
        "n1": 32,
        "n2": 16,
        "f1": 9,
        "f2": 1,
        "f3": 5,
        "momentum": 0.9,
        "weight_decay_parameter": 0.001,
        "learning_rates": [0.0001, 0.0001, 0.00001],
        "parameters_file": "parameters.json",
        **dict.fromkeys(DISTRIBUTIONS, NORMAL),
        **changes,
    }
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))
    return path


def test_the_example_config_is_read(tmp_path):
    found = read_config(config_file(tmp_path / "config.json"), srcnn.Config)
    assert [found[name] for name in ("n1", "n2", "f1", "f2", "f3")] == [32, 16, 9, 1, 5]
    assert found["parameters_file"] == str(tmp_path / "parameters.json")  # beside the config
    path = str(config_file(tmp_path / "config.json", parameters_file=None))
    config = srcnn.recipe.settings({"config": path, "n2": 8, "rule": "srcnn"})
    assert config.sizes() == (32, 8, 9, 1, 5)  # what is given wins over the file
    assert config.learning_rates == (0.0001, 0.0001, 0.00001)
    assert (config.momentum, config.weight_decay_parameter) == (0.9, 0.001)
    assert config.parameters_distribution_3 == NORMAL


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n1": 0}, "n1: expected a whole number from 1 to 4096, got 0"),
        ({"n2": 16.0}, "n2: expected a whole number from 1 to 4096, got 16.0"),
        ({"n1": True}, "n1: expected a whole number"),
        (
            {"f1": 8},
            "f1: expected an odd number from 1 to 99, so that a filter has a middle, got 8",
        ),
        ({"f3": -5}, "f3: expected an odd number from 1 to 99"),
        ({"f2": None}, "f2: expected a value, got no such key"),
        ({"momentum": 1.0}, "momentum: expected a number from 0 to below 1"),
        ({"momentum": "0.9"}, "momentum: expected a number from 0 to below 1, got '0.9'"),
        (
            {"weight_decay_parameter": -0.1},
            "weight_decay_parameter: expected a finite number of at least 0",
        ),
        (
            {"learning_rates": [0.1, 0.1]},
            "learning_rates: expected 3 numbers with commas between them",
        ),
        (
            {"learning_rates": [0.1, 0, 0.1]},
            "learning_rates: expected 3 numbers with commas between them",
        ),
        ({"learning_rates": 0.1}, "learning_rates: expected 3 numbers with commas between them"),
        ({"parameters_file": 3}, "parameters_file: expected a text, got 3"),
        ({"parameters_distribution_2": [0, 1]}, "parameters_distribution_2: expected an object of"),
        ({"parameters_distribution_1": {"mean_w": 0}}, "got {'mean_w': 0}"),
        (
            {"parameters_distribution_3": {**NORMAL, "std_deviation_w": 0}},
            "parameters_distribution_3: expected an object of ",
        ),
        (
            {"parameters_distribution_3": {**NORMAL, "std_deviation_b": -1}},
            "std_deviation_b (a finite number of at least 0), got {",
        ),
        (
            {"parameters_distribution_3": {**NORMAL, "mean_w": float("inf")}},
            "mean_w (a finite number), ",
        ),
        (
            {"momentun": 0.9},
            "momentun: expected no such key, got it. Way out: did you mean 'momentum'",
        ),
    ],
)
def test_a_bad_config_is_refused_with_the_reason(tmp_path, changes, message):
    path = config_file(tmp_path / "bad.json", **changes)
    with pytest.raises(ArgumentError) as caught:
        srcnn.recipe.settings({"config": str(path)})
    assert message in str(caught.value) and "bad.json" in str(caught.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "expected JSON"),
        ("[1]", "expected a JSON object, got list"),
        ('{"n1": 1, "n1": 2}', "'n1' twice"),
        ("[" * 100_000, "expected JSON"),
        (None, "No such file"),
    ],
)
def test_a_config_that_is_no_json_object(tmp_path, text, message):
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        read_config(path, srcnn.Config)
