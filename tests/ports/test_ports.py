"""Programs for PyTorch run here with other imports, and give PyTorch's losses and gradients."""

import difflib

import numpy as np
import pytest

import tinygraph as tg
from tests.ports import HERE, NETWORKS, module_of, original, port

# Of the largest number of an array.  What is computed in float64 shows that the mathematics is
# PyTorch's; in float32 the last digits of 18 layers of batch norm are those of the machine's BLAS.
TOLERANCE = {np.dtype("f8"): 1e-6, np.dtype("f4"): 1e-4}


def close(got, expected, what):
    bound = TOLERANCE[got.dtype] * max(np.abs(expected).max(initial=0.0), 1e-6)
    assert got.shape == expected.shape, what
    worst = np.abs(got - expected).max(initial=0.0)
    assert worst <= bound, f"{what}: off by {worst:.2e}, at most {bound:.2e}"


def arrays_of(name, part):
    stored = tg.load(HERE / "data" / f"{name}.safetensors")
    return {key.removeprefix(part): a for key, a in stored.items() if key.startswith(part)}


def made(name, device="cpu", dtype="float32"):
    """The ported module, its model with PyTorch's parameters, and the inputs."""
    kind, settings, given = NETWORKS[name]
    module = module_of(port(original(name)), name)
    model = getattr(module, kind)(**settings)
    model.load_state_dict(arrays_of(name, "state/"))
    inputs = [a.astype(dtype) if a.dtype.kind == "f" else a for a in given]
    return module, model.to(device, dtype), [tg.Tensor(a, device=device) for a in inputs]


def compare(name, model, loss):
    close(loss.numpy(), arrays_of(name, "loss")[""], "loss")
    expected = arrays_of(name, "gradient/")
    assert {key for key, _ in model.named_parameters()} == set(expected)
    for key, p in model.named_parameters():
        close(p.device.to_numpy(p.grad), expected[key], f"gradient of {key}")
    after = arrays_of(name, "after/")
    for key, buffer in model.named_buffers():
        close(buffer.numpy().astype(loss.dtype), after[key], f"buffer {key}")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_port_changes_at_most_five_lines(name):
    before, after = original(name).split("\n"), port(original(name)).split("\n")
    changed = [line for line in difflib.ndiff(before, after) if line.startswith("+ ")]
    assert 0 < len(changed) <= 5
    assert all("import" in line for line in changed)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NETWORKS)
def test_losses_and_gradients_are_those_of_pytorch(name, dtype):
    module, model, inputs = made(name, dtype=dtype)
    loss = module.training_loss(model, *inputs)
    loss.backward()
    compare(name, model, loss)


@pytest.mark.parametrize("name", NETWORKS)
def test_compiled(name):
    module, model, inputs = made(name, dtype="float64")

    @tg.compile
    def step(*inputs):
        loss = module.training_loss(model, *inputs)
        loss.backward()
        return loss

    loss = step(*inputs)
    compare(name, model, loss)


@pytest.mark.second
@pytest.mark.parametrize("name", NETWORKS)
def test_on_the_emulator_under_the_checker(name):
    module, model, inputs = made(name, "emulator")
    with tg.cuda.checking():
        loss = module.training_loss(model, *inputs)
        loss.backward()
    compare(name, model, loss)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_optimiser_s_steps_make_the_loss_smaller(name):
    """Written as tutorials write it; what the first loss is stands above."""
    module, model, inputs = made(name)
    optimizer = tg.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = module.training_loss(model, *inputs)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_generated_text_is_that_of_a_model_that_looks_one_token_ahead():
    _, model, (tokens, _) = made("gpt")
    model.eval()
    text = model.generate(tokens[:, :3], 8, top_k=3).numpy()
    assert text.shape == (2, 11) and (text[:, :3] == tokens.numpy()[:, :3]).all()
    for at in range(3, 11):
        logits, _ = model(tg.tensor(text[:, max(0, at - 8) : at]))
        assert (logits.numpy()[:, -1].argmax(axis=-1) == text[:, at]).all()
