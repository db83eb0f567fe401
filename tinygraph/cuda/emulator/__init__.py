"""CUDA kernels on a CPU: the same .cu files, and a checker that watches every access.

translate.py    the source as C++: only declarations of shared memory are rewritten
compiler.py     the compiler of the machine; libraries that are compiled once
native.py       a kernel that is loaded and launched; loading.py, each once in a process
checker.py      a launch in which every access is looked at
findings.py     what it found, and a report; telling.py, how it comes to its words
again.py        a second launch, on other copies of the arrays
copies.py       the arrays of such a launch, far from each other
locals.py       whether a source may hold undefined values, which a second launch follows
trials.py       undefined values where no clang is there to follow them
books.py        what the checker's part of the run time keeps
lines.py        from a program counter to a source line
operations.py   floating-point operations, counted
include/        what a kernel sees: CUDA's keywords, types, functions
runtime/        fibers, barriers, warps, launches; races, bounds, counts (C)
"""
