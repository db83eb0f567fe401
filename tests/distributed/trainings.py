"""Small trainings, each with one more thing that could tell how many ranks there are.

`main` prints JSON, name -> digest, on the first rank.  A digest is that of parameters, buffers, the
state of the optimiser, random numbers to come, and of the log without its times.
"""

import hashlib
import json

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.engine.random import default_generator
from tinygraph.training import Trainer

SHARDS = 4
SAMPLES = 43  # in batches of 16: the last one has 11
STEPS = 9
DEVICE = "cpu"  # where those train that do not choose


def images(dtype=np.float32):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((SAMPLES, 2, 6, 6)).astype(dtype)
    return tg.data.ArrayDataset(x, rng.integers(0, 3, SAMPLES))


def network(*between, dtype=np.float32):
    tg.manual_seed(11)
    return nn.Sequential(
        nn.Conv2d(2, 5, 3, dtype=dtype),
        *between,
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(80, 3, dtype=dtype),
    ).to(DEVICE)


def digest(model, optimizer, rows):
    state = hashlib.sha256()
    for name, array in model.state_dict().items():
        state.update(name.encode() + np.ascontiguousarray(array).tobytes())
    for name, own in optimizer.state_dict()["state"].items():
        for key, value in own.items():
            state.update(f"{name} {key}".encode() + np.asarray(value).tobytes())
    state.update(json.dumps(default_generator.state_dict()).encode())
    plain = [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
    state.update(json.dumps(plain).encode())
    return state.hexdigest()[:16]


def trained(model, optimizer=None, data=None, batch=16, epochs=3, loss=tg.cross_entropy, **options):
    optimizer = optimizer or tg.optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9)
    data = images() if data is None else data
    options = {"progress": False, "shards": SHARDS, "compile": False, **options}
    trainer = Trainer(model, optimizer, loss, **options)
    loader = tg.data.DataLoader(data, batch, shuffle=True, seed=2)
    rows = trainer.fit(loader, tg.data.DataLoader(data, 10), epochs=epochs)
    return digest(model, optimizer, rows)


def plain():
    return trained(network())


def dropout():
    return trained(network(nn.Dropout(0.4)))


def rows():
    """A dropout on several rows of each sample."""
    layers = nn.Flatten(), nn.Unflatten(1, (6, 12)), _Rows(0.4), nn.Flatten(), nn.Linear(72, 3)
    tg.manual_seed(3)
    return trained(nn.Sequential(*layers).to(DEVICE))


class _Rows(nn.Module):
    def __init__(self, p):
        self.linear, self.dropout = nn.Linear(12, 12), nn.Dropout(p)

    def forward(self, x):
        return self.dropout(self.linear(x).reshape(-1, 12)).reshape(x.shape)


def attention():
    tg.manual_seed(3)
    model = nn.Sequential(
        nn.Unflatten(1, (4, 18)),
        nn.TransformerEncoderLayer(18, 2, 16, dropout=0.3, batch_first=True),
        nn.Flatten(),
        nn.Linear(72, 3),
    ).to(DEVICE)
    data = tg.data.ArrayDataset(images().inputs.reshape(SAMPLES, 72), images().labels)
    return trained(model, tg.optim.AdamW(model.named_parameters(), lr=0.01), data)


def noise():
    """Numbers that a loss draws for itself."""

    def loss(output, target):
        drawn = tg.randn(*output.shape, device=output.device)
        return tg.cross_entropy(output + 0.1 * drawn, target)

    return trained(network(), loss=loss, capture=False)  # drawn on the host


def batch_norm():
    return trained(network(nn.BatchNorm2d(5), nn.Dropout(0.2)))


def frozen_norm():
    """Running statistics that nobody writes stay as they are, to the bit."""
    norm = nn.BatchNorm2d(5)
    norm.running_mean.value[...] = np.float32(0.1)
    model = network(norm)
    trainer = Trainer(
        model,
        tg.optim.SGD(model.named_parameters(), lr=0.1),
        tg.cross_entropy,
        progress=False,
        shards=SHARDS,
    )
    loader = tg.data.DataLoader(images(), 16, shuffle=True, seed=2)
    model.train()
    norm.eval()
    for inputs, labels in loader:
        trainer.step(inputs, labels)
    if (norm.running_mean.numpy() != np.float32(0.1)).any() or norm.num_batches_tracked.item():
        raise ValueError("a frozen norm has moved")
    return digest(model, trainer.optimizer, [])


def clipping():
    return trained(network(nn.BatchNorm2d(5)), clip_norm=0.1)


def adam():
    model = network(nn.Dropout(0.2))
    optimizer = tg.optim.Adam(model.named_parameters(), lr=0.01, weight_decay=0.1)
    schedule = tg.optim.CosineAnnealingLR(optimizer, 9)
    return trained(model, optimizer, schedule=schedule, schedule_each="batch")


