// why: each level of the up- and down-sweep opens with a barrier; the loops are uniform
// launch: --kernel prescan --grid 1 --block 64 --shared 512 --arg "out=empty(128)"
// launch: --arg "src=rng.random(128)" --arg n=128
// equals: out = np.cumsum(src, dtype=np.float64) - src
__global__ void prescan(float *out, const float *src, int n)
{
  extern __shared__ float temp[];
  int thid = threadIdx.x;
  int offset = 1;
  temp[2 * thid] = src[2 * thid];
  temp[2 * thid + 1] = src[2 * thid + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      temp[bi] += temp[ai];
    }
    offset *= 2;
  }
  if (thid == 0) temp[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      float t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  __syncthreads();
  out[2 * thid] = temp[2 * thid];
  out[2 * thid + 1] = temp[2 * thid + 1];
}
