"""`tinygraph step-kernel`: a launch, told as for check-kernel, as a page to step through."""

from __future__ import annotations

import re
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tinygraph.base import ArgumentError, KernelCompileError, KernelLaunchError
from tinygraph.cli.check_kernel import (
    LAUNCH_OPTIONS,
    arguments_of,
    extents,
    kernel_of,
    prints_on_stderr,
)
from tinygraph.cli.options import Options, whole_number

STEP_KERNEL: Options = {
    "FILE": "a .cu file",
    **{name: text for name, text in LAUNCH_OPTIONS.items() if not name.startswith("--arch")},
    "--page FILE": "where the page is written (default steps-KERNEL.html)",
    "--at N[xN[xN]]": (
        "a block to record: 3, 3x1 or 3x1x0; may be given again (default: the first 8, and those "
        "in which a mistake is found)",
        {"action": "append", "type": extents},
    ),
    "--limit EVENTS": (
        "events to record; default 100000",
        {"type": whole_number(1), "default": 100_000},
    ),
}


def step_kernel(args: Namespace) -> dict[str, Any]:
    """Run one launch and write the page of its steps."""
    try:
        kernel = kernel_of(args.file, args)
        values = arguments_of(kernel.signature, args)
        path = args.page or f"steps-{_file_name(kernel.signature.name)}.html"
        with prints_on_stderr() if args.json else nullcontext():
            written = kernel.steps(
                path,
                args.grid,
                args.block,
                *values,
                shared=args.shared,
                blocks=args.at,
                limit=args.limit,
            )
    except (KernelCompileError, KernelLaunchError) as error:
        raise ArgumentError(str(error)) from None  # the file or the launch: bad input
    print(f"wrote {written}")
    return {"kernel": kernel.signature.name, "page": str(written), "bytes": _size(written)}


def _size(path: Path) -> int:
    return path.stat().st_size


def _file_name(kernel: str) -> str:
    """The name of a kernel as part of that of a file.

    >>> _file_name("scale<float, 4>")
    'scale-float-4'
    """
    return re.sub(r"\W+", "-", kernel).strip("-")
