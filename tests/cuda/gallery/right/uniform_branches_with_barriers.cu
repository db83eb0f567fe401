// why: the two branches have barriers of their own, but a whole block takes one of them
// launch: --kernel by_block --grid 4 --block 64 --arg "x=rng.integers(0,99,(4,64))"
// launch: --arg "y=empty((4,64))"
// equals: y = np.where(np.arange(4)[:, None] % 2 == 0, x[:, ::-1], np.roll(x, 1, 1))
__global__ void by_block(const int* x, int* y) {
  __shared__ int s[64];
  int t = threadIdx.x, r = blockIdx.x * 64;
  if (blockIdx.x % 2 == 0) {
    s[t] = x[r + t];
    __syncthreads();
    y[r + t] = s[63 - t];
  } else {
    s[(t + 1) % 64] = x[r + t];
    __syncthreads();
    y[r + t] = s[t];
  }
}
