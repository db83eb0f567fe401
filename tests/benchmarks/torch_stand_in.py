"""What stands in PyTorch's place where `make gpu` is rehearsed."""

from contextlib import contextmanager

from benchmarks.gpu import ours


class TorchStandIn:
    """In PyTorch's place: the numpy bodies of tinygraph; `bias` makes its losses wrong."""

    def __init__(self, bias=0.0):
        self.bias, self.precisions = bias, []

    def about(self):
        return "a stand-in"

    @contextmanager
    def precision(self, tf32):
        self.precisions.append(tf32)
        yield

    def convolution(self, x, w, gy, padding):
        return ours.convolution(x, w, gy, padding, "cpu")

    def step(self, workload, mode):
        step = ours.steps(workload, "cpu")["eager"]
        return lambda: step() + self.bias
