"""srcnn on whole pictures: tiles without seams, bounded memory, and `tinygraph super-resolve`."""

import json
import tracemalloc

import numpy as np
import pytest

import tinygraph as tg
from tests.test_cli import fails
from tinygraph.base.errors import ArgumentError, CheckpointError, DtypeError, ShapeError
from tinygraph.cli import main
from tinygraph.cli.super_resolve import byte_count
from tinygraph.recipes.srcnn_network import (
    layers,
    margin,
    model,
    read_network,
    write_json_parameters,
)
from tinygraph.recipes.srcnn_tiles import enhance, super_resolve, tile_bytes, tile_side
from tinygraph.training import save_arrays

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def random_network(*sizes, seed=0):
    tg.manual_seed(seed)
    return model(*sizes)


def identity():
    """A network that gives back the middle of its input, where that is not negative."""
    network = model(1, 1, 9, 1, 5)
    for layer in layers(network):
        layer.weight.value[...] = 0
        side = layer.kernel_size[0] // 2
        layer.weight.value[0, 0, side, side] = 1
        layer.bias.value[...] = 0
    return network


def smooth_picture(height, width, seed=0):
    """Noise, enlarged: bytes (3, height, width) of all colours without hard edges."""
    noise = np.random.default_rng(seed).integers(40, 216, (height // 4 + 2, width // 4 + 2, 3))
    image = Image.fromarray(noise.astype(np.uint8)).resize((width, height), Image.BILINEAR)
    return np.moveaxis(np.asarray(image), -1, 0)


def padded_at_once(network, luma):
    """The network on the whole picture."""
    m = margin(network)
    x = np.pad(luma, m, mode="edge")[None, None]
    with tg.no_grad():
        return network(x).numpy()[0, 0]


@pytest.mark.parametrize("shape", [(50, 61), (16, 16), (1, 1), (1, 40), (33, 2)])
@pytest.mark.parametrize("sizes", [(6, 5, 9, 1, 5), (3, 4, 5, 3, 3), (2, 2, 1, 1, 1)])
def test_tiles_equal_the_whole(shape, sizes):
    network = random_network(*sizes)
    luma = np.random.default_rng(1).random(shape).astype(np.float32)
    memory = tile_bytes(network, 16)
    assert tile_side(network, memory) == 16
    whole = padded_at_once(network, luma)
    tiled = enhance(network, luma, memory)
    assert tiled.shape == whole.shape == shape
    np.testing.assert_allclose(tiled, whole, rtol=0, atol=2e-6)  # a grey level is 4e-3


def test_no_seam_shows_in_a_picture():
    network = random_network(8, 4)
    network[4].bias.value[...] = 0.5
    picture = smooth_picture(30, 37)
    whole = super_resolve(network, picture, 3)
    tiled = super_resolve(network, picture, 3, tile_bytes(network, 20))
    assert np.unique(whole).size > 50
    difference = np.abs(whole.astype(int) - tiled)
    assert difference.max() <= 1 and (difference > 0).mean() < 1e-3  # a tie may round either way


@pytest.mark.second
def test_a_large_picture_in_bounded_memory():
    """1024 x 1024 pixels: at once the 5x5x16 windows of the last layer alone take 1.7 GB."""
    network, memory = random_network(32, 16), 16 << 20
    luma = np.random.default_rng(2).random((1024, 1024)).astype(np.float32)
    tracemalloc.start()
    try:
        result = enhance(network, luma, memory)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    images = 3 * luma.nbytes  # the input with its edges, the output, and a little
    assert most < memory + images
    assert most > memory / 2  # the estimate is no gross one
    m = margin(network)
    corner = padded_at_once(network, luma[: 40 + m, : 40 + m])[:40, :40]
    np.testing.assert_allclose(result[:40, :40], corner, rtol=0, atol=2e-6)


def test_the_estimate_grows_with_the_side_and_too_little_memory_is_refused():
    network = model(8, 4)
    sizes = [tile_bytes(network, side) for side in range(1, 60)]
    assert sizes == sorted(set(sizes))
    for side in (1, 7, 59):
        assert tile_side(network, sizes[side - 1]) == side
    with pytest.raises(ArgumentError, match="at least .* bytes, for a tile of one pixel"):
        enhance(network, np.zeros((4, 4), np.float32), sizes[0] - 1)


@pytest.mark.parametrize("scale", [1, 2, 3])
@pytest.mark.parametrize("shape", [(20, 27), (1, 1), (5, 3)])
def test_with_an_identity_it_is_bicubic(scale, shape):
    """Bicubic interpolation is linear: of luma and chroma it is that of red, green and blue."""
    picture = smooth_picture(*shape, seed=3)
    found = super_resolve(identity(), picture, scale)
    height, width = shape
    for plane, expected in zip(found, picture, strict=True):
        image = Image.fromarray(expected.astype(np.float32))
        wanted = np.asarray(image.resize((scale * width, scale * height), Image.BICUBIC))
        np.testing.assert_allclose(plane, np.clip(wanted, 0, 255), rtol=0, atol=0.51)


def test_luma_goes_through_the_network_and_chroma_does_not():
    """A brighter luma adds the same to red, green and blue."""
    picture, network = smooth_picture(12, 12, seed=4), identity()
    before = super_resolve(network, picture, 2).astype(float)
    network[4].bias.value[...] = 10 / 255
    after = super_resolve(network, picture, 2).astype(float)
    np.testing.assert_allclose(after - before, 10 * 255 / 219, atol=1.01)
    grey = np.repeat(picture[:1], 3, axis=0)
    out = super_resolve(random_network(4, 2), grey, 2)
    assert (out[0] == out[1]).all() and (out[0] == out[2]).all()


@pytest.mark.parametrize(
    "pixels, scale, error, message",
    [
        (np.zeros((4, 4), np.uint8), 3, ShapeError, r"pixels: expected \(3, H, W\)"),
        (np.zeros((3, 0, 4), np.uint8), 3, ShapeError, "not empty"),
        (np.zeros((3, 4, 4)), 3, DtypeError, "expected uint8, got float64"),
        (np.zeros((3, 4, 4), np.uint8), 0, ArgumentError, "scale: expected an int of at least 1"),
        (np.zeros((3, 4, 4), np.uint8), 1.5, ArgumentError, "scale: expected an int of at least 1"),
    ],
)
def test_bad_pictures(pixels, scale, error, message):
    with pytest.raises(error, match=message):
        super_resolve(model(1, 1), pixels, scale)


# ---- parameters in files ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["safetensors", "json"])
@pytest.mark.parametrize("sizes", [(6, 5, 9, 1, 5), (2, 3, 3, 5, 1)])
def test_parameters_come_back_from_files(tmp_path, suffix, sizes):
    network = random_network(*sizes)
    path = tmp_path / f"parameters.{suffix}"
    if suffix == "json":
        write_json_parameters(network, path)
    else:
        save_arrays(path, network.state_dict())
    again = read_network(path).state_dict()
    for name, array in network.state_dict().items():
        np.testing.assert_array_equal(again[name], array)


def test_order_of_weights_in_json(tmp_path):
    """Row, column, input channel, filter: the index of the program of 2015."""
    network = random_network(2, 3, 3, 1, 3)
    path = write_json_parameters(network, tmp_path / "p.json")
    flat = json.loads(path.read_text())["layer3"]["weights"]
    w = layers(network)[2].weight.numpy()
    assert flat[(2 * 3 + 1) * 3 * 1 + 1 * 1 + 0] == w[0, 1, 2, 1]  # row 2, column 1, channel 1
    first = json.loads(path.read_text())["layer1"]["weights"]
    assert first[(1 * 3 + 2) * 1 * 2 + 0 * 2 + 1] == layers(network)[0].weight.numpy()[1, 0, 1, 2]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda c: c.pop("layer2"), "no 'layer2'"),
        (lambda c: c["layer1"].pop("bias"), "no 'bias'"),
        (lambda c: c["layer1"]["weights"].pop(), "161 weights for 1 channels and 2 filters"),
        (lambda c: c["layer3"]["bias"].append(0.0), "weights for 3 channels and 2 filters"),
        (lambda c: c["layer2"]["bias"].__setitem__(0, float("nan")), "finite"),
        (lambda c: c["layer2"].__setitem__("bias", "x"), "expected layer1, layer2 and layer3"),
    ],
)
def test_bad_json_parameters(tmp_path, change, message):
    path = write_json_parameters(random_network(2, 3), tmp_path / "p.json")
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=message):
        read_network(path)


