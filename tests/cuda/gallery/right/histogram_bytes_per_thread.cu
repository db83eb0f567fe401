// why: neighbouring threads own neighbouring bytes of one word; byte stores do not touch the rest
// launch: --kernel histogram4 --grid 1 --block 64 --arg "data=rng.integers(0,4,1024)"
// launch: --arg "hist=empty(4)" --arg n=1024
// equals: hist = np.bincount(data, minlength=4)
typedef unsigned char byte;

__global__ void histogram4(const byte* data, int* hist, int n) {
    __shared__ byte counts[4][64];
    const int t = threadIdx.x;
    for (int b = 0; b < 4; ++b) counts[b][t] = 0;
    for (int i = t; i < n; i += 64) ++counts[data[i]][t];
    __syncthreads();
    if (t < 4) {
        int total = 0;
        for (int k = 0; k < 64; ++k) total += counts[t][k];
        hist[t] = total;
    }
}
