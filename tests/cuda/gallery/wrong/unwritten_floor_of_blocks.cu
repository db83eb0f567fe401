// about: the grid is n / block rounded down, so the tail of the output is never written
// launch: --kernel square --grid 3 --block 256 --arg "x=rng.random(1000)"
// launch: --arg "y=empty(1000)"
// launch: --arg n=1000
// expect: unwritten-output
// array: y
__global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
