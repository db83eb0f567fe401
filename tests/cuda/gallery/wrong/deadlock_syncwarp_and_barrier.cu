// about: one lane waits at the block's barrier, the rest of its warp waits for that lane
// launch: --kernel stuck --grid 1 --block 64 --arg "x=arange(64)" --arg "y=empty(64)"
// expect: deadlock, warp-sync
__global__ void stuck(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 31)
        __syncwarp();  // <- here
    __syncthreads();  // <- here
    y[t] = s[63 - t];
}
