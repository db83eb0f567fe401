"""ncu, the profiler: which metrics answer to the checker's counts, and its CSV.

    "ID",...,"Kernel Name",...,"Section Name","Metric Name","Metric Unit","Metric Value"
    "0",...,"transpose",...,"Command line profiler metrics","l1tex__...sum","sector","1,024"

Lines of the program and of the profiler (==PROF==) stand before the header.  Numbers have commas
between thousands.

Source: https://docs.nvidia.com/nsight-compute/NsightComputeCli/ and the metrics table in
https://docs.nvidia.com/nsight-compute/ProfilingGuide/.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

# the checker's count: (space, access, quantity) -> ncu's metric
METRICS = {
    ("global", "load", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ("global", "load", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global", "store", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ("global", "store", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("shared", "load", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared", "store", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("shared", "load", "conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ("shared", "store", "conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}


# what the profiler says of a kernel: our word -> ncu's metric
OF_KERNELS = {
    "ns": "gpu__time_duration.sum",
    "instructions": "smsp__inst_executed.sum",  # of warps
    "multiply-adds": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",  # of threads
    "bytes": "dram__bytes.sum",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}


def parse(text: str) -> dict[str, float]:
    """Metric -> value, summed over the launches in the text; n/a is left out.

    Raises
    ------
    ValueError
        If there is no table in the text; the message has the profiler's own words.
    """
    values: dict[str, float] = {}
    for _, name, value in _rows(text):
        values[name] = values.get(name, 0.0) + value
    return values


def by_kernel(text: str) -> dict[str, list[dict[str, float]]]:
    """Kernel -> for each of its launches, metric -> value.  ValueError as in `parse`."""
    launches: dict[tuple[str, str], dict[str, float]] = {}
    for (number, kernel), name, value in _rows(text):
        launches.setdefault((number, kernel), {})[name] = value
    found: dict[str, list[dict[str, float]]] = {}
    for (_, kernel), metrics in launches.items():
        found.setdefault(kernel, []).append(metrics)
    return found


def _rows(text: str) -> Iterator[tuple[tuple[str, str], str, float]]:
    """Number and kernel of a launch, metric, value."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = [line for line in lines if line.startswith("==")] or lines[-3:]
        raise ValueError("ncu printed no table: " + " ".join(said)[:400])
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        name, value = row.get("Metric Name"), (row.get("Metric Value") or "").replace(",", "")
        try:
            number = float(value)
        except ValueError:
            continue
        if name:
            kernel = re.sub(r"\(.*|<.*|^void ", "", row.get("Kernel Name") or "")
            yield (row.get("ID") or "", kernel), name, number
