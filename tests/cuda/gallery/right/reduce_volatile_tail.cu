// why: the old volatile tail, mended: a __syncwarp after each step, and nobody reads outside
// launch: --kernel sum_block --grid 4 --block 64 --arg "g=rng.random(256)"
// launch: --arg "part=empty(4)"
// equals: part = g.reshape(4, 64).sum(1)
__device__ void warpReduce(volatile double* s, unsigned tid) {
  s[tid] += s[tid + 32]; __syncwarp();
  if (tid < 16) s[tid] += s[tid + 16];
  __syncwarp();
  if (tid < 8) s[tid] += s[tid + 8];
  __syncwarp();
  if (tid < 4) s[tid] += s[tid + 4];
  __syncwarp();
  if (tid < 2) s[tid] += s[tid + 2];
  __syncwarp();
  if (tid < 1) s[tid] += s[tid + 1];
}

__global__ void sum_block(const double* g, double* part) {
  __shared__ double sdata[64];
  unsigned tid = threadIdx.x;
  sdata[tid] = g[blockIdx.x * 64 + tid];
  __syncthreads();
  if (tid < 32) warpReduce(sdata, tid);
  if (tid == 0) part[blockIdx.x] = sdata[0];
}
