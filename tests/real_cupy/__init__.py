"""The real CuPy on a driver that needs no GPU.

    driver/            CUDA run time and driver in C++: memory of the host, launches told to Python
    install.py         what it needs, by pip
    build.py           CuPy's own module `runtime`, built anew against it
    machine.py         puts both into this process, and counts calls and broken rules
    launches.py        runs a launch: tinygraph's kernels in the emulator, CuPy's own in numpy
    run.py             runs a module of ours with them: `make gpu`, rehearsed
    plugin.py          a plugin of pytest: device "cuda" of the tests is that one
    selection.py       the tests that mean device "cuda", there and on a GPU

`make test-cupy` runs them.  All of CuPy is real but for the one module, whose source is CuPy's too:
argument packing, memory pools, streams, captures, compilation by NVRTC.  What is not real is time,
and order: everything runs at once.  tests/fake_cupy is for order: it runs work as late as it may.
"""
