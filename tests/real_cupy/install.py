"""What tests/real_cupy needs from the package index, through pip as it is set up.

    python -m tests.real_cupy.install

installs tinygraph with its extra "test", and requirements.txt, into the environment of this Python.
A file there says what was installed, so a second run costs nothing.  Exit status 77, with the
reason: it cannot be had.

Nothing of tinygraph is imported here: it is not there yet.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUIREMENTS = HERE / "requirements.txt"
CUPY = "14.2.0"  # the version of the wheel in requirements.txt
SKIPPED = 77  # the exit status by which test programs of old say so


class CannotBuild(Exception):
    """Something is missing on this machine that the build needs."""


def install() -> None:
    wanted = (ROOT / "pyproject.toml").read_text() + REQUIREMENTS.read_text()
    stamp = Path(sys.prefix) / ".has-real-cupy"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing tinygraph and CuPy {CUPY} into {sys.prefix}", flush=True)
    requirements = ["--requirement", str(REQUIREMENTS), "--editable", f"{ROOT}[test]"]
    _pip("install", "--quiet", *requirements)
    stamp.write_text(wanted)


def require() -> None:
    """CannotBuild unless the wheel of CuPy is installed."""
    try:
        found = importlib.metadata.version("cupy-cuda13x")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != CUPY:
        way_out = "python -m tests.real_cupy.install, in an environment of its own"
        raise CannotBuild(f"it takes cupy-cuda13x {CUPY}, here is {found}. Way out: {way_out}")


def cupy_sources(folder: Path) -> Path:
    """CuPy's source distribution, unpacked in a folder."""
    # pip asks a source distribution for its metadata; CuPy's answers without a CUDA toolkit when
    # it is told to use stubs.
    words = ["--no-deps", "--no-binary", "cupy", "--dest", str(folder), f"cupy=={CUPY}"]
    _pip("download", "--quiet", *words, CUPY_INSTALL_USE_STUB="1")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"cupy-{CUPY}"


def _pip(*words: str, **variables: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise CannotBuild(f"pip {words[0]} does not work for CuPy {CUPY}:\n{said}")


def skipped(reason: CannotBuild) -> int:
    """Say why nothing is tested; the exit status."""
    print(f"real CuPy without a GPU: skipped: {reason}", file=sys.stderr)
    return SKIPPED


if __name__ == "__main__":
    try:
        install()
    except CannotBuild as reason:
        sys.exit(skipped(reason))
