"""Trainings whose steps may be CUDA graphs: what the files test_captured*.py share."""

import numpy as np

import tinygraph as tg
from tests.training.networks import EPOCHS, loaders
from tinygraph.training import RunFolder, Trainer

RULES = {
    "sgd": lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: tg.optim.Adam(p, lr=0.01, amsgrad=True),
    "up": lambda p: tg.optim.SGD(p, lr=1e-3, momentum=0.5, maximize=True),
}


class Normalized(tg.nn.Module):
    """Batch normalization, whose running statistics a graph must go on with."""

    def __init__(self):
        self.running_mean = tg.nn.Buffer(np.zeros(8, np.float32))
        self.running_var = tg.nn.Buffer(np.ones(8, np.float32))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        return tg.batch_norm(x, running_mean=mean, running_var=var, training=self.training)


def worker(
    run,
    capture,
    rule="adam",
    loss=tg.softmax_cross_entropy,
    compile=False,
    last=(),
    clip_norm=None,
):
    """Dropout, batch normalization, a schedule, a rule with state."""
    tg.manual_seed(3)
    layers = tg.nn.Linear(6, 8), Normalized(), tg.nn.ReLU(), tg.nn.Dropout(0.3), tg.nn.Linear(8, 2)
    model = tg.nn.Sequential(*layers, *last).to("cuda")
    optimizer = RULES[rule](model.named_parameters())
    schedule = tg.optim.StepLR(optimizer, step_size=1, gamma=0.5)
    return Trainer(
        model,
        optimizer,
        loss,
        run=run,
        progress=False,
        schedule=schedule,
        capture=capture,
        compile=compile,
        clip_norm=clip_norm,
    )


def folder(path):
    run = RunFolder(path)
    run.write_config({})
    return run


def graph_of(trainer):
    """The recorded step, or None before it is recorded."""
    step = trainer._step.graph
    return step._recording.graph if step is not None and step.captured else None


def trained(path, capture, rule, **options):
    trainer = worker(folder(path), capture, rule, **options)
    trainer.fit(*loaders(), EPOCHS)
    return trainer


def batch(size=16, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size, 6)).astype("f4"), rng.integers(0, 2, size)


def reads(output, labels):
    loss = tg.softmax_cross_entropy(output, labels)
    loss.item()
    return loss


def losses(trainer, count=6, before=lambda trainer, step: None):
    trainer.model.train(True)
    found = []
    for step in range(count):
        before(trainer, step)
        found.append(trainer.step(*batch(seed=step)))
    return found, [a.tobytes() for a in trainer.model.state_dict().values()]
