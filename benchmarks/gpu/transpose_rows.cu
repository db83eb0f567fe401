// about: each thread moves one element; a warp reads a row, and writes a column: 32 sectors
// launch: --kernel transpose --grid 4x32 --block 32x4 --arg "a=rng.random((128,128))"
// launch: --arg "at=empty((128,128))" --arg n=128
__global__ void transpose(const float* a, float* at, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    at[x * n + y] = a[y * n + x];
}
