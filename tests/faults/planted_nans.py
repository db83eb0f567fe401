"""NaN planted in every op: in what it is given, in what it makes, in its upstream gradient, in each
gradient that it makes.  `detect_anomaly` must name the op, the index and the user's line.

Problems come from the contracts in tests/ops, so that an op is in here as soon as it has its test.
What must be named is found without `detect_anomaly`: the same call is made, and the first node with
a NaN in its value, or the first gradient with one, is looked for from outside.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
import re
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tests.ops
import tinygraph as tg
from tests.faults.tally import Tally
from tests.op_contract import OpContract
from tinygraph.base.errors import GraphError
from tinygraph.engine.graph import topological_order
from tinygraph.engine.running import Runner

TESTS = Path(__file__).parents[1]


def contracts():
    """Every contract of a public function, in the order of their names."""
    found = []
    for info in pkgutil.iter_modules(tests.ops.__path__, "tests.ops."):
        if info.name.startswith("tests.ops.test_"):
            module = importlib.import_module(info.name)
            found += [
                cls
                for cls in vars(module).values()
                if isinstance(cls, type)
                and issubclass(cls, OpContract)
                and cls is not OpContract
                and cls.__module__ == module.__name__
            ]
    return found


def problems(contract, count, first_seed):
    """Some problems of a contract, the same for the same seed."""
    drawn = []

    @seed(first_seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data):
        drawn.append(data.draw(contract.problems))

    draw()
    return drawn


def names_the_line(message, code):
    """Whether a message ends with a line of this code: its file, number and text."""
    lines, start = inspect.getsourcelines(code)
    found = re.search(r" made at (.+):(\d+): (.+)$", message)
    if not found or found[1] != code.co_filename:
        return False
    offset = int(found[2]) - start
    return 0 < offset < len(lines) and lines[offset].strip() == found[3]


def first_nan(array):
    """The index of the first NaN, as the message writes it; None without one."""
    if array is None or array.dtype.kind != "f" or not np.isnan(array).any():
        return None
    return str([int(i) for i in np.argwhere(np.isnan(array))[0]])


def poisoned(array, rng):
    """A copy with a NaN at one place."""
    array = np.array(array)
    array.reshape(-1)[rng.randrange(array.size)] = np.nan
    return array


def complaint(function):
    """The message of the GraphError that a function ends with; empty if it ends well."""
    try:
        with tg.detect_anomaly():
            function()
    except GraphError as error:
        return str(error)
    return ""


def judge(tally, what, message, caller, op, index, direction):
    """Whether the message names op, index, direction and line; no message where there is no NaN."""
    if index is None:
        if message:
            tally.fail(f"{what}: false alarm: {message}")
        else:
            tally.add("the op let no NaN through, no alarm")
        return
    named = message.startswith(f"detect_anomaly: {op} ")
    if named and f" at {index} in its {direction} " in message and names_the_line(message, caller):
        tally.add(f"op, index and line named, {direction}")
    else:
        tally.fail(f"{what}: expected {op} at {index} in its {direction}, got {message!r}")


class Planting:
    """One problem of one op, and the NaNs that are planted in it."""

    def __init__(self, contract, problem, rng, tally):
        self.contract, self.problem, self.rng, self.tally = contract, problem, rng, tally
        self.instance = contract()
        self.name = contract.function.__name__
        # The innermost of these that is not tinygraph's own counts as the user's line.
        calls = [contract.function, contract.apply, Planting.call]
        self.caller = next(
            call.__code__ for call in calls if Path(call.__code__.co_filename).is_relative_to(TESTS)
        )

    def leaves(self):
        return self.instance.leaves(self.problem)

    def call(self, leaves):
        return self.instance.apply(self.problem, leaves)

    def all(self):
        """Every input; then what each node makes, forward and backward."""
        with np.errstate(all="ignore"):
            y = self.call(self.leaves())
            if y.op is None or complaint(lambda: self.call(self.leaves())):
                return  # nothing was done, or a NaN without our help: an empty mean
            for i, x in enumerate(self.leaves()):
                if x.dtype.kind == "f" and x.size:
                    self.in_input(i)
            for node in topological_order([y]):
                if node.op is not None and node.dtype.kind == "f" and node.size:
                    self.in_result(node.op)
            if y.requires_grad and y.size:
                self.in_upstream()
                for node in topological_order([y], only_differentiable=True):
                    if node.op is not None:
                        self.in_gradients(node.op)

    def in_input(self, i):
        leaves = self.leaves()
        leaves[i].value = poisoned(leaves[i].value, self.rng)
        seen = []
        try:
            with _Forward(seen):  # also nodes that are not below y: other parts of a split
                self.call(leaves)
        except tg.errors.ArgumentError:
            self.tally.add("refused: the op does not take NaN there")
            return
        op, index = next(((op, i) for op, i in seen if i is not None), (None, None))
        fresh = self.leaves()
        fresh[i].value = leaves[i].value
        message = complaint(lambda: self.call(fresh))
        judge(
            self.tally, f"{self.name}: NaN in input {i}", message, self.caller, op, index, "forward"
        )

    def in_result(self, op):
        """The op's forward makes a NaN out of good numbers."""
        forward, index = type(op).forward, []

        def bad(self_, mem, *arrays):
            value, saved = forward(self_, mem, *arrays)
            if self_ == op and not index and value.dtype.kind == "f":
                value = poisoned(value, self.rng)
                index.append(first_nan(value))
            return value, saved

        with mock.patch.object(type(op), "forward", bad):
            message = complaint(lambda: self.call(self.leaves()))
        if not index:  # the same op as another one that gives indices
            return
        judge(
            self.tally,
            f"{self.name}: NaN made by {op.name}",
            message,
            self.caller,
            op.name,
            index[0],
            "forward",
        )

    def in_upstream(self):
        upstream = poisoned(self.instance.upstream(self.call(self.leaves())), self.rng)
        seen = []
        with _Backward(seen):
            self.call(self.leaves()).backward(upstream)
        message = complaint(lambda: self.call(self.leaves()).backward(upstream))
        op, index = next(((op, i) for op, i in seen if i is not None), (None, None))
        judge(self.tally, f"{self.name}: NaN upstream", message, self.caller, op, index, "backward")

    def in_gradients(self, op):
        """The op's backward makes a NaN, in each gradient in turn."""
        if type(op).backward is tg.Op.backward:
            return
        for place in range(8):
            backward, index = type(op).backward, []

            def bad(self_, mem, grad, saved, needs, backward=backward, place=place, index=index):
                gradients = list(backward(self_, mem, grad, saved, needs))
                if place < len(gradients) and self_ == op and not index:
                    wanted = needs[place] and gradients[place] is not None
                    if wanted and gradients[place].size and gradients[place].dtype.kind == "f":
                        gradients[place] = poisoned(gradients[place], self.rng)
                        index.append(first_nan(gradients[place]))
                return tuple(gradients)

            y = self.call(self.leaves())
            upstream = self.instance.upstream(y)
            with mock.patch.object(type(op), "backward", bad):
                message = complaint(lambda u=upstream: self.call(self.leaves()).backward(u))
            if index:
                judge(
                    self.tally,
                    f"{self.name}: NaN in gradient {place} of {op.name}",
                    message,
                    self.caller,
                    op.name,
                    index[0],
                    "backward",
                )


