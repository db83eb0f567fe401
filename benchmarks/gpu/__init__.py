"""`make gpu`: everything that only a GPU can show, measured by one command and put on one page.

    python -m benchmarks.gpu [--only SECTION] [--minutes N] [--continue] [--quick]
                             [--output FOLDER] [--rehearse]

GPUs are lent by the minute.  So a section is short, what matters comes first, each is a process of
its own with a limit, and what it has found is on the page at once:

    correct     smoke       a handful of results against numpy; the first wrong one ends it all
                suite       the tests of kernels, plans and captured steps, a process for each file
    fast        ceilings    what copies and cuBLAS reach on this GPU
                steps       training steps of three networks beside PyTorch
                networks    those of networks that people know: LeNet-5, a ResNet-18, SRCNN, a GPT
                gemm        matrix products as a share of cuBLAS, strict float32 and tf32
                conv        convolution, forward and backward, beside cuDNN through PyTorch
                profile     instructions, bytes and time of the main kernels, by the profiler, ncu
    safe        safe        every kernel once under compute-sanitizer: memcheck, then racecheck
    choices     variants    steps of GEMM, tiles, chunks, fused backward, capture beside the others
                host_time   microseconds of Python for each op
    more        compiled    the seed network's step beside torch.compile
                verdicts    the checker's verdicts on the gallery beside compute-sanitizer's
                counts      its sectors, wavefronts and bank conflicts beside the profiler's

A section is one file with a function `run(room)`.  It fails alone: its error is on the page, and
the others go on.  What is missing on a machine (PyTorch, ncu, compute-sanitizer, matplotlib) is
left out aloud.  `--minutes 9` begins no section that may not end in time, and `--continue` goes on
where an earlier call was stopped, on the page of the same GPU and day.

Without a GPU the command says so in one line and ends with code 3.  `--rehearse` then runs every
section as far as it goes, on numpy and the emulator with tiny sizes, and writes a page that says
REHEARSAL, NOT MEASURED.  Its figures mean nothing: they show that the command works.
"""

# Seconds that a section may take, in the order in which they run.
SECTIONS = {
    "smoke": 90,
    "suite": 360,
    "ceilings": 60,
    "steps": 150,
    "networks": 120,
    "gemm": 150,
    "conv": 150,
    "profile": 150,
    "safe": 400,
    "variants": 200,
    "host_time": 60,
    "compiled": 400,
    "verdicts": 400,
    "counts": 200,
}
