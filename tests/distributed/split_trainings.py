"""Small trainings of networks with layers that span the ranks, and of the same networks alone.

`main` writes what they come to on several ranks.  In one process the layers are those of nn, so
that the comparison is with code that knows nothing of ranks.  All of it in float64: what differs is
rounding, in the last digits.
"""

import sys
from functools import partial

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.training import RunFolder, Trainer

SAMPLES = 53  # in batches of 18: the last one has 17
F8 = np.float64


def on_ranks():
    return tg.distributed.world_size() > 1


def split_linear(in_features, out_features, **how):
    if on_ranks():
        return tg.distributed.Linear(in_features, out_features, dtype=F8, **how)
    return nn.Linear(in_features, out_features, dtype=F8)


def converted(network):
    return nn.SyncBatchNorm.convert_sync_batchnorm(network) if on_ranks() else network


def data(shape=(7,)):
    rng = np.random.default_rng(5)
    return tg.data.ArrayDataset(rng.standard_normal((SAMPLES, *shape)), rng.integers(0, 3, SAMPLES))


def network(**how):
    """Narrow, wide and split, narrow again; fewer features than divide by 2, 3 or 4."""
    tg.manual_seed(11)
    layers = nn.Sequential(
        nn.Linear(7, 11, dtype=F8),
        nn.BatchNorm1d(11, dtype=F8),
        nn.ReLU(),
        split_linear(11, 13, **how),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(13, 3, dtype=F8),
    )
    return converted(layers)


def sgd(model):
    return tg.optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def found(model, optimizer, rows):
    """Everything that a training has come to, as arrays by name."""
    numbers = {
        f"{key} of epochs": [row[key] for row in rows] for key in rows[0] if key != "seconds"
    }
    state = {
        f"{n}: {k}": v for n, own in optimizer.state_dict()["state"].items() for k, v in own.items()
    }
    return {**numbers, **model.state_dict(), **state}


def trained(
    model, optimizer=None, samples=None, batch=18, epochs=2, loss=tg.cross_entropy, **options
):
    optimizer = optimizer or sgd(model)
    samples = data() if samples is None else samples
    trainer = Trainer(model, optimizer, loss, progress=False, **{"clip_norm": 0.5, **options})
    loader = tg.data.DataLoader(samples, batch, shuffle=True, seed=2)
    rows = trainer.fit(loader, tg.data.DataLoader(samples, 10), epochs=epochs)
    return found(model, optimizer, rows)


def split_by(split, scheme, **options):
    return trained(network(split=split, scheme=scheme), **options)


def adam():
    model = network()
    return trained(model, tg.optim.Adam(model.named_parameters(), lr=0.01), clip_norm=None)


def largest_norm(**options):
    """Clipped by the largest gradient of all ranks, in a loop of one's own."""
    model = network(scheme="b")
    optimizer = sgd(model)

    def learn(x, t):
        loss = tg.cross_entropy(model(x), t)
        loss.backward()
        return loss

    gradients = tg.distributed.data_parallel(learn, model, **options)
    rows = []
    for x, t in tg.data.DataLoader(data(), 18, shuffle=True, seed=2):
        loss = gradients(x, t)
        norms = [tg.optim.clip_grad_norm(model.parameters(), 0.02, p) for p in (np.inf, 1.0, 3.0)]
        rows.append({"loss": loss, "norms": norms})
        optimizer.step()
    return found(model, optimizer, rows)


def sequences():
    """Linear acts on the last of three axes."""
    tg.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(5, 6, dtype=F8),
        split_linear(6, 9, scheme="c"),
        nn.Tanh(),
        split_linear(9, 4, split="in"),
        nn.Flatten(),
        nn.Linear(16, 3, dtype=F8),
    )
    return trained(model, samples=data((4, 5)))


