// about: a three-point stencil reads one element past the end at the right edge
// launch: --kernel stencil3 --grid 4 --block 256 --arg "x=rng.random(1000)"
// launch: --arg "y=empty(1000)" --arg n=1000
// expect: out-of-bounds
extern "C" __global__ void stencil3(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = (i > 0) ? x[i - 1] : 0.0f;
    float right = (i < n) ? x[i + 1] : 0.0f;  // <- here
    y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
}
