// why: the first RADIUS threads fill both halos, then one barrier
// launch: --kernel stencil_1d --grid 4 --block 64 --arg "d_in=rng.integers(0,100,256)"
// launch: --arg "d_out=empty(256)" --arg n=256
// equals: d_out = np.convolve(d_in, np.ones(7, np.int32), 'same')
#define RADIUS 3
#define BLOCK_SIZE 64

__global__ void stencil_1d(const int *d_in, int *d_out, int n) {
  __shared__ int temp[BLOCK_SIZE + 2 * RADIUS];
  int gindex = threadIdx.x + blockIdx.x * blockDim.x;
  int lindex = threadIdx.x + RADIUS;
  temp[lindex] = d_in[gindex];
  if (threadIdx.x < RADIUS) {
    int left = gindex - RADIUS, right = gindex + BLOCK_SIZE;
    temp[lindex - RADIUS] = left >= 0 ? d_in[left] : 0;
    temp[lindex + BLOCK_SIZE] = right < n ? d_in[right] : 0;
  }
  __syncthreads();
  int result = 0;
  for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[lindex + offset];
  d_out[gindex] = result;
}