def flattened():
    """Four rows for each sample; images, and a norm of their channels."""
    tg.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(2, 4, 3, dtype=F8), nn.BatchNorm2d(4, dtype=F8), nn.ReLU())
    rows = split_linear(4, 6, scheme="a")

    class Net(nn.Module):
        def __init__(self):
            self.images, self.rows = converted(model), rows
            self.last = nn.Linear(24, 3, dtype=F8)

        def forward(self, x):
            y = self.images(x)  # (n, 4, 2, 2)
            y = self.rows(y.permute((0, 2, 3, 1)).reshape(-1, 4))  # (4 n, 6)
            return self.last(tg.tanh(y).reshape(x.shape[0], 24))

    return trained(Net(), samples=data((2, 4, 4)))


def same(split="out", **options):
    """Every layer split, and the same sample on all ranks; of three nodes some ranks have none."""
    tg.manual_seed(4)
    how = {"scheme": "same", "split": split}
    model = nn.Sequential(
        split_linear(7, 10, **how), nn.Sigmoid(), split_linear(10, 3, **how), nn.Dropout(0.2)
    )
    options = {"batch": 1, "epochs": 1, **options}
    return trained(model, **options)


def same_among_others():
    """Layers before, between and after, which all ranks have."""
    tg.manual_seed(4)
    model = nn.Sequential(
        nn.Linear(7, 9, dtype=F8),
        nn.BatchNorm1d(9, dtype=F8),
        nn.Tanh(),
        split_linear(9, 10, scheme="same"),
        nn.Tanh(),
        split_linear(10, 5, scheme="same", split="in"),
        nn.Tanh(),
        nn.Linear(5, 3, dtype=F8),
    )
    return trained(model)


def emulator():
    model = network().to("emulator")
    return trained(model, epochs=1)


def stopped(folder):
    """Two epochs into a run folder."""
    model = network(scheme="b")
    run = RunFolder(folder)
    run.write_config({"recipe": "none"})
    return trained(model, epochs=2, run=run)


def resumed(folder):
    """The same run, from its checkpoint: one more epoch."""
    tg.manual_seed(99)
    model = network(scheme="b")
    optimizer = sgd(model)
    run = RunFolder.open(folder)
    trainer = Trainer(model, optimizer, tg.cross_entropy, progress=False, clip_norm=0.5, run=run)
    trainer.resume()
    loader = tg.data.DataLoader(data(), 18, shuffle=True, seed=2)
    rows = trainer.fit(loader, tg.data.DataLoader(data(), 10), epochs=1)
    return found(model, optimizer, rows)


FEW = {
    "out a": partial(split_by, "out", "a"),
    "out b, compiled": partial(split_by, "out", "b", compile=True),
    "in c": partial(split_by, "in", "c"),
    "same": same,
}
MORE = {
    "out a, compiled": partial(split_by, "out", "a", compile=True),
    "out b": partial(split_by, "out", "b"),
    "out c": partial(split_by, "out", "c"),
    "in a": partial(split_by, "in", "a"),
    "in b, compiled": partial(split_by, "in", "b", compile=True),
    "same, batches": partial(same, batch=16, epochs=2),
    "same, in": partial(same, split="in", batch=5),
    "same, compiled": partial(same, compile=True, batch=16),
    "same among others": same_among_others,
    "adam": adam,
    "largest norm": largest_norm,
    "buckets": partial(largest_norm, bucket_mb=0.0001),
    "sequences": sequences,
    "flattened": flattened,
    "emulator": emulator,
}


def main(which, path, folder=""):
    """`few` or `all` of the trainings, or one that is stopped, or resumed, into a file."""
    if which in ("stopped", "resumed"):
        results = {which: {"stopped": stopped, "resumed": resumed}[which](folder)}
    else:
        chosen = FEW if which == "few" else FEW | MORE
        results = {name: training() for name, training in chosen.items()}
    if tg.distributed.rank() == 0:
        flat = {f"{name}/{key}": v for name, own in results.items() for key, v in own.items()}
        np.savez(path, **flat)


if __name__ == "__main__":
    main(*sys.argv[1:])
