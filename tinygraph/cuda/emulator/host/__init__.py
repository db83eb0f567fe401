"""CUDA programs: a file with `main`, cudaMalloc and <<<>>>, run as it stands.

launches.py   the source: launches become calls, kernels that are used by address are made known
building.py   a program: compiled, and linked with the run time
program.py    its process: started, watched, its findings read
refused.py    what the emulator does not have, by name, with the way out
include/      the CUDA runtime API as a program sees it
runtime/      the same, on top of the emulator's run time (C)
"""
