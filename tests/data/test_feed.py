"""Batches on their way to a GPU, on the stand-in for CuPy, which copies at the last moment."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.data import feed as feeding

DATA = tg.data.ArrayDataset(np.arange(88.0, dtype="f4").reshape(22, 4), np.arange(22))


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def loader(**options):
    return tg.data.DataLoader(DATA, batch_size=4, shuffle=True, seed=5, **options)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_those_of_the_host(prefetch):
    there = loader(prefetch=prefetch, device="cuda")
    for (x, t), (a, b) in zip(there, loader(), strict=True):
        assert x.device == t.device == "cuda"
        np.testing.assert_array_equal(x.numpy(), a)
        np.testing.assert_array_equal(t.numpy(), b)


def test_work_that_is_still_queued_reads_its_own_batch(cupy):
    """Nobody waits between batches; the sums are computed when all have been handed out."""
    sums = [x.sum() for x, _ in loader(device="cuda")]
    assert [s.item() for s in sums] == [float(x.sum()) for x, _ in loader()]


@pytest.mark.parametrize("lost", ["wait for the copy", "wait for the step", "wait of the host"])
def test_each_of_the_three_waits_is_needed(lost, monkeypatch):
    """Without it the stand-in computes other sums: the test above can fail."""
    if lost == "wait for the copy":
        monkeypatch.setattr(
            feeding._Buffer,
            "take",
            lambda self: tuple(tg.tensor.leaf(a, self.device) for a in self.there),
        )
    elif lost == "wait for the step":
        monkeypatch.setattr(feeding._Buffer, "release", lambda self: None)
    else:
        fill = feeding._Buffer.fill

        def hasty(self, parts):
            self.copied = type(self.copied)()  # an event of which nothing is known
            fill(self, parts)

        monkeypatch.setattr(feeding._Buffer, "fill", hasty)
    sums = [x.sum() for x, _ in loader(device="cuda")]
    assert [s.item() for s in sums] != [float(x.sum()) for x, _ in loader()]


def test_at_most_two_batches_are_in_flight(monkeypatch):
    made = []
    for_batch = tg.data.ArrayDataset.__getitem__

    def spy(self, index):
        made.append(len(index))
        return for_batch(self, index)

    monkeypatch.setattr(tg.data.ArrayDataset, "__getitem__", spy)
    feed = iter(loader(device="cuda"))
    for handed_out in range(1, 5):
        next(feed)
        assert len(made) == handed_out + 1


def test_position_counts_what_was_handed_out():
    one = loader(device="cuda")
    feed = iter(one)
    next(feed)
    assert one.position == 1 and one.state_dict()["position"] == 1
    feed.close()


def test_a_trainer_learns_the_same_from_either():
    def losses(device):
        tg.manual_seed(0)
        model = tg.nn.Linear(4, 22).to("cuda")
        trainer = tg.training.Trainer(
            model,
            tg.optim.SGD(model.parameters(), lr=1e-4),
            tg.softmax_cross_entropy,
            progress=False,
        )
        return [{**row, "seconds": 0} for row in trainer.fit(loader(device=device), epochs=3)]

    assert losses("cuda") == losses(None)
