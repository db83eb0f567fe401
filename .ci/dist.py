"""Build wheel and sdist, and use them as somebody does who has nothing else.

    wheel     into a new environment with its extra `course`; elsewhere: the README's first program,
              a training, an exercise of the course, a kernel under the checker
    sdist     unpacked elsewhere: a share of its tests, in that environment without the wheel;
              --all-tests: with the extra `test`, all of the first tier

`make dist` runs it.  Whatever fails ends it, with the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
LARGEST_WHEEL = 5e6  # bytes
SHARE = ["tests/test_graph.py", "tests/test_op.py", "tests/test_tensor.py", "tests/test_rooms.py"]
SHARE += ["tests/test_installation.py", "tests/test_import.py", "tests/nn", "tests/optim"]
CARRIED = ["LICENSE", "README.md", "CHANGELOG.md", "Makefile", "conftest.py", ".ci/run"]
CARRIED += ["CITATION.cff", "tests/reference", "docs/tutorial.md", "benchmarks"]
KERNEL = """__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""
LAUNCH = "check-kernel scale.cu --grid 4 --block 256 --arg x=rng.random(1000) --arg n=1000"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all-tests", action="store_true", help="all tests of the first tier")
    all_tests = parser.parse_args().all_tests
    wheel, sdist = build()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = environment(place / "env", f"{wheel}[course]")
        use(python, place / "elsewhere")
        test(python, sdist, place / "sdist", all_tests)


def build() -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist; their sizes are printed."""
    for old in [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]:
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT), quiet=True)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    require(wheel.stat().st_size < LARGEST_WHEEL, f"a wheel below {LARGEST_WHEEL / 1e6} MB")
    version = re.search(
        r'__version__ = "(.*)"', (ROOT / "tinygraph/__init__.py").read_text(encoding="utf-8")
    )[1]
    require(f"-{version}-" in wheel.name and f"-{version}.tar" in sdist.name, version)
    inside = set(zipfile.ZipFile(wheel).namelist())
    require(
        "tinygraph/py.typed" in inside and "tinygraph/ops/elementwise/relu.cu" in inside, "files"
    )
    return wheel, sdist


def environment(folder: Path, what: str) -> str:
    """The Python of a new environment with that installed."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", what, quiet=True)
    return python


def use(python: str, folder: Path) -> None:
    """What a stranger tries first, in a folder that is no checkout."""
    folder.mkdir()
    tinygraph = str(Path(python).with_name("tinygraph"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (folder / "first.py").write_text(
        re.search(r"```python\n(.*?)```", readme, re.S)[1], encoding="utf-8"
    )
    (folder / "scale.cu").write_text(KERNEL, encoding="utf-8")
    accuracy = float(run(python, "-W", "error", "first.py", cwd=folder).split()[-1])
    require(accuracy > 0.9, "an accuracy above 0.9")
    where = run(python, "-c", "import tinygraph; print(tinygraph.__file__)", cwd=folder)
    require("site-packages" in where, "the installed package")
    last = run(tinygraph, "train", "numba_cnn", "--epochs", "2", "--filters", "4", cwd=folder)
    require("test accuracy 0.9" in last, "a training")
    require("scale: clean" in run(tinygraph, *LAUNCH.split(), cwd=folder), "a clean kernel")
    run(tinygraph, "course", "start", "my-course", cwd=folder)
    course = folder / "my-course"
    answer = run(tinygraph, "course", "solution", "1", "--anyway", cwd=course)
    (course / "01_neuron.py").write_text(answer, encoding="utf-8")
    require("steps are right" in run(tinygraph, "course", "check", "1", cwd=course), "right steps")


def test(python: str, sdist: Path, folder: Path, all_tests: bool) -> None:
    """The tests of the sdist, in the sdist: what is imported lies there, not in the environment."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    for name in CARRIED:
        require((source / name).exists(), f"{name} in the sdist")
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    run(*pip, "uninstall", "-y", "tinygraph-nn", quiet=True)
    run(*pip, "install", *(["-e", f"{source}[test]"] if all_tests else ["pytest"]), quiet=True)
    arguments = ["-n", "auto"] if all_tests else SHARE
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, cwd=source)


def run(*command: str, cwd: Path | None = None, quiet: bool = False) -> str:
    """Run a command, show what it prints at the end, and return what it printed."""
    words = " ".join(word.replace(f"{ROOT}/", "") for word in command)
    print(f"-- {words[-90:]}", flush=True)
    started = time.monotonic()
    plain = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=cwd, env=plain, encoding="utf-8", capture_output=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed with {done.returncode}: {words}")
    last = done.stdout.strip().split("\n")[-1]
    print(f"   {'' if quiet else last[:90]} ({time.monotonic() - started:.0f} s)", flush=True)
    return done.stdout


def require(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"expected {what}")


if __name__ == "__main__":
    main()
