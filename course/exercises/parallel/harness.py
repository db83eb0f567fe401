"""What tries the learner's functions: mailboxes in one process, and models.

A worker runs until it waits for an array that is not there.  It is given up then, and begun anew
when one has come: what it received before it gets again, what it sent before is not sent again.  So
no thread is needed, and when all wait it is known.  This stands behind the learner's file.
"""

import io as tg_io
import sys as tg_sys

import numpy as tg_np

import tinygraph as tg_framework


class tg_Waits(BaseException):
    """A worker waits; no Exception, which code is used to catch."""


tg_Deadlock = type("Deadlock", (Exception,), {})


class tg_Worker:
    """One rank: what it got so far, and what it has sent."""

    def __init__(self, rank, parts, boxes):
        self.rank, self.parts, self.boxes = rank, parts, boxes
        self.received, self.sent, self.waits, self.result = [], [], None, None
        self.begun = False

    def run(self, stuck=""):
        """Until it ends or waits; where `stuck` says that nothing will come, that is an error."""
        self.at, self.counted, self.waits, self.stuck = 0, 0, None, stuck
        screen = tg_sys.stdout
        tg_sys.stdout = tg_io.StringIO() if self.begun else screen  # what was printed before
        self.begun = True
        try:
            parts = [part.copy() for part in self.parts]
            self.result = ring(parts, self.rank, self.send, lambda *of: self.receive(screen, *of))
        except tg_Waits:
            pass
        finally:
            tg_sys.stdout = screen

    def send(self, to, array):
        if to not in range(len(self.boxes)):
            raise ValueError(f"there is no worker {to}, the last one is {len(self.boxes) - 1}")
        self.counted += 1
        if self.counted > len(self.sent):
            copy = tg_np.array(array)
            self.sent.append([to, copy.size])
            self.boxes[to].append((self.rank, copy))

    def receive(self, screen, sender=None):
        if self.at == len(self.received):
            box = self.boxes[self.rank]
            found = next((i for i, (of, _) in enumerate(box) if sender in (None, of)), None)
            if found is None:
                self.waits = "anybody" if sender is None else f"worker {sender}"
                if self.stuck:
                    raise tg_Deadlock(self.stuck)
                raise tg_Waits
            self.received.append(box.pop(found)[1])
            tg_sys.stdout = screen
        self.at += 1
        return self.received[self.at - 1].copy()


def tg_ring(gradients):
    """`ring` on all workers, in several orders of running: of each what they have, and send."""
    W = len(gradients)
    orders = [list(range(W)), list(range(W))[::-1], [*range(1, W), 0]]
    return [tg_one_ring(gradients, order) for order in orders]


def tg_one_ring(gradients, order):
    boxes = [[] for _ in gradients]
    workers = [tg_Worker(rank, parts, boxes) for rank, parts in enumerate(gradients)]
    waiting = [workers[rank] for rank in order]
    while waiting:
        before = sum(len(w.received) + len(w.sent) for w in workers)
        for worker in waiting:
            worker.run()
        left = [worker for worker in waiting if worker.waits]
        moved = sum(len(w.received) + len(w.sent) for w in workers) > before
        if left and len(left) == len(waiting) and not moved:
            first = min(left, key=lambda worker: worker.rank)
            each = ", ".join(f"{w.rank} for {w.waits}" for w in sorted(left, key=lambda w: w.rank))
            first.run(f"nothing is on its way to those who wait, worker {each}")
        waiting = left
    return [[worker.result for worker in workers], [worker.sent for worker in workers]]


def tg_sums(gradients):
    """The sum of some flat gradients, by `ring`: what each worker has."""
    parts = [tg_np.array_split(g, len(gradients)) for g in gradients]
    results, _ = tg_one_ring(parts, range(len(gradients)))
    return [tg_np.concatenate(result) for result in results]


def tg_broadcast(numbers):
    """`broadcast`: of each model its numbers; and which change when those of the first do."""
    models = []
    for some in numbers:
        model = tg_framework.nn.Sequential(
            tg_framework.nn.Linear(1, 2), tg_framework.nn.BatchNorm1d(2)
        ).double()
        model.load_state_dict(tg_state(model, some))
        models.append(model)
    broadcast(models)
    after = [tg_flat(model) for model in models]
    for p in models[0].parameters():
        p.value += 1
    shared = [not tg_np.array_equal(a, tg_flat(m)) for a, m in zip(after, models, strict=True)]
    return [after, shared[1:]]


def tg_state(model, numbers):
    """A state whose arrays hold `numbers`, one after the other."""
    state, at = model.state_dict(), 0
    for name, array in state.items():
        if array.dtype.kind == "f":
            state[name] = tg_np.array(numbers[at : at + array.size]).reshape(array.shape)
            at += array.size
    return state


def tg_flat(model):
    """All floats of a model."""
    arrays = [a for a in model.state_dict().values() if a.dtype.kind == "f"]
    return tg_np.concatenate([a.ravel() for a in arrays])


def tg_step(weight, bias, workers, x, y, lr, times):
    """`step`, some times: weight and bias of each model, and how many samples they were given."""
    models, seen = [], []
    for _ in range(workers):
        model = tg_framework.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        state = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
        model.double().load_state_dict(state)
        model.register_forward_hook(lambda module, given, made: seen.append(len(made.value)))
        models.append(model)
    for _ in range(times):
        step(models, x, y, lr)
    return [[[p.value.copy() for p in model.parameters()] for model in models], sum(seen)]
