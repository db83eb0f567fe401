// about: the old reduction tail: volatile shared memory and no __syncwarp between the steps
// launch: --kernel sum_block --grid 4 --block 64 --arg "g=rng.random(256)"
// launch: --arg "part=empty(4)"
// expect: race
__device__ void warpReduce(volatile float* sdata, unsigned int tid) {
  sdata[tid] += sdata[tid + 32];  // <- here
  sdata[tid] += sdata[tid + 16];  // <- here
  sdata[tid] += sdata[tid + 8];   // <- here
  sdata[tid] += sdata[tid + 4];   // <- here
  sdata[tid] += sdata[tid + 2];   // <- here
  sdata[tid] += sdata[tid + 1];   // <- here
}

__global__ void sum_block(const float* g, float* part) {
  __shared__ float sdata[64];
  unsigned int tid = threadIdx.x;
  sdata[tid] = g[blockIdx.x * 64 + tid];
  __syncthreads();
  if (tid < 32) warpReduce(sdata, tid);
  if (tid == 0) part[blockIdx.x] = sdata[0];
}
