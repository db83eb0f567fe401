// why: the two halves of a warp go separate ways, each with its own mask and its own data
// launch: --kernel halves --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)"
// equals: y = np.concatenate([x[15::-1], x[16:] + x[np.r_[17:32, 16]]])
__global__ void halves(const int* x, int* y)
{
    __shared__ int s[32];
    const unsigned lane = threadIdx.x;
    s[lane] = x[lane];
    if (lane < 16) {
        __syncwarp(0x0000ffff);
        y[lane] = s[15 - lane];
    } else {
        __syncwarp(0xffff0000);
        y[lane] = s[lane] + s[16 + (lane + 1) % 16];
    }
}
