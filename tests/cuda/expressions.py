"""C++ expressions, evaluated element by element by a kernel on the emulator."""

import numpy as np

from tinygraph.cuda import Kernel

THREADS = 64


def evaluate(expressions, result, **arrays):
    """Each C++ expression over the arrays' elements, as one kernel with a switch."""
    cases = "\n".join(f"case {i}: y[i] = {e}; break;" for i, e in enumerate(expressions))
    parameters = ", ".join(f"const {kind}* {name}_" for name, (kind, _) in arrays.items())
    values = "\n".join(f"const {kind} {name} = {name}_[i];" for name, (kind, _) in arrays.items())
    source = f"""__global__ void evaluate({parameters}, {result}* y, int n, int which) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        {values}
        switch (which) {{ {cases} }} }}"""
    kernel = Kernel(source, "evaluate")
    inputs = [array for _, array in arrays.values()]
    out = {}
    for which, expression in enumerate(expressions):
        y = np.zeros(inputs[0].size, DTYPES[result])
        kernel(-(-y.size // THREADS), THREADS, *inputs, y, y.size, which)
        out[expression] = y
    return out


DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
}
