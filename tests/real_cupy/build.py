"""Build what the real CuPy needs to run without a GPU; from the cache, if it was built before.

    python -m tests.real_cupy.build            where install.py was before

Two libraries: CUDA's run time and driver, from driver/; and CuPy's module `runtime`, from CuPy's
source distribution, for that of the wheel has NVIDIA's run time inside.  CuPy's other modules look
for the driver while they run, and find ours.  Headers, NVRTC, sources and wheels come from the
package index that pip is set up for.

Exit status 77, with the reason: it cannot be built here.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.real_cupy.install import CUPY, CannotBuild, cupy_sources, require, skipped
from tinygraph.base import build_cache

HERE = Path(__file__).parent
CUDA = 13000
MODULE = "cupy_backends/cuda/api/runtime"
# As CuPy's own setup does (install/cupy_builder/_command.py in its sources).
CYTHONIZE = """
import sys
from Cython.Build import cythonize
from setuptools import Extension
cythonize(
    [Extension(sys.argv[1].replace("/", "."), [sys.argv[1] + ".pyx"], language="c++")],
    quiet=True,
    language_level=3,
    compiler_directives={
        "binding": False, "c_api_binop_methods": True, "embedsignature": True,
        "warn.deprecated.IF": False,
    },
    compile_time_env={
        "CUPY_USE_CUDA_PYTHON": False, "CUPY_CUFFT_STATIC": False,
        "CUPY_CUDA_VERSION": int(sys.argv[2]), "CUPY_HIP_VERSION": 0,
    },
)
"""


def build() -> tuple[Path, Path]:
    """The driver's library, and CuPy's module `runtime` for it.

    Raises
    ------
    CannotBuild
        No C++ compiler, no wheel of CuPy for this Python, or no sources of it to be had.
    """
    compiler, include = _compiler(), _headers()
    sources = sorted((HERE / "driver").iterdir())
    parts = ["cuda driver", _version(compiler), *(p.name + p.read_text() for p in sources)]
    parts.append(importlib.metadata.version("nvidia-cuda-runtime"))

    def make_driver(path: Path) -> None:
        files = [str(p) for p in sources if p.suffix == ".cpp"]
        flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]
        name = "-Wl,-soname,libcuda.so.1"  # CuPy asks for it by this name
        _run([compiler, *flags, "-fPIC", "-shared", f"-I{include}", name, "-o", str(path), *files])

    driver = build_cache.compiled(parts, ".libcuda.so", make_driver)
    parts = [f"cupy {CUPY}", sys.implementation.cache_tag, sysconfig.get_platform(), *parts]

    def make_runtime(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = cupy_sources(Path(folder))
            _run([sys.executable, "-c", CYTHONIZE, MODULE, str(CUDA)], source)
            python = sysconfig.get_path("include")
            flags = ["-O1", "-w", "-fPIC", "-shared", f"-I{include}", f"-I{python}"]
            code = [f"{Path(MODULE).name}.cpp", str(driver)]
            place = (source / MODULE).parent
            _run([compiler, *flags, '-DCYTHON_EXTERN_C=extern "C"', "-o", str(path), *code], place)

    return driver, build_cache.compiled(parts, sysconfig.get_config_var("EXT_SUFFIX"), make_runtime)


def _headers() -> Path:
    """CUDA's headers, from NVIDIA's wheels."""
    require()
    import nvidia  # a namespace, of several wheels

    for place in nvidia.__path__:
        folder = Path(place) / "cu13" / "include"
        if (folder / "cuda_runtime_api.h").exists():
            return folder
    raise CannotBuild(f"no headers of CUDA in {list(nvidia.__path__)}")


def _compiler() -> str:
    named = os.environ.get("CXX", "g++")
    try:
        _version(named)
    except OSError as error:
        raise CannotBuild(f"no C++ compiler: {error}") from error
    return named


def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return done.stdout


def _run(command: list[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])} ...: {_end(done)}")


def _end(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stdout + done.stderr).strip()[-2000:]


def main() -> int:
    try:
        build()
    except CannotBuild as reason:
        return skipped(reason)
    return 0


if __name__ == "__main__":
    sys.exit(main())
