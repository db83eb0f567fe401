"""What a result may depend on: versions, the machine, BLAS and its threads."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OPENBLAS_CORETYPE",
)


def environment() -> dict[str, Any]:
    """The interpreter, numpy, BLAS, the machine and the date, ready for JSON.

    >>> sorted(environment())
    ['blas', 'cpus', 'date', 'machine', 'numpy', 'platform', 'python', 'threads']
    """
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": _cpus(),
        "blas": blas(),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }


def blas() -> dict[str, Any]:
    """Name and version of the library behind numpy's matrix products, and its threads.

    threadpoolctl asks the library itself; of one that it does not know, numpy says what it was
    built with and the threads are unknown (None).
    """
    libraries = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    if libraries:
        # scipy's wheels bring a BLAS of their own: numpy's own lies in a folder of numpy's name
        pool = next((p for p in libraries if "numpy" in p.get("filepath", "")), libraries[0])
        return {
            "name": pool.get("internal_api"),
            "version": pool.get("version"),
            "core": pool.get("architecture"),
            "threads": pool.get("num_threads"),
        }
    built: Any = np.show_config(mode="dicts") or {}
    library = built.get("Build Dependencies", {}).get("blas", {})
    return {
        "name": library.get("name"),
        "version": library.get("version"),
        "core": None,
        "threads": None,
    }


def _cpus() -> int | None:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
