// why: barriers before and after the inner loop, zeros where a tile leaves the matrix
// launch: --kernel matmul --grid 3x2 --block 8x8 --arg "A=rng.random((13,21))"
// launch: --arg "B=rng.random((21,19))" --arg "C=empty((13,19))" --arg M=13 --arg N=19 --arg K=21
// launch: --define TS=8
// equals: C = A @ B
#ifndef TS
#define TS 16
#endif
extern "C" __global__ void __launch_bounds__(TS * TS)
matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
       const int M, const int N, const int K)
{
    __shared__ float As[TS][TS], Bs[TS][TS];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TS + ty, col = blockIdx.x * TS + tx;
    float acc = 0.f;
    for (int k0 = 0; k0 < K; k0 += TS) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.f;
        Bs[ty][tx] = col < N && k0 + ty < K ? B[(k0 + ty) * N + col] : 0.f;
        __syncthreads();
        for (int k = 0; k < TS; ++k) acc += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
