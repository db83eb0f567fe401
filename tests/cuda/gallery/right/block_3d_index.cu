// why: a block of 4x5x6 threads: the linear index counts x first; its last warp is not full
// launch: --kernel linear --grid 2x1x2 --block 4x5x6 --arg "y=empty(480)"
// equals: y = np.arange(480).reshape(4, 120)[:, ::-1].reshape(480)
__global__ void linear(int* y) {
  __shared__ int s[120];
  int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  s[t] = block * 120 + t;
  __syncthreads();
  y[block * 120 + t] = s[119 - t];
}
