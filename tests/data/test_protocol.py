"""What a DataLoader asks of a dataset, and what its arguments mean: PyTorch's protocol."""

import inspect

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.data import (
    ArrayDataset,
    BatchedDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    image_folder,
)
from tinygraph.engine.random import Generator

IMAGES = np.arange(6 * 2 * 3 * 4, dtype=np.float32).reshape(6, 2, 3, 4)  # (N, C, H, W)


class Dicts(Dataset):
    """Samples of four entries each, batches of six: who mixes the two up counts four samples."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return {"image": IMAGES[index], "label": index % 3, "weight": 0.5, "name": f"no {index}"}


class Flipped(Dataset):
    """Images mirrored left to right, which is axis 2 of a sample and axis 3 of a batch."""

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, index):
        return IMAGES[index][:, :, ::-1], index


class Asked(Dataset):
    """Remembers what it was asked for."""

    def __init__(self):
        self.indices = []

    def __len__(self):
        return 5

    def __getitem__(self, index):
        self.indices.append(index)
        return index


def test_samples_are_dicts():
    [batch] = DataLoader(Dicts(), batch_size=6)
    assert {key: len(part) for key, part in batch.items()} == dict.fromkeys(Dicts()[0], 6)
    np.testing.assert_array_equal(batch["image"], IMAGES)
    assert batch["label"].numpy().tolist() == [0, 1, 2, 0, 1, 2]
    assert batch["name"][4] == "no 4"


def test_a_flip_of_a_sample_flips_its_width():
    [(images, labels)] = DataLoader(Flipped(), batch_size=6)
    np.testing.assert_array_equal(images, IMAGES[:, :, :, ::-1])
    assert labels.numpy().tolist() == list(range(6))


def test_a_dataset_is_asked_for_one_python_int_each():
    data = Asked()
    assert [b.numpy().tolist() for b in DataLoader(data, 2)] == [[0, 1], [2, 3], [4]]
    assert data.indices == [0, 1, 2, 3, 4] and {type(i) for i in data.indices} == {int}


@pytest.mark.parametrize(
    "data", [[3, 1, 2], range(1, 4), np.array([3, 1, 2]), tg.tensor([3, 1, 2])]
)
def test_anything_with_samples_and_a_length(data):
    [batch] = DataLoader(data, 3)
    assert batch.numpy().tolist() == [int(x) for x in data]


def test_a_loop_as_pytorch_writes_it():
    model = tg.nn.Sequential(tg.nn.Flatten(), tg.nn.Linear(24, 6))
    for images, labels in DataLoader(Flipped(), batch_size=3, shuffle=True):
        images, labels = images.to("cpu"), labels.to("cpu")
        loss = tg.softmax_cross_entropy(model(images), labels)
        loss.backward()
        assert images.shape == (3, 2, 3, 4) and labels.dtype == np.int64


def test_getitems_is_asked_for_the_samples_of_a_batch():
    class Many(Asked):
        def __getitems__(self, indices):
            self.indices.append(indices)
            return [(i, -i) for i in indices]

    data = Many()
    batches = [(a.numpy().tolist(), b.numpy().tolist()) for a, b in DataLoader(data, 3)]
    assert batches == [([0, 1, 2], [0, -1, -2]), ([3, 4], [-3, -4])]
    assert data.indices == [[0, 1, 2], [3, 4]]
    [samples] = DataLoader(data, 5, collate_fn=list)
    assert samples[4] == (4, -4)


@pytest.mark.parametrize(
    "answer, error",
    [
        (lambda indices: [0] * (len(indices) + 1), ShapeError),
        (lambda indices: [], ShapeError),
        (lambda indices: (np.zeros(len(indices)), np.zeros(len(indices))), DtypeError),
    ],
)
def test_getitems_must_give_a_list_of_as_many(answer, error):
    class Wrong(Asked):
        def __getitems__(self, indices):
            return answer(indices)

    with pytest.raises(error, match="Wrong: __getitems__: expected"):
        next(iter(DataLoader(Wrong(), 3)))


def test_a_batch_of_another_length_is_an_error():
    class Wrong(BatchedDataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return IMAGES[index], np.zeros(4)

    with pytest.raises(ShapeError, match=r"__getitem__: expected 6 samples.*got shape \(4,\)"):
        next(iter(DataLoader(Wrong(), 6)))


def test_array_datasets_give_arrays_and_samples_to_a_collate_fn():
    data = ArrayDataset(IMAGES, np.arange(6))
    [(images, labels)] = DataLoader(data, 6)
    assert type(images) is type(labels) is np.ndarray
    seen = []
    [count] = DataLoader(data, 6, collate_fn=lambda samples: seen.extend(samples) or len(samples))
    assert count == 6
    np.testing.assert_array_equal([image for image, _ in seen], IMAGES)


def test_images_of_several_sizes_go_to_a_collate_fn(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    for i, size in enumerate([(4, 5), (6, 5)]):
        Image.new("RGB", size).save(tmp_path / f"{i}.png")
    folder = image_folder(tmp_path)
    [shapes] = DataLoader(folder, 2, collate_fn=lambda batch: [image.shape for image, _ in batch])
    assert shapes == [(3, 5, 4), (3, 5, 6)]
    with pytest.raises(ShapeError, match=r"1\.png"):
        next(iter(DataLoader(folder, 2)))


def test_an_error_names_its_sample():
    class Fails(Asked):
        def __getitem__(self, index):
            return 1 / (3 - index)

    with pytest.raises(ZeroDivisionError) as error:
        list(DataLoader(Fails(), 2))
    assert error.value.__notes__ == ["at sample 3, Fails"]


# ---- arguments ----------------------------------------------------------------------------------


def test_arguments_stand_in_pytorchs_order():
    names = list(inspect.signature(DataLoader).parameters)
    assert names[:9] == [
        *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers"),
        *("collate_fn", "pin_memory", "drop_last"),
    ]


def test_a_sampler_gives_the_order():
    data = list(range(10, 20))
    found = DataLoader(data, 2, sampler=[3, 1, 3])
    assert [b.numpy().tolist() for b in found] == [[13, 11], [13]] and len(found) == 2
    assert [len(b) for b in DataLoader(data, 2, sampler=[3, 1, 3], drop_last=True)] == [2]


def test_a_batch_sampler_gives_the_batches():
    cuts = [[1, 2, 3], [0], [4, 4]]
    found = DataLoader(list(range(5)), batch_sampler=cuts)
    assert [b.numpy().tolist() for b in found] == cuts
    assert len(found) == 3 and found.batch_size is None
    assert found.order(0).tolist() == [1, 2, 3, 0, 4, 4]


def test_a_sampler_is_asked_once_for_an_epoch():
    """Its order is what a checkpoint holds, also where it would be another one the next time."""

    class Moody:
        def __init__(self):
            self.asked = 0

        def __len__(self):
            return 3

        def __iter__(self):
            self.asked += 1
            return iter([(i + self.asked) % 3 for i in range(3)])

    sampler = Moody()
    loader = DataLoader([0, 1, 2], sampler=sampler)
    batches = iter(loader)
    first = next(batches).item()
    order = loader.order(0).tolist()
    assert [first, *[b.item() for b in batches]] == order == [1, 2, 0]
    assert sampler.asked == 1 and loader.order(1).tolist() == [2, 0, 1]


def test_shuffle_is_the_random_sampler():
    data = list(range(20))
    one = DataLoader(data, 3, shuffle=True, seed=4)
    other = DataLoader(data, 3, sampler=RandomSampler(data, seed=4))
    third = DataLoader(data, 3, shuffle=True, generator=Generator(seed=4))
    for _ in range(2):
        same = [[b.numpy().tolist() for b in loader] for loader in (one, other, third)]
        assert same[0] == same[1] == same[2]


def test_what_changes_nothing_is_taken():
    taken = {"pin_memory": True, "pin_memory_device": "cuda", "in_order": False}
    assert [b.item() for b in DataLoader([5], **taken)] == [5]


def test_the_first_batch_moves_nothing():
    loader = DataLoader(list(range(9)), 4, shuffle=True, seed=2)
    first = loader.first_batch().numpy().tolist()
    assert (loader.epoch, loader.position) == (0, 0)
    assert next(iter(loader)).numpy().tolist() == first
    with pytest.raises(ArgumentError, match="at least one batch, got none"):
        DataLoader([1, 2], 3, drop_last=True).first_batch()


class Endless:
    def __iter__(self):
        return iter(int, 1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"dataset": Endless()}, "a Endless without __getitem__ and __len__"),
        ({"sampler": 3}, "sampler: expected an iterable with a length, got 3. Way out: seed="),
        ({"sampler": Endless()}, "sampler: expected an iterable with a length"),
        ({"batch_sampler": Endless()}, "batch_sampler: expected an iterable with a length"),
        ({"sampler": [0], "shuffle": True}, "sampler: expected without shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler: expected without batch_size"),
        ({"batch_sampler": [[0]], "sampler": [0]}, "batch_sampler: expected without sampler"),
        ({"batch_sampler": [[0]], "drop_last": True}, "expected without drop_last"),
        ({"generator": Generator(seed=1), "seed": 1}, "seed: expected none beside a generator"),
        ({"generator": 7}, "generator: expected a Generator, got 7"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader(**{"dataset": [1, 2]} | arguments)


@pytest.mark.parametrize("order", [[0.5], ["a"], [[0]], [None]])
def test_orders_that_are_no_ints(order):
    with pytest.raises(ArgumentError, match="sampler: expected an iterable of ints"):
        next(iter(DataLoader([1, 2], sampler=order)))
