"""char_gpt and lstm_text: the data, causality, what they learn and write, plans, kernels."""

import json
import math

import numpy as np
import pytest

import tinygraph as tg
from tests.test_cli import fails
from tests.test_cli_resume import stop_after
from tinygraph import nn, recipes
from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.cli import main
from tinygraph.cuda import Kernel
from tinygraph.data import DataLoader, TextWindows, read_text
from tinygraph.recipes.char_gpt import CharGPT
from tinygraph.recipes.lstm_text import LstmLM
from tinygraph.recipes.text import _drawn, alphabet_of, surprise, write
from tinygraph.training import Progress, RunFolder, Stopped, evaluate

QUIET = Progress(lines=False, bar=False)
ALPHABET = "\nabcdef"
RHYME = "a bad cab fed a deaf ace\n"
TINY = {"context": 8, "windows": 24, "batch_size": 6, "width": 8, "layers": 1, "warmup": 2}
SMALL = {"char_gpt": {**TINY, "heads": 2}, "lstm_text": {**TINY, "hidden": 12}}
NAMES = tuple(SMALL)
EACH = pytest.mark.parametrize("name", NAMES)


def network_of(name, characters=7, context=8):
    tg.manual_seed(3)
    if name == "char_gpt":
        return CharGPT(characters, context, width=8, heads=2, layers=2)
    return LstmLM(characters, width=6, hidden=10, layers=2)


def run_of(name, path, text, **settings):
    recipe, run = recipes.get(name), RunFolder(path)
    config = recipe.settings({**SMALL[name], "data": str(text), "epochs": 2, **settings})
    return run, recipe.train(config, run, None, False, QUIET)


@pytest.fixture
def rhyme(tmp_path):
    path = tmp_path / "rhyme.txt"
    path.write_text(RHYME * 40)
    return path


# ---- data ------------------------------------------------------------------------------------


def test_the_parts_of_the_text_are_cut_by_position():
    recipe = recipes.get("char_gpt")
    data, text = recipe.data(recipe.settings({})), read_text("shakespeare")
    decoded = [
        "".join(data.facts["alphabet"][c] for c in part.codes)
        for part in (data.training, data.held_out, data.test)
    ]
    assert "".join(decoded) == text
    assert [len(part) for part in decoded] == [1003855, 55769, 55770]
    assert len(data.training) == 1003855 - 64  # windows begin anywhere
    assert len(data.test) == 55769 // 64  # and do not overlap here
    assert (data.facts["length"], len(data.facts["alphabet"])) == (1115394, 65)


@pytest.mark.second
def test_an_epoch_has_windows_at_random_places():
    recipe = recipes.get("lstm_text")
    config = recipe.settings({"windows": 30, "batch_size": 8})
    loader = recipe.loader(config, recipe.data(config).training)
    first, second = (loader.order(epoch) for epoch in (0, 1))
    assert len(loader) == 4 and len(first) == 30 == len(set(first.tolist()))
    assert not set(first.tolist()) & set(second.tolist())
    np.testing.assert_array_equal(first, loader.order(0))


