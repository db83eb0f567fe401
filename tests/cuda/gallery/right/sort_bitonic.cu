// why: of each pair only the lower index works, and a barrier ends each inner step
// launch: --kernel bitonic --grid 2 --block 128 --arg "keys=rng.integers(0,1000,(2,128))"
// equals: keys = np.sort(keys, 1)
__global__ void bitonic(int* keys)
{
    __shared__ int s[128];
    unsigned i = threadIdx.x;
    int* mine = keys + blockIdx.x * 128;
    s[i] = mine[i];
    __syncthreads();
    for (unsigned k = 2; k <= 128; k <<= 1) {
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            unsigned ixj = i ^ j;
            if (ixj > i) {
                int a = s[i], b = s[ixj];
                bool up = (i & k) == 0;
                if ((a > b) == up) { s[i] = b; s[ixj] = a; }
            }
            __syncthreads();
        }
    }
    mine[i] = s[i];
}
