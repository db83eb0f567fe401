"""Where modules were before, and where they are: an import by a former path finds the same module.

    import tinygraph.errors                    # tinygraph/base/errors.py
    from tinygraph.ops.relu import ReLU        # tinygraph/ops/elementwise/relu.py

One table, and one finder (PEP 451), which stands before those of Python.  A module has one object,
whatever it is called by.  `NAMES` are those that have left a module for another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Former room, new room: the names that went from the one to the other.  `a=b`: it is now called b.
_TABLE = """
tinygraph tinygraph.base: build_cache checks disk dtypes errors frozen kept_memory lazy text_table
    threads free_memory helper_processes incoming json_files json_text paths streams text_file trust
    variables precision wrapping
tinygraph tinygraph.engine: autograd device feeds graph hooks memory op operators parameter
    promises random running shapes=spec tensor writes assigned
tinygraph tinygraph.files: saving sealed
tinygraph tinygraph.interop: onnx dlpack sklearn of_numpy coming_from=torch_names
    absent_methods=torch_names rare_names=torch_names small_places=torch_names
tinygraph tinygraph.watch: anomaly costs kernel_table
tinygraph tinygraph.ops.leaves: creation leaf_options=options sampling copies
tinygraph.engine tinygraph.ops.leaves: copies operands=given
tinygraph.cuda tinygraph.watch: prediction
tinygraph.cuda tinygraph.plan: captured_step
tinygraph.nn tinygraph.distributed: sync_batch_norm
tinygraph.nn tinygraph.nn: utils=vectors
tinygraph.ops tinygraph.ops: shared=common
tinygraph.ops tinygraph.ops.common: cast to
tinygraph.ops tinygraph.ops.elementwise: arithmetic clip comparison dropout elu erf finite
    floor_divide gelu glu hard_activations heaviside leaky_relu logic masks prelu relu
    rounding sigmoid smooth_activations softplus tanh where
tinygraph.ops tinygraph.ops.losses: binary_cross_entropy binary_cross_entropy_with_logits
    cross_entropy half_squared_error huber_loss kl_div l1_loss mse_loss nll_loss
    softmax_cross_entropy
tinygraph.ops tinygraph.ops.normalization: batch_norm group_norm layer_norm rms_norm
tinygraph.ops tinygraph.ops.products: attention cosine_similarity einsum linear matmul
tinygraph.ops tinygraph.ops.recurrent: gru_layer lstm_layer rnn_layer
tinygraph.ops tinygraph.ops.reductions: count_nonzero cumsum logsumexp max mean norm prod softmax
    sort sum var
tinygraph.ops tinygraph.ops.shaping: concatenate embedding expand gather getitem one_hot pad reshape
    roll split tile transpose
tinygraph.ops tinygraph.ops.windows: adaptive_avg_pool2d avg_pool2d conv2d conv_transpose2d
    global_avg_pool2d im2col interpolate max_pool2d conv2d_relu_max_pool2d
tinygraph.ops.shared tinygraph.ops.elementwise: unary
tinygraph.ops.shared tinygraph.ops.leaves: counted
tinygraph.ops.shared tinygraph.ops.losses: losses weighted
tinygraph.ops.shared tinygraph.ops.normalization: normalization
tinygraph.ops.shared tinygraph.ops.products: drops gemm
tinygraph.ops.shared tinygraph.ops.recurrent: recurrent
tinygraph.ops.shared tinygraph.ops.reductions: reductions lengths
tinygraph.ops.shared tinygraph.ops.windows: convolution convolution_blocks convolution_rows
    pooling_phases sequences single_channel_stage windows
tinygraph.show tinygraph.base: page paths=page_paths text=page_text
tinygraph.show.stepping tinygraph.base: shell=stepped_page
tinygraph.show.stepping tinygraph.cuda: kernel=stepping
tinygraph.interop tinygraph.interop: absent_methods=torch_names rare_names=torch_names
    small_places=torch_names