@pytest.mark.parametrize(
    "settings, error, words",
    [
        (
            {"data": "shakespear"},
            DatasetError,
            "(?s)shakespear: expected.*did you mean 'shakespeare'",
        ),
        ({"data": "short.txt"}, DatasetError, "expected more than 1300 characters, got 100"),
        ({"heads": 3}, ArgumentError, "heads: expected a number that divides the width, 128"),
        ({"dropout": 1.0}, ArgumentError, "dropout: expected a number from 0 to below 1"),
        ({"hidden": 3}, ArgumentError, "hidden: expected one of its settings"),
    ],
)
def test_settings_that_cannot_be(tmp_path, monkeypatch, settings, error, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_text("ab" * 50)
    with pytest.raises(error, match=words):
        recipe = recipes.get("char_gpt")
        recipe.data(recipe.settings(settings))


# ---- networks --------------------------------------------------------------------------------


@EACH
def test_a_later_character_changes_no_earlier_logit(name):
    network = network_of(name).eval()
    codes = np.random.default_rng(0).integers(0, 7, (2, 8))
    before = network(codes).numpy()
    assert before.shape == (2, 8, 7)
    for t in range(1, 8):
        other = codes.copy()
        other[:, t] = (codes[:, t] + 1) % 7
        after = network(other).numpy()
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert np.abs(after[:, t:] - before[:, t:]).max(axis=2).min() > 0  # and all later ones


@EACH
def test_a_uniform_guess_takes_log2_of_the_alphabet(name):
    """With zeros in its last layer a network knows nothing, and pays log2 V bits."""
    network, recipe = network_of(name), recipes.get(name)
    for parameter in network.head.parameters():
        parameter.value[...] = 0
    codes = np.random.default_rng(0).integers(0, 7, 50)
    found = recipe.measure(None, network, TextWindows(codes, 8, 8))
    assert found["bits_per_character"] == pytest.approx(math.log2(7), rel=1e-6)
    assert found["loss"] == pytest.approx(math.log(7), rel=1e-6)
    bits = surprise(network, codes[None, :8], codes[None, 1:9])
    np.testing.assert_allclose(bits, math.log2(7), rtol=1e-6)


@EACH
def test_the_loss_is_the_mean_over_all_places(name):
    """Against log-softmax in float64, written out; batches of unequal size included."""
    network, recipe = network_of(name), recipes.get(name)
    windows = TextWindows(np.random.default_rng(1).integers(0, 7, 60), 8, 8)
    logits = network(windows[:][0]).numpy().astype(np.float64)
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    right = np.take_along_axis(p, windows[:][1][..., None], 2)[..., 0]
    found = evaluate(network, DataLoader(windows, 3), recipe.loss)
    assert found["loss"] == pytest.approx(-np.log(right).mean(), rel=1e-5)
    np.testing.assert_allclose(surprise(network, *windows[:]), -np.log2(right), rtol=1e-4)


def test_the_gpt_begins_as_gpt_2_does():
    tg.manual_seed(0)
    state = CharGPT(65, 64, width=128, heads=4, layers=4).state_dict()
    for name, value in state.items():
        if value.ndim == 1:
            assert np.all(value == ("norm" in name and name.endswith("weight"))), name
            continue
        ends = name.endswith(("attention.out.weight", "mlp.2.weight"))
        assert value.std() == pytest.approx(0.02 / math.sqrt(8) if ends else 0.02, rel=0.05), name
    assert sum(value.size for value in state.values()) == 818176


def test_too_many_characters_for_a_gpt():
    with pytest.raises(ShapeError, match=r"CharGPT: codes: expected \(N, T\) with T up to 8"):
        network_of("char_gpt")(np.zeros((1, 9), int))


def test_only_matrices_decay():
    recipe = recipes.get("char_gpt")
    config = recipe.settings(SMALL["char_gpt"])
    network = network_of("char_gpt")
    decay = {
        id(parameter): group["weight_decay"]
        for group in recipe.optimizer(config, network).groups
        for parameter in group["params"]
    }
    for name, parameter in network.named_parameters():
        assert decay[id(parameter)] == (0.1 if parameter.ndim == 2 else 0.0), name


def test_the_learning_rate_rises_and_falls():
    recipe = recipes.get("lstm_text")
    config = recipe.settings({"windows": 40, "batch_size": 10, "epochs": 5, "warmup": 4})
    optimizer = recipe.optimizer(config, network_of("lstm_text"))
    schedule, rates = recipe.schedule(config, optimizer), []
    for _ in range(21):
        rates += schedule.get_last_lr()[:1]
        schedule.step()
    down = [(1 + math.cos(math.pi * t / 16)) / 2 for t in range(17)]
    expected = [0.25, 0.4375, 0.625, 0.8125, *(0.1 + 0.9 * share for share in down)]
    np.testing.assert_allclose(np.array(rates) / config.lr, expected, rtol=1e-6)


# ---- writing ---------------------------------------------------------------------------------


class Counting(nn.Module):
    """Certain that after each character comes the next one of the alphabet."""

    def __init__(self):
        self.scale = tg.Parameter(np.float32([50.0]))
        self.seen = []

    def forward(self, codes):
        self.seen.append(codes.shape)
        return tg.one_hot((codes + 1) % 7, 7).float() * self.scale


@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.0])
def test_a_network_that_is_certain_is_obeyed(temperature):
    network = Counting()
    assert write(network, ALPHABET, 3, "ab", 8, temperature) == "cdef\nabc"
    assert network.seen == [(1, 2), *[(1, 3)] * 7]  # never more than the context
    assert network.training


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_characters_have_the_shares_of_the_softmax(temperature):
    """Numbers evenly spaced from 0 to 1 fall on each character as often as it is probable."""
    logits = 2 * np.random.default_rng(0).standard_normal(7) + 1000
    powers = np.exp((logits - 1000) / temperature)
    drawn = [_drawn(logits, temperature, (k + 0.5) / 4000) for k in range(4000)]
    shares = np.bincount(drawn, minlength=7) / 4000
    np.testing.assert_allclose(shares, powers / powers.sum(), atol=1.01 / 4000)
    assert _drawn(logits, 0, 0.99) == logits.argmax()


