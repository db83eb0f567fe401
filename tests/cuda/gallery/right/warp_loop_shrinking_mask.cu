// why: the mask is taken again in each round, before any lane leaves the loop
// launch: --kernel collatz --grid 1 --block 32 --arg "x=rng.integers(1,60,32)"
// launch: --arg "steps=empty(32)" --arg "busiest=empty(1)"
// equals: steps = np.array([(lambda f: f(f, v))(lambda f, v:
//     0 if v == 1 else 1 + f(f, 3 * v + 1 if v % 2 else v // 2)) for v in x])
// equals: busiest = (x != 1).sum(keepdims=True)
__global__ void collatz(const int* x, int* steps, int* busiest) {
  int v = x[threadIdx.x], n = 0, most = 0;
  unsigned mask = __ballot_sync(0xffffffffu, v != 1);
  while (v != 1) {
    int lanes = __popc(mask);
    if (lanes > most) most = lanes;
    v = (v & 1) ? 3 * v + 1 : v / 2;
    ++n;
    mask = __ballot_sync(mask, v != 1);
  }
  __syncwarp();
  steps[threadIdx.x] = n;
  for (int o = 16; o; o /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, o));
  if (threadIdx.x == 0) *busiest = most;
}
