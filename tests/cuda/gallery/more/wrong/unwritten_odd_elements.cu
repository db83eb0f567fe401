// about: pairs are summed, and an odd one at the end is left out
// launch: --kernel pairs --grid 1 --block 8 --arg "x=rng.random(15)" --arg "y=empty(8)" --arg n=15
// expect: unwritten-output
// array: y
__global__ void pairs(const float* x, float* y, int n)
{
    int i = 2 * threadIdx.x;
    if (i + 1 < n) y[threadIdx.x] = x[i] + x[i + 1];
}
