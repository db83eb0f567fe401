// why: a mask of n lanes for n up to 32, made without a shift by 32
// launch: --kernel masks --grid 1 --block 33 --arg "y=empty(33)"
// equals: y = (2 ** np.arange(33, dtype=np.uint64) - 1).astype(np.uint32)
__global__ void masks(unsigned* y)
{
    unsigned n = threadIdx.x;
    y[n] = n ? 0xffffffffu >> (32 - n) : 0;
}
