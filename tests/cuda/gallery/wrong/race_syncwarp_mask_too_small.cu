// about: each half of a warp waits for itself only, then reads what the other half wrote
// launch: --kernel mirror --grid 1 --block 32 --arg "x=arange(32)" --arg "y=empty(32)"
// expect: race
// also: uninitialized
__global__ void mirror(const int* x, int* y) {
    __shared__ int s[32];
    int lane = threadIdx.x;
    s[lane] = x[lane];  // <- here
    if (lane < 16)
        __syncwarp(0x0000ffffu);
    else
        __syncwarp(0xffff0000u);
    y[lane] = s[31 - lane];  // <- here
}