class _Forward(Runner):
    """While it is entered, (op, first NaN) of every new node goes to `seen`, in order."""

    def __init__(self, seen):
        self.seen = seen

    def forward(self, node, mem, arrays):
        value, saved = self.below.forward(node, mem, arrays)
        self.seen.append((node.op.name, first_nan(np.asarray(value))))
        return value, saved


class _Backward(_Forward):
    """While it is entered, (op, first NaN) of every wanted gradient goes to `seen`, in order."""

    def forward(self, node, mem, arrays):
        return self.below.forward(node, mem, arrays)

    def backward(self, node, mem, grad, saved):
        gradients = self.below.backward(node, mem, grad, saved)
        for needed, g in zip(node.needs, gradients, strict=True):
            if needed and g is not None:
                self.seen.append((node.op.name, first_nan(np.asarray(g))))
        return gradients


def torment(count=10, seed=0):
    """Plant NaNs in `count` problems of every public function."""
    tally, rng = Tally("NaN in every op"), random.Random(seed)
    chosen = [c for c in contracts() if c.function.__name__ in tg.ops.EXPORTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for contract in chosen:
            for problem in problems(contract, count, seed):
                Planting(contract, problem, rng, tally).all()
    tally.notes = f"{len({c.function for c in chosen})} functions"
    return tally
