"""`python -m benchmarks.distributed`: closed forms, rounds that count, and the page."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.distributed import __main__ as command
from benchmarks.distributed import network, page, recipes, turns
from benchmarks.distributed.network import Network
from benchmarks.distributed.turns import ONE, RANKS, THREADS, Burst, Point
from tests.distributed.launch import needs_mpi

DOCS = Path(__file__).parents[2] / "docs/benchmarks"


# ---- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_ring_message_by_message(ranks):
    """Slices go round: W - 1 turns of sums, W - 1 of results, each a W-th of the bytes."""
    net, gradient = Network("", 8e6, 0.01), 24_000
    own = np.eye(ranks, dtype=int)  # whose terms a sum has
    have = np.stack([np.tile(own[rank], (ranks, 1)) for rank in range(ranks)])  # rank, slice
    seconds = sent = 0.0
    for turn in range(2 * (ranks - 1)):
        before = have.copy()
        for rank in range(ranks):
            to, part = (rank + 1) % ranks, (rank - turn) % ranks
            adds = turn < ranks - 1
            have[to, part] = before[to, part] + before[rank, part] if adds else before[rank, part]
        seconds += net.latency + gradient / ranks * 8 / net.bits
        sent += gradient / ranks
    assert (have == 1).all()  # everybody has every slice of the sum of all
    assert network.ring_seconds(gradient, ranks, net) == pytest.approx(seconds)
    assert network.bytes_sent(gradient, ranks) == pytest.approx(sent)


def test_efficiency_at_its_ends():
    free = Network("", 1e30, 0.0)
    for weak in (True, False):
        assert network.efficiency(1.0, 1e6, 64, free, weak=weak, overlapped=False) == 1
    slow = Network("", 8e6, 0.0)  # a second for a MB

    def at(ranks, weak, overlapped=False):
        return network.efficiency(1.0, 1e6, ranks, slow, weak=weak, overlapped=overlapped)

    assert at(2, True) == pytest.approx(1 / 2) and at(2, False) == pytest.approx(0.5 / 1.5)
    assert at(2, True, True) == pytest.approx(1 / (1 + 1 / 3))
    for ranks in network.POWERS[1:]:
        assert at(ranks, False) < at(ranks, True) <= at(ranks, True, True)


def test_larger_batches_stop_helping():
    """Both trade-offs of McCandlish et al. from one equation."""
    for batch in (1, 10, 1000):
        steps = network.steps_over_fewest(batch, 100)
        samples = network.examples_over_fewest(batch, 100)
        assert (steps - 1) * (samples - 1) == pytest.approx(1)
        assert steps / samples == pytest.approx(100 / batch)
    assert network.speedup(1 << 40, 25, 100) == pytest.approx(5)


def test_the_noise_scale_of_made_up_gradients():
    """Gradients (2, 0, 0) + noise of variance 3 in each part: tr(S) = 9, |G|^2 = 4."""
    rng = np.random.default_rng(0)
    norms = []
    for size in (4, 64):
        noise = rng.standard_normal((40_000, 3)) * np.sqrt(3 / size)
        norms.append(np.square(noise + np.array([2, 0, 0])).sum(1).mean())
    assert network.noise_scale(4, 64, *norms) == pytest.approx(9 / 4, rel=0.05)


# ---- rounds and page ----------------------------------------------------------------------------


def made_up():
    rounds = [
        {ONE.name: Burst(t, 0.0), THREADS.name: Burst(t, 0.01), RANKS.name: Burst(t / 1.8, 0.02)}
        for t in (0.1, 0.2, 0.4)
    ]
    points = [Point("w2", 2_600_000, 2_600_500, 0.0009, rounds, 7)]
    both = [{turns.AT_END.name: Burst(0.1, 0.0), turns.BUCKETS.name: Burst(0.11, 0.0)}]
    overlap = [Point("w2", 2_600_000, 2_600_500, 0.0009, both, 1)]
    sent = [recipes.Sent("numba_cnn", "digits", 12_840, 16, 0.0026)]
    return page.Figures(["a machine"], points, overlap, sent, [(0, 56.0)])


def test_efficiency_is_over_two():
    (point,) = made_up().points
    assert point.efficiency(RANKS).median == pytest.approx(0.9)
    assert point.efficiency(THREADS).median == pytest.approx(0.5)
    assert point.others == 0.02


def test_figures_come_back_and_every_place_of_the_page_is_filled():
    figures = made_up()
    again = page.Figures.from_json(figures.to_json())
    assert again == figures
    written = page.text(again, {"efficiency": True})
    assert "{{" not in written and "90 % (90 to 90)" in written
    assert "| 1.10 (1.10 to 1.10) |" in written
    assert "distributed-efficiency.svg" in written and "distributed-ranks.svg" not in written


def test_the_page_of_the_documentation_follows_from_its_figures():
    figures = page.Figures.from_json((DOCS / "distributed.json").read_text(encoding="utf-8"))
    pictures = dict.fromkeys(("efficiency", "ranks"), True)
    assert (DOCS / "distributed.md").read_text(encoding="utf-8") == page.text(figures, pictures)


@needs_mpi
@pytest.mark.second
def test_a_rehearsal(tmp_path, capsys):
    options = ["--only", "tiny", "--rounds", "2", "--burst", "0.01", "--limit", "5"]
    assert command.main([*options, "--output", str(tmp_path)]) == 0
    (point,) = json.loads((tmp_path / "distributed.json").read_text())["points"]
    assert point["gradient"] == 4 * (2 * 9 + 2 + 10 * 8 + 10)
    assert point["sent"] > point["gradient"] and len(point["rounds"]) == 2
    assert "tiny: in buckets / at the end" in capsys.readouterr().out
    before = (tmp_path / "distributed.md").read_text()
    assert command.main(["--page", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "distributed.md").read_text() == before


@pytest.mark.second
def test_recipes_say_what_they_would_send():
    (found,) = recipes.measure([("numba_cnn", {"data": "digits"})])
    assert found.gradient == 4 * (32 * 9 + 32 + 10 * 32 * 9 + 10) and found.batch == 16
    assert found.seconds > 0
    (start, later) = recipes.noise_of(epochs=(0, 1), batches=2)
    assert start[0] == 0 and later[0] == 1 and np.isfinite([start[1], later[1]]).all()


@pytest.mark.second
def test_a_recipe_without_its_data_is_left_out(monkeypatch):
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    assert recipes.measure([("splice_mlp", {})]) == []


def test_bad_arguments(capsys):
    for bad in (["--rounds", "0"], ["--only", "w7"]):
        with pytest.raises(SystemExit) as ended:
            command.main(bad)
        assert ended.value.code == 2
    capsys.readouterr()


def test_the_calmest_rounds_count():
    rounds = [{"a": Burst(1.0, others)} for others in (0.3, 0.0, 0.2, 0.1)]
    assert [turns.disturbed(each) for each in turns.calmest(rounds, 2)] == [0.0, 0.1]
