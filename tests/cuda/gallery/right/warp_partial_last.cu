// why: a block of 44: the mask of the last warp names its twelve lanes, and width guards sources
// launch: --kernel pair_max --grid 1 --block 44 --arg "x=rng.standard_normal(44)"
// launch: --arg "y=empty(44)"
// equals: y = np.maximum(x[0::2], x[1::2]).repeat(2)
__global__ void pair_max(const float* x, float* y)
{
    int t = threadIdx.x;
    int left = blockDim.x - (t & ~31);
    unsigned mask = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
    float v = x[t];
    y[t] = fmaxf(v, __shfl_xor_sync(mask, v, 1));
}
