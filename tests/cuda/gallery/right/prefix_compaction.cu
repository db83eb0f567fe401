// why: a scan of the flags in shared memory gives each kept element its own place
// launch: --kernel keep_even --grid 1 --block 128 --arg x=int32[128]:randint(0,1000)
// launch: --arg y=int32[128]:full(-1):inout --arg kept=int32[1]:empty
// equals: y = np.concatenate([x[x % 2 == 0], np.full((x % 2 == 1).sum(), -1)])
__global__ void keep_even(const int* x, int* y, int* kept) {
    __shared__ unsigned short place[128];
    const int t = threadIdx.x;
    const int even = x[t] % 2 == 0;
    place[t] = even;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        const unsigned short left = t >= d ? place[t - d] : 0;
        __syncthreads();
        place[t] += left;
        __syncthreads();
    }
    if (even) y[place[t] - 1] = x[t];
    if (t == 127) *kept = place[127];
}
