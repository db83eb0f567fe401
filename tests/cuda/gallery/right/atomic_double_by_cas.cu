// why: an atomic maximum of doubles built from a compare-and-swap loop over the bits
// launch: --kernel highest --grid 4 --block 64 --arg "x=rng.standard_normal(256)"
// launch: --arg "top=full(1,-100)"
// equals: top = x.max(keepdims=True)
__device__ double atomicMaxDouble(double* address, double value) {
    unsigned long long* bits = (unsigned long long*)address;
    unsigned long long old = atomicCAS(bits, 0ULL, 0ULL), assumed;
    do {
        assumed = old;
        if (__longlong_as_double(assumed) >= value) break;
        old = atomicCAS(bits, assumed, (unsigned long long)__double_as_longlong(value));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void highest(const double* x, double* top) {
    atomicMaxDouble(top, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
