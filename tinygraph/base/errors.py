"""Every error that tinygraph raises on purpose.

A message has the same five parts wherever it comes from: the op, the argument, what was expected,
what came, and the way out.  An error takes them as its arguments, so that no two rooms word it
differently.

    conv2d: w: expected 3 input channels, as x has; got 4 (w.shape = (8, 4, 3, 3)). Way out: ...

Each class also derives from the built-in error that Python or numpy would have raised, so that
`except ValueError` keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable


class TinygraphError(Exception):
    """The base of all errors below; the command line prints these without a traceback.

    Takes the five parts of a message (see `explain`), or a sentence of its own.

    >>> raise ShapeError("relu", "x", "one axis", "none", "x.reshape(1)")
    Traceback (most recent call last):
    ...
    tinygraph.errors.ShapeError: relu: x: expected one axis, got none. Way out: x.reshape(1)
    """

    def __init__(
        self,
        op: str,
        argument: str | None = None,
        expected: str = "",
        got: object = "",
        way_out: str = "",
    ) -> None:
        super().__init__(op if argument is None else explain(op, argument, expected, got, way_out))


class ArgumentError(TinygraphError, ValueError):
    """A value that no shape or dtype explains: a stride of 0, an unknown reduction, a bad label."""


class ShapeError(TinygraphError, ValueError):
    """Shapes that do not fit an op, or each other."""


class DtypeError(TinygraphError, TypeError):
    """An element type that an op does not take."""


class DeviceError(TinygraphError, RuntimeError):
    """A device that is absent, or tensors that live on different devices."""


class ExchangeError(TinygraphError, BufferError):
    """Memory that cannot be shared with another library: it requires a gradient, lies elsewhere."""


class ProtocolError(TinygraphError, AttributeError):
    """An object without the methods by which libraries share their arrays."""


class KernelCompileError(TinygraphError, RuntimeError):
    """A CUDA source that does not compile: file, line, source line and the compiler's message."""


class KernelLaunchError(TinygraphError, RuntimeError):
    """A kernel launch with wrong arguments, grid, block or shared memory."""


class GraphError(TinygraphError, RuntimeError):
    """A walk over the graph that cannot be made: freed values, missing feeds, in-place changes."""


class PlanWarning(UserWarning):
    """A compiled function runs as it stands: no plan can repeat what it does."""


class CaptureWarning(UserWarning):
    """Steps on a GPU run one launch after the other: no CUDA graph can repeat what they do."""


class CheckpointError(TinygraphError, RuntimeError):
    """A file of parameters or training state that is broken or belongs to another model."""


class DivergenceError(TinygraphError, ArithmeticError):
    """A loss that is no longer a finite number."""


class DatasetError(TinygraphError, RuntimeError):
    """A data file that is missing, corrupt, truncated or does not belong to its companion."""


class WorkerError(TinygraphError, RuntimeError):
    """A process of a DataLoader that ended, that did not answer in time, or could not begin."""


class DistributedError(TinygraphError, RuntimeError):
    """Ranks that do not do the same, or that cannot meet."""


class OnnxError(TinygraphError, RuntimeError):
    """A network that ONNX has no operators for, a file that cannot be read, no package onnx."""


class GradcheckError(TinygraphError, AssertionError):
    """An analytic gradient that differs from the numeric one.  `report` holds what was found."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


def explain(op: str, argument: str, expected: str, got: object, way_out: str = "") -> str:
    """Put the five parts of an error message together.

    >>> explain("relu", "x", "a float32 or float64 array", "int64", "convert with x.astype(...)")
    'relu: x: expected a float32 or float64 array, got int64. Way out: convert with x.astype(...)'
    """
    found = str(got)  # an error that stands in another one has its stop
    message = (
        f"{op}: {argument}: expected {expected}, got {found}{'' if found[-1:] == '.' else '.'}"
    )
    return f"{message} Way out: {way_out}" if way_out else message


def install(extra: str) -> str:
    """The command that installs what an extra needs: in a checkout, for nothing is released yet.

    >>> install("plot")
    "pip install -e '.[plot]'"
    """
    return f"pip install -e '.[{extra}]'"


def nearest(word: str, known: Iterable[str]) -> str:
    """A sentence that proposes the known word nearest to a misspelt one; empty if none is near.

    >>> nearest("sgdd", ["adam", "sgd"])
    "did you mean 'sgd'?"
    """
    import difflib  # here: without a misspelt word it costs no time at import

    matches = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


# Messages and pickles name them as programs do that import them.
for _kind in list(vars().values()):
    if isinstance(_kind, type) and issubclass(_kind, (TinygraphError, UserWarning)):
        _kind.__module__ = "tinygraph.errors"
