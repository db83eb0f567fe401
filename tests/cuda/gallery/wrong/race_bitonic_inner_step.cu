// about: bitonic sort with its barrier in the outer loop only
// launch: --kernel bitonic --grid 1 --block 256 --arg "keys=rng.integers(0,1000,256)"
// expect: race
__global__ void bitonic(int* keys)
{
    __shared__ int s[256];
    unsigned i = threadIdx.x;
    s[i] = keys[i];
    for (unsigned k = 2; k <= 256; k <<= 1) {
        __syncthreads();
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            unsigned ixj = i ^ j;
            if (ixj > i) {
                int a = s[i], b = s[ixj];  // <- here
                bool up = (i & k) == 0;
                if ((a > b) == up) {
                    s[i] = b;  // <- here
                    s[ixj] = a;  // <- here
                }
            }
        }
    }
    __syncthreads();
    keys[i] = s[i];
}