def plateau():
    model = network()
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1)
    schedule = tg.optim.ReduceLROnPlateau(optimizer, patience=0, threshold=0.5)
    return trained(model, optimizer, schedule=schedule)


def compiled():
    return trained(network(nn.BatchNorm2d(5), nn.Dropout(0.2)), compile=True, clip_norm=1.0)


def tiled():
    """A plan that is cut into tiles inside of each shard."""
    return tiled_network()


def tiled_network(**options):
    tg.manual_seed(4)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(2304, 3),
    )
    rng = np.random.default_rng(5)
    data = tg.data.ArrayDataset(
        rng.standard_normal((260, 1, 28, 28)).astype(np.float32), rng.integers(0, 3, 260)
    )
    return trained(model, data=data, batch=200, epochs=2, compile=True, **options)


def tuned():
    """The first rank measures; what it chooses may be another thing the next time."""
    return tiled_network(tune=True)


def doubles():
    return trained(network(nn.Dropout(0.4), dtype=np.float64), data=images(np.float64))


def tiny_batches():
    """Batches of three, and a last one of one: shards without samples, ranks without any."""
    return trained(network(nn.BatchNorm2d(5), nn.Dropout(0.2)), batch=3, epochs=2, compile=None)


def odd_shards():
    return trained(network(nn.Dropout(0.4)), shards=7, compile=None)


def one_shard():
    return trained(network(nn.Dropout(0.4)), shards=1)


class WithIdle(nn.Module):
    def __init__(self):
        self.network = network()
        self.idle = nn.Linear(2, 2).to(DEVICE)

    def forward(self, x):
        return self.network(x)


def unused():
    """A layer that no gradient reaches keeps none, and does not decay."""
    model = WithIdle()
    found = trained(model, tg.optim.SGD(model.named_parameters(), lr=0.1, weight_decay=0.1))
    if model.idle.weight.grad is not None:
        raise ValueError("a gradient came from nowhere")
    return found


def emulator():
    model = network(nn.BatchNorm2d(5), nn.Dropout(0.4)).to("emulator")
    return trained(model, epochs=1)


def emulator_compiled():
    model = network(nn.Dropout(0.4)).to("emulator")
    return trained(model, epochs=1, compile=True)


def own_loop():
    """data_parallel in a loop of one's own, around a compiled function."""
    model = network(nn.Dropout(0.4))
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9)

    @tg.compile
    def learn(x, t):
        output = model(x)
        loss = tg.cross_entropy(output, t)
        optimizer.zero_grad()
        loss.backward()
        return loss

    gradients = tg.distributed.data_parallel(learn, model, shards=SHARDS)
    rows = []
    for x, t in tg.data.DataLoader(images(), 16, shuffle=True, seed=2):
        rows.append({"loss": gradients(x, t)})
        optimizer.step()
    return digest(model, optimizer, rows)


def in_buckets(bucket_mb):
    """A loop of one's own, with running statistics and an idle layer."""
    model = nn.Sequential(network(nn.BatchNorm2d(5), nn.Dropout(0.4)), nn.Identity())
    idle = nn.Linear(2, 2)
    model.add_module("idle", idle)
    optimizer = tg.optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9)

    def learn(x, t):
        loss = tg.cross_entropy(model[0](x), t)
        loss.backward()
        return loss

    gradients = tg.distributed.data_parallel(learn, model, SHARDS, bucket_mb)
    rows = []
    for x, t in tg.data.DataLoader(images(), 16, shuffle=True, seed=2):
        rows.append({"loss": gradients(x, t)})
        optimizer.step()
    if idle.weight.grad is not None:
        raise ValueError("a gradient came from nowhere")
    return digest(model, optimizer, rows)


def buckets():
    """Gradients that are sent one by one, some at a time and all at once have the same bits."""
    found = {in_buckets(size) for size in (None, 1e-6, 5e-4, 1)}
    if len(found) > 1:
        raise ValueError("buckets have other bits")
    return found.pop()


TRAININGS = [
    plain, dropout, rows, attention, noise, batch_norm, frozen_norm, clipping, adam, plateau,
    compiled, tiled, doubles, tiny_batches, odd_shards, one_shard, unused, emulator,
    emulator_compiled, own_loop, buckets,
]  # fmt: skip
OF_A_DEVICE = {tiled, emulator, emulator_compiled, buckets}


def digests(device="cpu"):
    """On another device than the cpu: of those for which it makes a difference."""
    global DEVICE
    before, DEVICE = DEVICE, device
    try:
        left_out = () if device == "cpu" else OF_A_DEVICE
        return {each.__name__: each() for each in TRAININGS if each not in left_out}
    finally:
        DEVICE = before


def main(device="cpu"):
    if device == "cuda":
        tg.distributed.init("nccl")
    found = digests(device)
    every = tg.distributed.all_gather_object([found, tuned() if device == "cpu" else None])
    if any(each != every[0] for each in every):
        raise ValueError(f"the ranks have not come to the same: {every}")
    if tg.distributed.rank() == 0:
        print(json.dumps(found))
