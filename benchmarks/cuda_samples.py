"""Which of NVIDIA's CUDA samples run on the emulator: the table of docs/kernels/cuda_samples.md.

    python -m benchmarks.cuda_samples CHECKOUT [--only NAME ...] [--timeout 60] > table.md

CHECKOUT is a folder with https://github.com/NVIDIA/cuda-samples.  Each sample is run twice as it
stands, with its own defaults: fast, and under the checker.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.emulator.host.building import build
from tinygraph.cuda.emulator.host.program import run
from tinygraph.cuda.reading.source import Source

ABSENT = re.compile("a launch inside of a kernel[^,]*")
FOLDERS = (
    "0_Introduction",
    "1_Utilities",
    "2_Concepts_and_Techniques",
    "3_CUDA_Features",
    "6_Performance",
)


def files(sample: Path) -> list[Path]:
    """The sources of a sample; a .cu that another file includes is none of its own."""
    found = [p for s in ("*.cu", "*.cpp", "src/*.cu", "src/*.cpp") for p in sorted(sample.glob(s))]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in found]
    return [p for p in found if not any(f'"{p.name}"' in text for text in texts)]


def attempt(sample: Path, common: Path, checked: bool, timeout: float) -> str:
    """What became of one sample, in a few words."""
    folders = [folder for folder in (common, sample, sample / "inc") if folder.is_dir()]
    try:
        sources = [Source.read(path, None, folders) for path in files(sample)]
        program = build(sources, checked)
    except KernelCompileError as error:
        return f"refused: {reason(str(error))}"
    with tempfile.TemporaryFile() as out:
        with chdir(sample):  # where its data lies
            done = run(program, (), timeout, out.fileno(), subprocess.STDOUT)
        out.seek(0)
        text = out.read().decode(errors="replace")
    findings = [finding for report in done.reports for finding in report.findings]
    if findings:
        places = sorted({f"{f.kind} {Path(f.file).name}:{f.line}" for f in findings})
        return "; ".join(places)
    if any("not done after" in note for note in done.notes):
        return f"longer than {timeout:g} s"
    if done.status:
        absent = ABSENT.search(text)
        return f"refused: {absent[0]}" if absent else f"exit status {done.status}"
    return "clean" if checked else "runs"


def reason(error: str) -> str:
    """Why a sample is refused: what is missing, without where and without the way out."""
    lines = error.splitlines()
    told = next((line for line in lines if "error" in line), lines[0])
    _, _, said = told.partition(": ")
    return ": ".join(said.split(": ")[:2]) if said else told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--timeout", type=float, default=60.0)
    args = parser.parse_args()
    print("| sample | fast | under the checker |\n|---|---|---|")
    for folder in FOLDERS:
        for sample in sorted((args.checkout / "Samples" / folder).iterdir()):
            if not files(sample) or (args.only and sample.name not in args.only):
                continue
            print(row(sample, args.checkout / "Common", args.timeout), flush=True)


def row(sample: Path, common: Path, timeout: float) -> str:
    """One line of the table."""
    fast = attempt(sample, common, False, timeout)
    checked = "" if fast.startswith("refused") else attempt(sample, common, True, timeout)
    print(f"{sample.name}: {fast}; {checked}", file=sys.stderr)
    name = f"{sample.parent.name[:1]} {sample.name}"
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in (name, fast, checked))} |"


if __name__ == "__main__":
    main()
