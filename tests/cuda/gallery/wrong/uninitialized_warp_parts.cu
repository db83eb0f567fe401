// about: a block of four warps, but the second stage adds 32 parts of which four were written
// launch: --kernel block_total --grid 1 --block 128 --arg "x=rng.random(128)"
// launch: --arg "y=empty(1)"
// expect: uninitialized
__inline__ __device__ float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}

__global__ void block_total(const float* x, float* y) {
  static __shared__ float shared[32];
  int lane = threadIdx.x % 32;
  int wid = threadIdx.x / 32;
  float val = warpReduceSum(x[threadIdx.x]);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  if (wid == 0) {
    val = warpReduceSum(shared[lane]);  // <- here
    if (lane == 0) y[0] = val;
  }
}