def test_the_largest_number_below_1_draws_a_character():
    """In float32 its product with the sum of the weights would be that sum, past the last one."""
    assert _drawn(np.zeros(7, np.float32), 1.0, math.nextafter(1, 0)) == 6


@pytest.mark.second
@EACH
def test_what_is_written_is_of_the_alphabet_and_repeatable(name):
    network = network_of(name)
    first = write(network, ALPHABET, 8, "a", 100, 2.0, seed=1)
    assert len(first) == 100 and set(first) == set(ALPHABET)
    assert first == write(network, ALPHABET, 8, "a", 100, 2.0, seed=1)
    assert first != write(network, ALPHABET, 8, "a", 100, 2.0, seed=2)


@pytest.mark.parametrize(
    "prompt, more, words",
    [
        ("", (), "--prompt: expected at least one character, got none"),
        ("aX", (), "got 'X' at place 1. Way out: leave it out"),
        ("aC", (), "got 'C' at place 1. Way out: write 'c'"),
        ("a", (-1,), "--length: expected"),
        ("a", (5, -0.5), "--temperature: expected"),
        ("a", (5, 1.0, -3), "--seed: expected"),
    ],
)
def test_writing_that_cannot_be(prompt, more, words):
    with pytest.raises(ArgumentError, match=words):
        write(network_of("char_gpt"), ALPHABET, 8, prompt, *more)


# ---- trainings -------------------------------------------------------------------------------


@pytest.mark.second
@EACH
def test_it_learns_a_rhyme_by_heart(name, rhyme, tmp_path):
    """25 characters over and over: with the most probable character it recites them."""
    more = {"char_gpt": {"width": 32}, "lstm_text": {"hidden": 32, "width": 16}}[name]
    settings = {"windows": 480, "batch_size": 16, "epochs": 5, "lr": 0.01, "warmup": 10}
    run, result = run_of(name, tmp_path / "run", rhyme, **settings, **more)
    assert result["bits_per_character"] < 0.5  # a uniform guess: 2.8; the first ones are unsure
    again = recipes.get(name).sample(run, "a bad cab", 41, temperature=0)
    assert "a bad cab" + again == RHYME * 2
    assert recipes.get(name).evaluate(RunFolder.open(run.path)) == result


@EACH
def test_resumed_it_ends_with_the_same_bits(name, rhyme, tmp_path, monkeypatch):
    """Stopped within the second epoch: rate, windows, dropout and AdamW's means go on."""
    whole, result = run_of(name, tmp_path / "whole", rhyme, dropout=0.1)
    with monkeypatch.context() as patch:
        stop_after(patch, 6)
        with pytest.raises(Stopped, match="in epoch 2 after batch 2"):
            run_of(name, tmp_path / "part", rhyme, dropout=0.1)
    part, recipe = RunFolder.open(tmp_path / "part"), recipes.get(name)
    assert recipe.train(recipe.settings_of(part), part, None, False, QUIET) == result
    for file in ("parameters.safetensors", "best/parameters.safetensors", "result.json"):
        assert (part.path / file).read_bytes() == (whole.path / file).read_bytes(), file


@EACH
def test_compiled_it_has_the_same_losses(name, rhyme, tmp_path):
    run, result = run_of(name, tmp_path / "graph", rhyme, dropout=0.1)
    planned, same = run_of(name, tmp_path / "plan", rhyme, dropout=0.1, compile=True)
    for row, other in zip(run.rows(), planned.rows(), strict=True):
        assert other["loss"] == pytest.approx(row["loss"], rel=1e-5)
        assert other["validation_loss"] == pytest.approx(row["validation_loss"], rel=1e-5)
    assert same["loss"] == pytest.approx(result["loss"], rel=1e-5)


