// why: value and index travel together through shuffles and one struct of shared memory a warp
// launch: --kernel argmax --grid 5 --block 64 --arg "x=rng.standard_normal((5,150))"
// launch: --arg "y=empty(5)"
// launch: --arg n=150
// equals: y = x.argmax(1)
struct Best { float value; int index; };

__device__ Best better(Best a, Best b) {
  return (b.value > a.value || (b.value == a.value && b.index < a.index)) ? b : a;
}

__device__ Best warp_best(Best mine) {
  for (int o = 16; o; o >>= 1) {
    Best other;
    other.value = __shfl_down_sync(0xffffffffu, mine.value, o);
    other.index = __shfl_down_sync(0xffffffffu, mine.index, o);
    mine = better(mine, other);
  }
  return mine;
}

__global__ void argmax(const float* x, int* y, int n) {
  __shared__ Best part[2];
  Best mine = {-3.0e38f, n};
  for (int c = threadIdx.x; c < n; c += blockDim.x) {
    Best here = {x[blockIdx.x * n + c], c};
    mine = better(mine, here);
  }
  mine = warp_best(mine);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = better(part[0], part[1]).index;
}
