// why: lanes near the end take sums from lanes outside of the mask, and throw them away
// launch: --kernel warp_sums --grid 2 --block 44 --arg "x=rng.random(88)" --arg "y=empty(4)"
// equals: y = np.array([x[0:32].sum(), x[32:44].sum(), x[44:76].sum(), x[76:88].sum()])
__global__ void warp_sums(const float* x, float* y)
{
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const int lanes = min(32, (int)blockDim.x - 32 * warp);
    const unsigned mask = __ballot_sync(0xffffffffu >> (32 - lanes), true);
    float sum = x[blockIdx.x * blockDim.x + t];
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_down_sync(mask, sum, offset);
        if (lane + offset < lanes) sum += other;
    }
    if (lane == 0) y[blockIdx.x * 2 + warp] = sum;
}
