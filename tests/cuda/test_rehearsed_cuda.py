"""Device "cuda" on a stand-in for CuPy: what reaches the GPU, and what the host waits for."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DeviceError
from tinygraph.cli import main
from tinygraph.files.sealed import save_arrays
from tinygraph.training import load_arrays

pytestmark = pytest.mark.second

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


def network(device):
    """conv - ReLU - pool - dropout - linear, the same numbers on every device."""
    tg.manual_seed(3)
    model = tg.nn.Sequential(
        tg.nn.Conv2d(1, 2, 3),
        tg.nn.ReLU(),
        tg.nn.MaxPool2d(2),
        tg.nn.Dropout(0.25),
        tg.nn.Flatten(),
        tg.nn.Linear(18, 4),
    )
    return model.to(device)


def batches(count=3, size=5):
    rng = np.random.default_rng(1)
    return [
        (rng.standard_normal((size, 1, 8, 8)).astype("f4"), rng.integers(0, 4, size))
        for _ in range(count)
    ]


OPTIMIZERS = {
    "sgd": lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: tg.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: tg.optim.AdamW(p, lr=0.01),
    "lion": lambda p: tg.optim.Lion(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: tg.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "adagrad": lambda p: tg.optim.Adagrad(p, lr=0.01, lr_decay=0.1),
    "adadelta": lambda p: tg.optim.Adadelta(p, lr=0.5),
}


def train(device, make, steps=3):
    """Losses and the state after some steps."""
    model = network(device)
    optimizer = make(model.parameters())
    trainer = tg.training.Trainer(model, optimizer, tg.softmax_cross_entropy, progress=False)
    losses = [trainer.step(x, t)[0] for x, t in batches(steps)]
    return losses, model, optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_gives_the_bits_of_the_emulator(name, as_the_emulator):
    here, model, optimizer = train("cuda", OPTIMIZERS[name])
    there, twin, other = train("emulator", OPTIMIZERS[name])
    as_the_emulator(here, there)
    for key, array in twin.state_dict().items():
        as_the_emulator(model.state_dict()[key], array, key)
    mine, theirs = optimizer.state_dict()["state"], other.state_dict()["state"]
    for parameter, state in theirs.items():
        for key, value in state.items():
            as_the_emulator(mine[parameter][key], value, f"{parameter}: {key}")


def test_state_goes_through_a_file(tmp_path):
    _, model, optimizer = train("cuda", OPTIMIZERS["adam"])
    save_arrays(tmp_path / "p.safetensors", model.state_dict())
    again = network("cuda")
    again.load_state_dict(load_arrays(tmp_path / "p.safetensors"))
    restored = OPTIMIZERS["adam"](again.parameters())
    restored.load_state_dict(optimizer.state_dict())
    for one, own in ((model, optimizer), (again, restored)):
        tg.manual_seed(9)
        loss = tg.softmax_cross_entropy(
            one(tg.Tensor(batches()[0][0], device="cuda")),
            tg.Tensor(batches()[0][1], device="cuda"),
        )
        own.zero_grad()
        loss.backward()
        own.step()
    for key, array in model.state_dict().items():
        assert array.tobytes() == again.state_dict()[key].tobytes()


def test_fan_out_sums_and_accumulation():
    x = tg.Tensor([1.0, 2.0], requires_grad=True, device="cuda")
    y = x * x + x * 3 + x
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    np.testing.assert_array_equal(x.device.to_numpy(x.grad), [12, 16])


def test_a_tensor_moves_there_and_back():
    x = tg.Tensor([1.0, -2.0], requires_grad=True)
    y = tg.relu(x.to("cuda") * 3).to("cpu")
    y.backward([1.0, 1.0])
    assert y.device == "cpu" and y.value.tolist() == [3, 0] and x.grad.tolist() == [3, 0]


# ---- what the host waits for ------------------------------------------------------------------


@pytest.mark.stand_in
def test_a_step_is_queued_and_nothing_has_run(cupy):
    model = network("cuda")
    x, t = batches()[0]
    optimizer = OPTIMIZERS["adam"](model.parameters())
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    before = stream.done
    loss = tg.softmax_cross_entropy(model(tg.Tensor(x, device="cuda")), tg.Tensor(t, device="cuda"))
    loss.backward()
    optimizer.step()
    assert stream.done == before and stream.queued > before + 20
    assert np.isfinite(loss.item()) and stream.done > before


@pytest.mark.stand_in
@pytest.mark.parametrize("capture", [None, False])
def test_a_trainers_step_waits_once(capture):
    """For loss, output and labels together, with a graph and without."""
    from cupy._stream import waits

    model = network("cuda")
    trainer = tg.training.Trainer(
        model,
        OPTIMIZERS["sgd"](model.parameters()),
        tg.softmax_cross_entropy,
        progress=False,
        capture=capture,
    )
    for batch in batches(5):
        del waits[:]
        loss, right = trainer.step(*batch)
        assert waits == ["stream.synchronize"] and np.isfinite(loss) and 0 <= right <= 5


def bad_label(label=7):
    x = tg.Tensor(RANDOM.standard_normal((3, 4)).astype("f4"), True, device="cuda")
    return tg.softmax_cross_entropy(x, tg.Tensor(np.array([0, label, 1]), device="cuda"))


@pytest.mark.parametrize("label", [7, -1, 1 << 40])
def test_a_bad_label_shows_when_the_loss_is_read(label):
    loss = bad_label(label)
    loss.backward()  # nobody has looked yet
    with pytest.raises(ArgumentError, match=rf"class numbers from 0 to 3, got {label} at index"):
        loss.item()


def test_a_bad_label_shows_at_once_where_there_is_no_graph():
    with tg.no_grad(), pytest.raises(ArgumentError, match="class numbers from 0 to 3, got 7"):
        bad_label()


@pytest.mark.parametrize("index", [5, -1])
def test_a_bad_row_shows_when_the_loss_is_read(index):
    weight = tg.Tensor(np.ones((3, 2), "f4"), True, device="cuda")
    rows = tg.embedding(tg.Tensor(np.array([0, index]), device="cuda"), weight)
    with pytest.raises(ArgumentError, match=f"got {index} at index"):
        rows.sum().item()


@pytest.mark.parametrize("index", [5, -1])
def test_a_bad_position_shows_when_the_loss_is_read(index):
    x = tg.Tensor(np.ones((3, 2), "f4"), True, device="cuda")
    picked = tg.gather(x, 0, tg.Tensor(np.array([[0, index]]), device="cuda"))
    with pytest.raises(ArgumentError, match=f"got {index} at index"):
        picked.sum().item()


def test_a_bad_probability_shows_when_the_loss_is_read():
    x = tg.Tensor([0.5, 1.5], device="cuda", requires_grad=True)
    with pytest.raises(ArgumentError, match=r"probabilities from 0 to 1, got 1\.5"):
        tg.binary_cross_entropy(x, tg.Tensor([0.0, 1.0], device="cuda")).item()


def test_a_loss_that_is_infinite_for_good_reasons():
    x = tg.Tensor([0.0], device="cuda")
    assert tg.log(x).item() == -np.inf


# ---- memory -------------------------------------------------------------------------------------


def test_memory_that_does_not_suffice(cupy):
    tg.cuda.set_memory_limit(1 << 20)
    kept = tg.zeros(1000, device="cuda")
    used = cupy.get_default_memory_pool().used_bytes()
    with pytest.raises(DeviceError) as caught:
        tg.zeros(1024, 512, device="cuda")
    words = str(caught.value)
    assert "float32[1024, 512]" in words and "room for 2,097,152 bytes" in words
    assert f"{used:,} bytes in use, with a limit of 1,048,576 bytes" in words
    assert "set_memory_limit" in words and kept.numpy().sum() == 0
    tg.cuda.set_memory_limit(0)
    assert tg.zeros(1024, 512, device="cuda").shape == (1024, 512)


def test_a_limit_from_the_environment(monkeypatch, cupy):
    monkeypatch.setenv("TINYGRAPH_CUDA_MEMORY_LIMIT", "4096")
    with pytest.raises(DeviceError, match="limit of 4,096 bytes"):
        tg.zeros(
            1 << 24, device="cuda"
        )  # larger than any block that is still held, and free in part


@pytest.mark.parametrize("limit", [-1, 1.5, True, "much"])
def test_limits_that_mean_nothing(limit):
    with pytest.raises(ArgumentError, match="memory limit: expected a number of bytes"):
        tg.cuda.set_memory_limit(limit)


def test_the_recipe_trains_to_the_parameters_of_the_emulator(tmp_path, as_the_emulator):
    """numba_cnn from its command to the files of its run, through the pinned buffers."""
    found = {}
    for device in ("cuda", "emulator"):
        run = tmp_path / device
        options = ["--filters", "2", "--batch-size", "400", "--epochs", "1", "--device", device]
        assert main(["train", "numba_cnn", *options, "--run", str(run)]) == 0
        found[device] = load_arrays(run / "parameters.safetensors")
    assert found["cuda"].keys() == found["emulator"].keys()
    for name, array in found["cuda"].items():
        as_the_emulator(array, found["emulator"][name], name)


def test_a_number_goes_to_the_gpu_once():
    x = tg.Tensor([1.0, 2.0, 3.0], requires_grad=True, device="cuda")
    once, again, other = x * 2.0, 2.0 * x, x + 3
    assert once.inputs[1].value is again.inputs[0].value
    assert other.inputs[1].value is not once.inputs[1].value
    np.testing.assert_array_equal(again.numpy(), [2, 4, 6])
    np.testing.assert_array_equal(other.numpy(), [4, 5, 6])
    np.testing.assert_array_equal((x.astype("float64") * 2.0).numpy(), [2, 4, 6])
    (again * x).sum().backward()
    np.testing.assert_array_equal(x.grad.get(), [4, 8, 12])


def test_numbers_in_a_captured_step():
    """One that was there before the recording, and one that the recording meets first."""
    seen = []

    @tg.cuda.capture
    def step(x):
        seen.append(None)
        return x * 0.5 + (1.25 if len(seen) < 3 else 1.75)

    found = [step(np.full(2, n, "f4")).numpy().tolist() for n in range(5)]
    assert found == [[0.5 * n + (1.25 if n < 2 else 1.75)] * 2 for n in range(5)]


def test_whether_there_is_a_gpu(rehearsed_cuda):
    assert tg.cuda.is_available() is True and tg.cuda.device_count() == 1