def test_bad_safetensors(tmp_path):
    path = save_arrays(tmp_path / "p.safetensors", {"0.weight": np.zeros((2, 3), np.float32)})
    with pytest.raises(CheckpointError, match="expected weights of three convolutions"):
        read_network(path)
    state = random_network(4, 2).state_dict()
    state["2.weight"] = state["2.weight"][:, :3]
    with pytest.raises(CheckpointError, match=r"2\.weight"):
        read_network(save_arrays(path, state))
    with pytest.raises(CheckpointError, match="No such file"):
        read_network(tmp_path / "absent.safetensors")


# ---- the command --------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """A picture, and the parameters of the identity."""
    picture = smooth_picture(15, 21, seed=6)
    Image.fromarray(np.moveaxis(picture, 0, -1)).save("in.png")
    save_arrays(tmp_path / "p.safetensors", identity().state_dict())
    return picture


@pytest.mark.parametrize("suffix, close", [("png", 0), ("bmp", 0), ("jpg", 40)])
def test_super_resolve(files, capsys, suffix, close):
    out = f"out.{suffix}"
    assert main(["super-resolve", "in.png", out, "--parameters", "p.safetensors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("21 x 15 -> 63 x 45 pixels") and lines[-1] == f"wrote {out}"
    expected = np.moveaxis(super_resolve(identity(), files, 3), 0, -1)
    with Image.open(out) as image:
        assert image.size == (63, 45)
        np.testing.assert_allclose(np.asarray(image).astype(int), expected, atol=close)


def test_super_resolve_as_json_with_scale_and_memory(files, capsys):
    arguments = ["--parameters", "p.safetensors", "--scale", "2", "--memory", "64K", "--json"]
    assert main(["super-resolve", "in.png", "out.png", *arguments]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["to"] == "42 x 30" and answer["files"] == ["out.png"]
    assert 1 <= answer["tile"] < 42  # several tiles


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["in.png", "in.png"], "OUT: expected another file than IN"),
        (["in.png", "out.tif"], "expected a file name that ends in one of"),
        (["in.png", "nowhere/out.png"], "make the folder nowhere first"),
        (["absent.png", "out.png"], "absent.png: expected a file"),
        (["p.safetensors", "out.png"], "expected an intact image"),
        (["in.png", "out.png", "--memory", "100"], "for a tile of one pixel, got 100"),
        (["in.png", "out.png", "--memory", "lots"], "expected a number of bytes such as 256M"),
        (["in.png", "out.png", "--scale", "0"], "expected a whole number from 1 to 99"),
        (["in.png", "out.png", "--best"], "--best: expected a run folder"),
    ],
)
def test_what_super_resolve_refuses(files, capsys, arguments, message, tmp_path):
    assert message in fails(capsys, ["super-resolve", *arguments, "--parameters", "p.safetensors"])
    assert not (tmp_path / "out.png").exists()


def test_numbers_of_bytes():
    assert [byte_count(text) for text in ("512", "64k", "1.5M", "2GiB", "3 MB")] == [
        512,
        65536,
        3 << 19,
        2 << 30,
        3 << 20,
    ]
