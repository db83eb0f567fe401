// why: the next tile goes into the other buffer, so one barrier a round is enough
// launch: --kernel "gemm_db<float, 16>" --grid 2x2 --block 16x16 --arg "A=rng.random((32,64))"
// launch: --arg "B=rng.random((64,32))" --arg "C=empty((32,32))" --arg n=32 --arg K=64
// equals: C = A @ B
template <typename real, int S>
__global__ void gemm_db(const real* A, const real* B, real* C, int n, int K) {
  __shared__ real a[2][S][S];
  __shared__ real b[2][S][S];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * S + ty, col = blockIdx.x * S + tx;
  real sum = real(0);
  int buf = 0;
  a[0][ty][tx] = A[row * K + tx];
  b[0][ty][tx] = B[ty * n + col];
  __syncthreads();
  for (int k0 = 0; k0 < K; k0 += S) {
    if (k0 + S < K) {
      a[buf ^ 1][ty][tx] = A[row * K + k0 + S + tx];
      b[buf ^ 1][ty][tx] = B[(k0 + S + ty) * n + col];
    }
#pragma unroll
    for (int k = 0; k < S; ++k) sum += a[buf][ty][k] * b[buf][k][tx];
    buf ^= 1;
    __syncthreads();
  }
  C[row * n + col] = sum;
}
