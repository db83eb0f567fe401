// about: a gather through an index table that holds rubbish: eight gigabytes away
// launch: --kernel gather --grid 1 --block 64 --arg "table=rng.random(1024)"
// launch: --arg "index=full(64,2000000000)" --arg "picked=empty(64)" --arg n=64
// expect: out-of-bounds
extern "C" __global__ void
gather (const float *table, const int *index, float *picked, int n)
{
  int i = threadIdx.x;
  if (i < n)
    picked[i] = table[index[i]];  // <- here
}
