// about: a three-point stencil reads one element past the end at the right edge
// launch: --kernel stencil3 --grid 4 --block 256 --arg x=float32[1000]:rand
// launch: --arg y=float32[1000]:empty --arg n=1000
// expect: out-of-bounds
extern "C" __global__ void stencil3(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = (i > 0) ? x[i - 1] : 0.0f;
    float right = (i < n) ? x[i + 1] : 0.0f;  // <- here
    y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;
}
