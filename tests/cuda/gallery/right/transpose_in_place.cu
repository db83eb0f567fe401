// why: only the thread below the diagonal swaps its pair
// launch: --kernel transpose_in_place --grid 2x2 --block 16x16 --arg "m=rng.random((32,32))"
// equals: m = m.T
__global__ void transpose_in_place(float* m)
{
    const int n = gridDim.x * blockDim.x;
    const int r = blockIdx.y * blockDim.y + threadIdx.y;
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r <= c) return;
    float t = m[r * n + c];
    m[r * n + c] = m[c * n + r];
    m[c * n + r] = t;
}