@pytest.mark.second
@EACH
def test_through_the_kernels_and_their_checker_it_has_the_same_losses(
    name, rhyme, tmp_path, monkeypatch
):
    reports = []
    check = Kernel._report

    def spy(*args, **options):
        reports.append(check(*args, **options))
        return reports[-1]

    monkeypatch.setattr(Kernel, "_report", spy)
    few = {"windows": 12, "context": 5, "epochs": 1, "dropout": 0.1}
    run, result = run_of(name, tmp_path / "cpu", rhyme, **few)
    with tg.cuda.checking():
        other, same = run_of(name, tmp_path / "emulator", rhyme, device="emulator", **few)
    assert len(reports) > 100 and all(report.ok for report in reports)
    assert other.rows()[0]["loss"] == pytest.approx(run.rows()[0]["loss"], rel=1e-5)
    assert same["loss"] == pytest.approx(result["loss"], rel=1e-5)
    texts = [recipes.get(name).sample(run, "a", 20, device=d) for d in ("cpu", "emulator")]
    assert texts[0] == texts[1]


def test_another_text_than_that_of_the_run(rhyme, tmp_path):
    run, _ = run_of("lstm_text", tmp_path / "run", rhyme)
    rhyme.write_text(RHYME * 40 + "a")
    with pytest.raises(DatasetError, match="expected the text of the run, of 1000 characters"):
        recipes.get("lstm_text").evaluate(RunFolder.open(run.path))


@pytest.mark.second
@EACH
def test_pictures(name, rhyme, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    run, _ = run_of(name, tmp_path / "run", rhyme)
    drawn = list(recipes.get(name).draw(RunFolder.open(run.path)))
    assert [path.name for path in drawn] == [
        "graph.svg",
        "report.html",
        "steps.html",
        "curves.svg",
    ]
    report = drawn[1].read_text()
    assert "What it writes" in report and "Where the test text surprises it" in report
    rhyme.unlink()  # without it there is still what the network writes
    again = list(recipes.get(name).draw(RunFolder.open(run.path)))[1].read_text()
    assert "What it writes" in again and "surprises it" not in again


def test_the_command_sample(rhyme, tmp_path, capsys):
    run, _ = run_of("lstm_text", tmp_path / "run", rhyme)
    command = ["sample", str(run.path), "--prompt", "a", "--length", "9"]
    assert main([*command, "--seed", "3"]) == 0
    text = recipes.get("lstm_text").sample(run, "a", 9, seed=3)
    assert capsys.readouterr().out == f"a{text}\n"
    assert main([*command, "--temperature", "0", "--best", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["prompt"], len(found["text"]), found["temperature"]) == ("a", 9, 0.0)
    for more, words in [
        (["--prompt", "Fed"], "--prompt: expected characters of the text that was learnt from"),
        (["--temperature", "cold"], "expected a finite number of at least 0, got 'cold'"),
        (["--temprature", "1"], "did you mean '--temperature'"),
        (["--length", "0"], "whole number from 1"),
        (["--device", "emulatr"], "--device: expected one of cpu, emulator, cuda"),
    ]:
        assert words in fails(capsys, ["sample", str(run.path), *more])


def test_a_text_of_a_single_line(tmp_path, capsys):
    path = tmp_path / "line.txt"
    path.write_text(RHYME.strip() * 40)
    run, _ = run_of("lstm_text", tmp_path / "run", path, epochs=1)
    recipe = recipes.get("lstm_text")
    texts = recipe.answers(recipe.settings_of(run), recipe.trained(run), run.config)["texts"]
    assert set(texts["What it writes, with temperature 0.8"]) <= set(RHYME)
    assert main(["sample", str(run.path), "--length", "5"]) == 0
    assert len(capsys.readouterr().out) == 1 + 5 + 1


def test_only_texts_are_sampled(tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    run.write_config({"recipe": "xor_mlp", "settings": {}})
    words = "expected a run of a recipe that writes text (lstm_text, char_gpt), got one of xor_mlp"
    assert words in fails(capsys, ["sample", str(run.path)])


@pytest.mark.parametrize("alphabet", [None, "", 5, [], ["a", "b"], "aba"])
def test_an_alphabet_that_was_edited(alphabet):
    with pytest.raises(ValueError, match="alphabet"):
        alphabet_of({"alphabet": alphabet})
    assert alphabet_of({"alphabet": "ab"}) == "ab"
