// why: a grid-stride loop; the grid has fewer threads than there are elements
// launch: --kernel saxpy --grid 3 --block 32 --arg a=2.5 --arg "x=rng.random(500)" --arg "y=rng.random(500)" --arg n=500
// equals: y = 2.5 * x + y
__global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = fmaf(a, __ldg(x + i), y[i]);
}
