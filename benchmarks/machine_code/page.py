"""The main loops of the main kernels as machine code, before and after: a page, without a GPU.

    python -m benchmarks.machine_code                      measure again; the page is written anew
    python -m benchmarks.machine_code --before KERNELS     take "before" from the .cu files there
    python -m benchmarks.machine_code --output FOLDER      another place than docs/benchmarks

"Before" stays what it was, in the JSON file beside the page.  It needs NVRTC and nvdisasm, as
`make kernels` does, and git for the commit's name.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.machine_code import disassembly
from benchmarks.machine_code.main_loop import MainLoop, main_loop
from benchmarks.report import table, write_page
from tinygraph.base.json_text import from_json, to_json
from tinygraph.cuda import nvrtc
from tinygraph.cuda.reading.instances import Instance, instances
from tinygraph.cuda.reading.source import Source

ARCH = "sm_90"
NAME = "machine-code"
ABOUT = """\
# Machine code of the main kernels

What the main loop of each kernel issues in one pass, read from machine code for sm_90 (H100, H200).
No GPU was there, and nothing was run or timed: this is what compilers made of the kernels. What the
columns mean, and which loop is the main loop:
[your own kernels](../kernels/your_own_kernels.md#is-its-main-loop-a-good-one). Where a kernel has
several instances of a kind, for transposed factors or special sizes, the best is shown.
"""


@dataclass(frozen=True)
class Row:
    """A kernel of the table: its file, its name by an expression, macros that it has or lacks."""

    label: str
    stem: str
    name: str
    macros: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def fits(self, instance: Instance) -> bool:
        given = {f"{name}={value}" for name, value in instance.defines.items()}
        absent = not set(self.without) & set(instance.defines)
        return bool(re.fullmatch(self.name, instance.name)) and given >= set(self.macros) and absent


def _rows() -> Iterator[Row]:
    for stem, name in (("matmul", "matmul<float>"), ("linear", "linear_forward<float>")):
        for tile in ("64", "128"):
            macros = (f"GEMM_TILE={tile}",)
            yield Row(f"{stem} {tile}, fp32", stem, name, macros, ("GEMM_MMA", "RELU"))
        for mma, kind in (("19", "tf32"), ("16", "bf16")):
            yield Row(f"{stem} 128, {kind}", stem, name, ("GEMM_TILE=128", f"GEMM_MMA={mma}"))
    yield Row("conv2d by im2col, 64", "conv2d", "conv2d_forward<float>", ("GEMM_TILE=64",))
    for part in ("forward", "input_gradient", "weight_gradient"):
        name = rf"conv2d_implicit_{part}<float.*>"
        yield Row(f"conv2d implicit, {part}", "conv2d_implicit", name, (), ("GEMM_MMA",))
        tf32 = ("GEMM_MMA=19",)
        yield Row(f"conv2d implicit, {part}, tf32", "conv2d_implicit", name, tf32)
    for part in ("forward", "backward"):
        stem = "conv2d_relu_max_pool2d"
        name = rf"{stem}_{part}\w*<float.*>"
        yield Row(f"conv2d, ReLU, max-pool 2x2, {part}", stem, name, ("POOL=2",))
    size = ("IMAGE_H=28", "IMAGE_W=28")
    for part in ("forward", "backward", "linear_backward"):
        name = f"single_channel_stage_{part}<float>"
        macros = (*size, "ARGMAX=1") if part == "forward" else size
        yield Row(f"the same, one channel of 28 x 28, {part}", "single_channel_stage", name, macros)
    yield Row("linear, 10 outputs", "linear_few_outputs", r"linear_few_outputs\w*<float.*>")
    for label, stem, name in (
        ("softmax", "softmax", "softmax_forward<float, Softmax>"),
        ("softmax cross-entropy", "softmax_cross_entropy", r"labels_forward<float.*>"),
        ("layer norm", "layer_norm", "layer_norm_forward<float>"),
        ("batch norm, moments", "batch_norm", r"batch_moments<float.*>"),
        ("batch norm, normalize", "batch_norm", r"normalize<float.*>"),
        ("batch norm, backward", "batch_norm", r"normalize_backward<float.*>"),
        ("mean squared error", "mse_loss", r"mse_loss_forward<float.*>"),
        ("where", "where", r"where_forward<float.*>"),
        ("ReLU", "relu", r"unary_forward<float, Relu.*>"),
        ("x + y", "arithmetic", r"binary_forward<float, Add.*>"),
        ("exp", "elementwise", r"unary_forward<float, Exp.*>"),
        ("sum", "sum", r"sum_forward<float.*>"),
        ("SGD", "sgd", r"sgd_update<float.*>"),
        ("SGD with momentum", "sgd", r"sgd_momentum_update<float.*>"),
        ("Adam", "adam", r"adam_update<float.*>"),
        ("RMSprop", "rmsprop", r"rmsprop_update<float.*>"),
        ("clipping, norm", "clipping", r"gradient_powers<float.*>"),
        ("clipping, scale", "clipping", r"scale_gradient<float.*>"),
    ):
        yield Row(label, stem, name)


def measured(row: Row, folder: Path) -> dict[str, Any] | None:
    """The best instance that fits a row, in plain numbers; None where there is none."""
    path = folder / f"{row.stem}.cu"
    fitting = [found for found in instances(path) if row.fits(found)] if path.is_file() else []
    loops = [(_loop(instance), instance) for instance in fitting]
    if not loops:
        return None
    loop, instance = min(loops, key=lambda pair: _badness(pair[0]))
    return {
        "kernel": instance.label,
        "instructions": loop.instructions,
        "kind": loop.kind,
        "multiply_adds": loop.multiply_adds.get(loop.kind, 0),
        "bytes_a_load": loop.bytes_a_load,
        "divisions": loop.divisions,
        "local": loop.local,
        "is_loop": loop.is_loop,
    }


def _loop(instance: Instance) -> MainLoop:
    source = Source.read(instance.path, instance.defines)
    return main_loop(nvrtc.compile(source, [instance.name], ARCH)[0])


def _badness(loop: MainLoop) -> tuple[float, float, int]:
    share = loop.share(loop.kind) if loop.kind else 0.0
    return -share, -(loop.bytes_a_load or 0.0), loop.instructions


def measurement(folder: Path) -> dict[str, Any]:
    """All rows, and what they were measured with."""
    return {
        "date": date.today().isoformat(),
        "commit": _commit(folder),
        "nvrtc": nvrtc.version(),
        "nvdisasm": disassembly.version(),
        "arch": ARCH,
        "rows": {row.label: measured(row, folder) for row in _rows()},
    }


def _commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return done.stdout.strip() or "unknown"


def page(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The page in Markdown."""
    made = [
        f"{name}: commit {one['commit']}, {one['date']}, NVRTC {one['nvrtc']}, nvdisasm "
        f"{one['nvdisasm']}, {one['arch']}."
        for name, one in (("Before", before), ("After", after))
    ]
    columns = ("multiply-adds", "instructions", "bytes a load", "divisions")
    head = ["kernel", *[part for column in columns for part in (f"{column} before", "after")]]
    rows = [
        [label, *_columns(before["rows"].get(label), after["rows"].get(label))]
        for label in {**after["rows"], **before["rows"]}
    ]
    again = 'Made by `python -m benchmarks.machine_code`, which measures "after" again.'
    parts = [ABOUT.strip(), "\n".join(made), table(head, rows), again]
    return "\n\n".join(parts) + "\n"


def _columns(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    cells = []
    for show in (_share, _instructions, _width, _divisions):
        cells += ["-" if one is None else show(one) for one in (before, after)]
    return cells


def _share(one: dict[str, Any]) -> str:
    if not one["multiply_adds"]:
        return ""
    return f"{one['kind']} {one['multiply_adds'] / one['instructions']:.1%}"


def _instructions(one: dict[str, Any]) -> str:
    return str(one["instructions"]) + ("" if one["is_loop"] else ", no loop")


def _width(one: dict[str, Any]) -> str:
    return "" if one["bytes_a_load"] is None else f"{one['bytes_a_load']:.1f}"


def _divisions(one: dict[str, Any]) -> str:
    return str(one["divisions"]) + (f", {one['local']} local accesses" if one["local"] else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, metavar="KERNELS", help="a folder of .cu files")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks"), metavar="FOLDER")
    args = parser.parse_args()
    numbers = args.output / f"{NAME}.json"
    after = measurement(None)
    kept = from_json(numbers.read_text(encoding="utf-8")) if numbers.is_file() else {}
    before = measurement(args.before) if args.before else kept.get("before", after)
    write_page(
        numbers, to_json(f"{NAME}.json", {"before": before, "after": after}, indent=1) + "\n"
    )
    write_page(args.output / f"{NAME}.md", page(before, after))
    print(args.output / f"{NAME}.md")


if __name__ == "__main__":
    main()