tinygraph.training tinygraph.interop: event_file tensorboard
tinygraph.training tinygraph.watch: stopwatch
"""


# Module, and the one that has these names now.
_LEFT = """
tinygraph.cuda tinygraph.plan.captured_step: CapturedStep capture
tinygraph.engine.device tinygraph.cuda.devices: CudaDevice EMULATOR EmulatorDevice cupy device_count
    is_available set_memory_limit
tinygraph.engine.hooks tinygraph.nn.hooks: call_with_hooks hooked
tinygraph.engine.assigned tinygraph.ops.leaves.given: fitting taken
tinygraph.engine.promises tinygraph.testing.broken_op: broken_forward broken_gradients wrong_shape
tinygraph.engine.spec tinygraph.ops.common.arguments: as_axes as_axis padding_2d pair require_bias
    require_images require_indices require_ndim require_range
tinygraph.engine.spec tinygraph.ops.windows.sliding: Windows windows
tinygraph.ops.elementwise tinygraph.ops.elementwise.elementwise: Abs Cos Exp Expm1 Log Log1p Log2
    Neg Reciprocal Rsqrt Sin Sqrt Square abs cos exp expm1 log log1p log2 neg reciprocal rsqrt sin
    sqrt square
tinygraph.ops.products tinygraph.ops.products.products: bmm dot mm mv outer
"""

# What has left the package, and where it lies.
_READER = "the reader of machine code is a tool beside the package: benchmarks/machine_code"
GONE = dict.fromkeys(
    ["tinygraph.cuda.machine_code", "tinygraph.cuda.reading.floors"]
    + [f"tinygraph.cuda.nvrtc.{name}" for name in ("disassembly", "flow", "main_loop", "rounds")],
    f"{_READER} of a checkout",
) | {"tinygraph.course": "the course is a package of its own, tinygraph_course"}


def _entries(table: str) -> Iterator[tuple[str, str, str, str]]:
    """Former room, new room, former name and new name of each entry."""
    for entry in table.strip().replace("\n    ", " ").splitlines():
        rooms, _, names = entry.partition(":")
        before, now = rooms.split()
        for name in names.split():
            old, _, new = name.partition("=")
            yield before, now, old, new or old


# The module of each former path, and that of each name which has left its own.
HOMES = {f"{before}.{old}": f"{now}.{new}" for before, now, old, new in _entries(_TABLE)}
NAMES = {(before, old): now for before, now, old, _ in _entries(_LEFT)}


def home(name: str) -> str | None:
    """The path of a module today, by a former one of it or of a room around it.

    >>> home("tinygraph.errors"), home("tinygraph.onnx.loading"), home("tinygraph.nn")
    ('tinygraph.base.errors', 'tinygraph.interop.onnx.loading', None)
    """
    room, rest = name, ""
    while "." in room:
        if room in HOMES:
            return HOMES[room] + rest
        room, _, last = room.rpartition(".")
        rest = f".{last}{rest}"
    return None


class _Finder:
    """Finds former paths; as a loader it gives them the module that stands at its home."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}: {GONE[name]}", name=name)
        if not name.startswith("tinygraph.") or home(name) is None:
            return None
        return ModuleSpec(name, _Finder)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        try:
            sys.modules[module.__name__] = import_module(str(home(module.__name__)))
        except ModuleNotFoundError as error:  # it is asked for by its former path
            raise ModuleNotFoundError(str(error), name=module.__name__) from None


def _elsewhere(room: str, own: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names lie elsewhere (PEP 562); it may have its own."""

    def __getattr__(name: str) -> Any:
        if (room, name) not in NAMES:
            if own is not None:
                return own(name)
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(NAMES[room, name]), name)

    return __getattr__


def install() -> None:
    """Let former paths be found.

    Python sets a module that it finds on the package: those of the names of functions, such as
    `tg.tensor`, are entered at once.  In ops/ the package itself looks after that.
    """
    sys.meta_path.insert(0, _Finder)
    top = vars(sys.modules["tinygraph"])
    for old, new in HOMES.items():
        if new in sys.modules and callable(top.get(old.removeprefix("tinygraph."))):
            sys.modules[old] = sys.modules[new]
    for room in {room for room, _ in NAMES}:
        names = vars(import_module(room))
        names["__getattr__"] = _elsewhere(room, names.get("__getattr__"))
