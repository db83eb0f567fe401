"""A small training with everything that has state: what tests stop, kill and resume.

Run as a program it is the training that test_kill.py kills: `python -m tests.training.networks`.
"""

import numpy as np

import tinygraph as tg
from tinygraph.training import RunFolder, Trainer

EPOCHS = 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((44, 6)).astype(np.float32)
T = (X[:, 0] + X[:, 1] > 0).astype(np.int64)


def trainer(run, optimizer="sgd", **options):
    """A network with dropout and batch normalization, a schedule, an optimiser with state."""
    tg.manual_seed(3)
    model = tg.nn.Sequential(
        tg.nn.Linear(6, 8),
        tg.nn.BatchNorm1d(8),
        tg.nn.ReLU(),
        tg.nn.Dropout(0.3),
        tg.nn.Linear(8, 2),
    )
    parameters = model.named_parameters()
    rule = {
        "sgd": lambda: tg.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3),
        "adam": lambda: tg.optim.Adam(parameters, lr=0.01),
    }[optimizer]()
    schedule = tg.optim.StepLR(rule, step_size=1, gamma=0.5)
    return Trainer(
        model, rule, tg.softmax_cross_entropy, run=run, progress=False, schedule=schedule, **options
    )


def loaders():
    train = tg.data.ArrayDataset(X[:36], T[:36])
    held_out = tg.data.ArrayDataset(X[36:], T[36:])
    return tg.data.DataLoader(train, 16, shuffle=True, seed=5), tg.data.DataLoader(held_out, 8)


def run_or_resume(path, optimizer="sgd", **options):
    """Train to the end, from wherever the folder stands."""
    started = (path / "config.json").exists()
    run = RunFolder.open(path) if started else RunFolder(path)
    if not started:
        run.write_config({})
    worker = trainer(run, optimizer, **options)
    if started:
        worker.resume()
    if worker.epoch < EPOCHS:
        worker.fit(*loaders(), EPOCHS - worker.epoch)
    return worker


def fingerprint(worker):
    """Every bit that a resumed training must share with one that was never stopped."""
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in worker.run.rows()]
    state = worker.optimizer.state_dict()
    arrays = {
        **worker.model.state_dict(),
        **{f"{n}/{k}": np.asarray(v) for n, own in state["state"].items() for k, v in own.items()},
    }
    return (
        {name: array.tobytes() for name, array in arrays.items()},
        repr(state["groups"]),
        repr(rows),
        worker.schedule.state_dict(),
        tg.random.default_generator.state_dict(),
        worker.best,
        worker.steps,
        worker.run.path.joinpath("parameters.safetensors").read_bytes(),
        worker.run.best.read_bytes(),
    )
