// why: many threads, one word each kind of atomic; no word is touched by a plain access
// launch: --kernel all_kinds --grid 4 --block 64 --arg "x=rng.integers(1,1000,256)"
// launch: --arg "r=zeros(7)" --arg "u=zeros(4)"
// equals: r[0] = x.sum()
// equals: r[1] = -x.sum()
// equals: r[2] = x.max()
// equals: r[3] = -x.max()
// equals: r[4] = np.bitwise_or.reduce(x)
// equals: r[5] = np.bitwise_xor.reduce(x)
// equals: r[6] = np.int32(0)
// equals: u = np.array([256 % 100, (-256) % 11, 1, 1])
extern "C" __global__ void all_kinds(const int *x, int *r, unsigned int *u)
{
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(r + 0, v);
  atomicSub(r + 1, v);
  atomicMax(r + 2, v);
  atomicMin(r + 3, -v);
  atomicOr(r + 4, v);
  atomicXor(r + 5, v);
  atomicAnd(r + 6, v);
  atomicInc(u + 0, 99u);
  atomicDec(u + 1, 10u);
  atomicExch(u + 2, 1u);
  atomicCAS(u + 3, 0u, 1u);
}
