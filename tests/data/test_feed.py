"""Batches on their way to a GPU, on the stand-in for CuPy, which copies at the last moment."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.cuda.pinned import Pinned
from tinygraph.data import feed as feeding

DATA = tg.data.ArrayDataset(np.arange(880.0, dtype="f4").reshape(22, 40), np.arange(22))


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def loader(data=DATA, **options):
    return tg.data.DataLoader(data, batch_size=4, shuffle=True, seed=5, **options)


@pytest.mark.second
@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_those_of_the_host(prefetch):
    there = loader(prefetch=prefetch, device="cuda")
    for (x, t), (a, b) in zip(there, loader(), strict=True):
        assert x.device == t.device == "cuda"
        np.testing.assert_array_equal(x.numpy(), a)
        np.testing.assert_array_equal(t.numpy(), b)


@pytest.mark.second
def test_work_that_is_still_queued_reads_its_own_batch():
    """Nobody waits between batches; the sums are computed when all have been handed out."""
    sums = [x.sum() for x, _ in loader(device="cuda")]
    assert [s.item() for s in sums] == [float(x.sum()) for x, _ in loader()]


@tg.no_grad()  # a batch is let go at once
def sums(at_once=False, **options):
    """Those of all batches of three epochs; nobody waits within or between them."""
    one, found = loader(**options), []
    for _ in range(3):
        for x, _ in one:
            found.append(x.sum())
            if at_once:
                found[-1].item()
            del x
    return [s.item() for s in found]


@pytest.mark.second
def test_work_that_is_still_queued_when_the_next_epoch_begins():
    """A new copy stream may have the old handle, and thus the memory that is still read."""
    assert sums(device="cuda") == sums() == sums(True, device="cuda")


@pytest.mark.second
def test_epochs_that_are_left_early():
    def found(device):
        one, sums = loader(device=device), []
        for _ in range(4):
            for number, (x, _) in enumerate(one):
                sums.append(x.sum())
                if number == 2:
                    break
        return [s.item() for s in sums]

    assert found("cuda") == found(None)


@pytest.mark.second
def test_a_last_batch_that_is_kept_until_the_next_epoch_has_begun():
    @tg.no_grad()
    def found(device):
        one, sums, last = loader(device=device), [], None
        for _ in range(3):
            for number, (x, _) in enumerate(one):
                sums.append((x if last is None or number else last).sum())
            last = x
        return [s.item() for s in sums]

    assert found("cuda") == found(None)


LOST = ["the copy", "the step", "the host", "the readers", "the end"]


@pytest.mark.second
@pytest.mark.stand_in
@pytest.mark.parametrize("lost", LOST)
def test_each_of_the_five_waits_is_needed(lost, monkeypatch):
    """Without it the stand-in computes other sums: the tests above can fail."""
    if lost == "the copy":
        monkeypatch.setattr(Pinned, "arrived", lambda self, stream: None)
    elif lost == "the step":
        monkeypatch.setattr(feeding._Buffer, "release", lambda self: None)
    elif lost == "the readers":
        monkeypatch.setattr(feeding._Buffer, "_wait_for_readers", lambda self: None)
    elif lost == "the end":
        monkeypatch.delattr(Pinned, "__del__")
    else:
        send = Pinned.send

        def hasty(self, *given):
            self._copied = type(self._copied)()  # an event of which nothing is known
            send(self, *given)

        monkeypatch.setattr(Pinned, "send", hasty)
    assert sums(lost == "the copy", device="cuda") != sums()


@pytest.mark.second
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


@pytest.mark.second
def test_batches_of_any_nest(cupy):
    """Arrays and Tensors of the host go over, Tensors of the GPU and strings stay, in order."""
    there = tg.Tensor([[7.0]], device="cuda")
    here = {"x": tg.Tensor([[1.0]]), "more": (np.array([2]), ["a"])}
    given = [here, {"x": there}, {"x": np.array([[3.0]])}]
    found = list(feeding.feed(iter(x for x in given), tg.device("cuda")))
    assert found[1]["x"] is there
    assert [batch["x"].item() for batch in found] == [1, 7, 3]
    assert [batch["x"].dtype for batch in found] == ["float32", "float32", "float64"]
    number, names = found[0]["more"]
    assert (number.device, number.item(), names) == ("cuda", 2, ["a"])


@pytest.mark.second
def test_a_loader_of_the_host_copies_ahead_for_a_gpu(monkeypatch):
    one = loader()
    batches = one.batches(tg.device("cuda"))
    x, _ = next(batches)
    assert x.device == "cuda" and one.position == 1
    assert type(next(iter(loader()))[0]) is np.ndarray
    batches.close()


@pytest.mark.second
def test_position_counts_what_was_handed_out():
    one = loader(device="cuda")
    feed = iter(one)
    next(feed)
    assert one.position == 1 and one.state_dict()["position"] == 1
    feed.close()


@pytest.mark.second
@pytest.mark.parametrize("data", [DATA, tg.data.ConcatDataset([DATA])], ids=["arrays", "samples"])
def test_a_trainer_learns_the_same_from_either(data):
    """Samples are collated into Tensors of the host."""

    def losses(device):
        tg.manual_seed(0)
        model = tg.nn.Linear(40, 22).to("cuda")
        trainer = tg.training.Trainer(
            model,
            tg.optim.SGD(model.parameters(), lr=1e-7),
            tg.softmax_cross_entropy,
            progress=False,
        )
        return [
            {**row, "seconds": 0} for row in trainer.fit(loader(data=data, device=device), epochs=3)
        ]

    assert losses("cuda") == losses(None)
