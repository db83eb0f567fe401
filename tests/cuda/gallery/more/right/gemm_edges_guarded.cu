// why: a tiled product with zeros beyond the edge, so that every thread meets every barrier
// launch: --kernel gemm<8> --grid 2x2 --block 8x8 --arg "a=rng.random((12,10))" --arg "b=rng.random((10,13))"
// launch: --arg "c=empty((12,13))" --arg m=12 --arg n=13 --arg k=10
// equals: c = a @ b
template <int T> __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k)
{
    __shared__ float s[T][T], t[T][T];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, column = blockIdx.x * T + x;
    float sum = 0;
    for (int p = 0; p < k; p += T) {
        s[y][x] = row < m && p + x < k ? a[row * k + p + x] : 0;
        t[y][x] = p + y < k && column < n ? b[(p + y) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
