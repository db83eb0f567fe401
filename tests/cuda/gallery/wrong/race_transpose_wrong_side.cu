// about: an in-place transpose of a square matrix swaps every pair twice, from both sides
// launch: --kernel transpose_in_place --grid 2x2 --block 16x16 --arg "m=rng.random((32,32))"
// expect: race
__global__ void transpose_in_place(float* m)
{
    const int n = gridDim.x * blockDim.x;
    const int r = blockIdx.y * blockDim.y + threadIdx.y;
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r == c) return;
    float t = m[r * n + c];   // <- here
    m[r * n + c] = m[c * n + r];   // <- here
    m[c * n + r] = t;   // <- here
}
