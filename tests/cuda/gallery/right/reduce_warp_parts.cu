// why: two stages of shuffles; lanes without a part put in a zero before the full-mask shuffle
// launch: --kernel block_sum --grid 3 --block 160 --arg "x=rng.random(480)"
// launch: --arg "y=empty(3)"
// equals: y = x.reshape(3, 160).sum(1)
__inline__ __device__ float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}

__global__ void block_sum(const float* x, float* y) {
  static __shared__ float shared[32];
  int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  float val = warpReduceSum(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0.0f;
  if (wid == 0) val = warpReduceSum(val);
  if (threadIdx.x == 0) y[blockIdx.x] = val;
}
