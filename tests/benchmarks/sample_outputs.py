"""What compute-sanitizer and ncu print, written after the samples in NVIDIA's documentation."""

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at saxpy(float, const float *, float *)+0x90 in saxpy.cu:7
=========     by thread (232,0,0) in block (3,0,0)
=========     Address 0x7f3c7ec00fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f3c7ec00000 of size 4000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x331d50] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at saxpy(float, const float *, float *)+0x90 in saxpy.cu:7
=========     by thread (233,0,0) in block (3,0,0)
=========     Address 0x7f3c7ec00fa4 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 25 errors
"""
MISALIGNED = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ read of size 8 bytes
=========     at pairs(const float *, float *)+0x120 in pairs.cu:6
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x4 is misaligned
=========
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
launched race_reverse_no_barrier
========= Error: Race reported between Write access at reverse(float *)+0xb0 in reverse.cu:28
=========     and Read access at reverse(float *)+0xc0 in reverse.cu:30 [1024 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at sum(int *)+0x70 in /tmp/x/sum.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at share(float *)+0xa0 in share.cu:8
=========     by thread (63,0,0) in block (0,0,0)
=========
========= Barrier error detected. Divergent thread(s) in warp.
=========     at share(float *)+0xf0 in share.cu:9
=========     by thread (19,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""
CLEAN = """\
========= COMPUTE-SANITIZER
launched transpose_padded
========= ERROR SUMMARY: 0 errors
"""
NO_HAZARD = """\
========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
STOPPED = "========= COMPUTE-SANITIZER\n"

NCU_HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)
NCU_ROW = (
    '"{id}","1234","python3.12","127.0.0.1","transpose(const float *, float *, int)","1","7",'
    '"(32, 8, 1)","(4, 4, 1)","0","9.0","Command line profiler metrics","{name}",'
    '"{unit}","{value}"\n'
)
NCU_START = """\
==PROF== Connected to process 1234 (/usr/bin/python3.12)
==PROF== Profiling "transpose" - 0: 0%....50%....100% - 1 pass
launched transpose_conflicts
==PROF== Disconnected from process 1234
"""
NCU_REFUSED = """\
==PROF== Connected to process 1234 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
Counters on the target device 0.
==PROF== Disconnected from process 1234
"""


def ncu_table(values: dict[str, object], launch: int = 0) -> str:
    """The CSV of one launch, with commas between thousands as ncu prints them."""
    rows = [
        NCU_ROW.format(
            id=launch, name=name, unit="", value=value if isinstance(value, str) else f"{value:,}"
        )
        for name, value in values.items()
    ]
    return "".join(rows)
