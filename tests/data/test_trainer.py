"""A Trainer on datasets of one's own: batches of Tensors, workers, a device, stop and resume."""

import numpy as np
import pytest

import tinygraph as tg
from tests.data.worker_datasets import IMAGES, augmented
from tests.training.test_resume import stop_after
from tinygraph.data import DataLoader, Dataset, RandomSampler
from tinygraph.training import RunFolder, Stopped

LABELS = np.arange(13) % 3


class Own(Dataset):
    def __len__(self):
        return 13

    def __getitem__(self, index):
        return IMAGES[index] / 468, int(LABELS[index])


def trainer(device="cpu", run=None, size=36, **options):
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.Flatten(), tg.nn.Linear(size, 13)).to(device)
    optimizer = tg.optim.SGD(model.parameters(), lr=0.01)
    loss = tg.softmax_cross_entropy
    return tg.training.Trainer(model, optimizer, loss, progress=False, run=run, **options)


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.parametrize("device, options", [("emulator", {}), ("cpu", {"compile": True})])
def test_samples_teach_what_arrays_teach(device, options):
    def rows(data):
        loader = DataLoader(data, 4, shuffle=True, seed=2)
        worker = trainer(device, **options)
        assert worker.rehearse(loader)["batch"] == "float32 (4, 1, 6, 6) and int64 (4,)"
        return without_seconds(worker.fit(loader, DataLoader(data, 5), epochs=2))

    assert rows(Own()) == rows(tg.data.ArrayDataset(IMAGES / 468, LABELS))


@pytest.mark.second
def test_a_run_with_workers_is_resumed_with_the_same_bits(tmp_path):
    """Stopped in its second epoch with one worker, gone on without any."""

    def loader(**options):
        data = augmented()
        sampler = RandomSampler(data, replacement=True, num_samples=20, seed=3)
        return DataLoader(data, 3, sampler=sampler, **options)

    whole = trainer(size=9)
    whole.fit(loader(), epochs=2)
    run = RunFolder(tmp_path / "run")
    run.write_config({})
    stopped = trainer(run=run, size=9)
    stop_after(stopped, 9)
    with pytest.raises(Stopped):
        stopped.fit(loader(num_workers=1), epochs=2)
    again = trainer(run=RunFolder.open(run.path), size=9)
    assert again.resume() == 9
    again.fit(loader(), epochs=1)
    for ours, theirs in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
