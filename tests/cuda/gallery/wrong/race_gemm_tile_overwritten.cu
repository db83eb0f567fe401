// about: tiled GEMM without the barrier at the end of the loop: a tile is overwritten while read
// launch: --kernel "matmul<16>" --grid 2x2 --block 16x16 --arg "A=rng.random((32,48))"
// launch: --arg "B=rng.random((48,32))" --arg "C=empty((32,32))" --arg M=32 --arg N=32 --arg K=48
// expect: race
template <int TILE>
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float Asub[TILE][TILE];
    __shared__ float Bsub[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float value = 0.0f;
    for (int m = 0; m < K / TILE; ++m) {
        Asub[threadIdx.y][threadIdx.x] = A[row * K + m * TILE + threadIdx.x];  // <- here
        Bsub[threadIdx.y][threadIdx.x] = B[(m * TILE + threadIdx.y) * N + col];  // <- here
        __syncthreads();
        for (int e = 0; e < TILE; ++e)
            value += Asub[threadIdx.y][e] * Bsub[e][threadIdx.x];  // <- here
    }
    C[row * N + col] = value;
}
