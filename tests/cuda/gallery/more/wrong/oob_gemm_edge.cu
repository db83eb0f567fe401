// about: a tiled product whose loads are not guarded where the matrix ends
// launch: --kernel gemm --grid 2x2 --block 8x8 --arg "a=rng.random((12,12))" --arg "b=rng.random((12,12))"
// launch: --arg "c=inout(zeros((12,12)))" --arg n=12
// expect: out-of-bounds
__global__ void gemm(const float* a, const float* b, float* c, int n)
{
    __shared__ float s[8][8], t[8][8];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 8) {
        s[y][x] = a[row * n + k + x];  // <- here
        t[y][x] = b[(k + y) * n + column];  // <- here
        __syncthreads();
        for (int i = 0; i < 8; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}
