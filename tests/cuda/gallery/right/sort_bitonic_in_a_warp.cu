// why: compare and exchange by shuffles, all 32 lanes in each step, no shared memory at all
// launch: --kernel sort32 --grid 4 --block 32 --arg "v=rng.standard_normal((4,32))"
// equals: v = np.sort(v, 1)
__global__ void sort32(float* v) {
  int lane = threadIdx.x;
  float mine = v[blockIdx.x * 32 + lane];
  for (int k = 2; k <= 32; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      float other = __shfl_xor_sync(0xffffffffu, mine, j);
      bool lower = (lane & j) == 0, ascending = (lane & k) == 0;
      mine = lower == ascending ? fminf(mine, other) : fmaxf(mine, other);
    }
  v[blockIdx.x * 32 + lane] = mine;
}
