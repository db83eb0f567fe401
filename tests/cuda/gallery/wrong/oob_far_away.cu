// about: a gather through an index table that holds rubbish: eight gigabytes away
// launch: --kernel gather --grid 1 --block 64 --arg table=float32[1024]:rand
// launch: --arg index=int32[64]:full(2000000000) --arg picked=float32[64]:empty --arg n=64
// expect: out-of-bounds
extern "C" __global__ void
gather (const float *table, const int *index, float *picked, int n)
{
  int i = threadIdx.x;
  if (i < n)
    picked[i] = table[index[i]];  // <- here
}
