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


def parse(text: str) -> dict[str, float]:
    """Metric -> value, summed over the launches in the text; n/a is left out.

    Raises
    ------
    ValueError
        If there is no table in the text; the message has the profiler's own words.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = [line for line in lines if line.startswith("==")] or lines[-3:]
        raise ValueError("ncu printed no table: " + " ".join(said)[:400])
    values: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        name, value = row.get("Metric Name"), (row.get("Metric Value") or "").replace(",", "")
        try:
            number = float(value)
        except ValueError:
            continue
        if name:
            values[name] = values.get(name, 0.0) + number
    return values
