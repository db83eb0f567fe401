// why: two buffers take turns, so a step never reads what it writes; one barrier a step is enough
// launch: --kernel scan --grid 1 --block 200 --shared 1600 --arg "g_in=rng.integers(0,9,200)"
// launch: --arg "g_out=empty(200)" --arg n=200
// equals: g_out = np.cumsum(g_in) - g_in
__global__ void scan(int *g_out, const int *g_in, int n)
{
  extern __shared__ int temp[];
  int thid = threadIdx.x;
  int pout = 0, pin = 1;
  temp[pout * n + thid] = (thid > 0) ? g_in[thid - 1] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    pout = 1 - pout;
    pin = 1 - pout;
    if (thid >= offset)
      temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
    else
      temp[pout * n + thid] = temp[pin * n + thid];
    __syncthreads();
  }
  g_out[thid] = temp[pout * n + thid];
}
