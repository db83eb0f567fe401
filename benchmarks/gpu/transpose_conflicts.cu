// about: a tile without padding; a warp reads a column of it, all of one bank: 32 wavefronts
// launch: --kernel transpose --grid 4x4 --block 32x8 --arg "a=rng.random((128,128))"
// launch: --arg "at=empty((128,128))" --arg n=128
__global__ void transpose(const float* a, float* at, int n)
{
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) at[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
