"""`make gpu`: everything that only a GPU can show, measured by one command and put on one page.

    python -m benchmarks.gpu [--only SECTION] [--quick] [--output FOLDER] [--rehearse]

    suite       the tests, those on device "cuda" counted apart
    verdicts    the checker's verdicts on the gallery beside compute-sanitizer's
    counts      its sectors, wavefronts and bank conflicts beside the profiler's, ncu
    gemm        matrix products as a share of cuBLAS, strict float32 and tf32
    conv        convolution, forward and backward, beside cuDNN through PyTorch
    steps       training steps of three networks beside PyTorch, eager and compiled

A section is one file with a function `run(room)`.  It fails alone: its error is on the page, and
the others go on.  What is missing on a machine (PyTorch, ncu, compute-sanitizer, matplotlib) is
left out aloud.

Without a GPU the command says so in one line and ends with code 3.  `--rehearse` then runs every
section as far as it goes, on numpy and the emulator with tiny sizes, and writes a page that says
REHEARSAL, NOT MEASURED.  Its figures mean nothing: they show that the command works.
"""
