// about: Blelloch scan: one barrier of the down-sweep is missing
// launch: --kernel prescan --grid 1 --block 64 --shared 512 --arg "out=empty(128)"
// launch: --arg "in=ones(128)" --arg n=128
// expect: race
__global__ void prescan(float *out, const float *in, int n)
{
  extern __shared__ float temp[];
  int thid = threadIdx.x;
  int offset = 1;
  temp[2 * thid] = in[2 * thid];
  temp[2 * thid + 1] = in[2 * thid + 1];
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
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      float t = temp[ai];  // <- here
      temp[ai] = temp[bi];  // <- here
      temp[bi] += t;  // <- here
    }
  }
  __syncthreads();
  out[2 * thid] = temp[2 * thid];
  out[2 * thid + 1] = temp[2 * thid + 1];
}
