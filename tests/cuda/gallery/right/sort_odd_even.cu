// why: a barrier after the even phase and one after the odd phase; the last thread skips work only
// launch: --kernel odd_even --grid 1 --block 32 --arg "a=rng.integers(0,100,64)"
// equals: a = np.sort(a)
__device__ void order(int* p, int* q) {
    int u = *p, v = *q;
    if (u > v) {
        *p = v;
        *q = u;
    }
}

__global__ void odd_even(int* a)
{
    __shared__ int s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    s[t + 32] = a[t + 32];
    __syncthreads();
    for (int round = 0; round < 32; ++round) {
        order(&s[2 * t], &s[2 * t + 1]);
        __syncthreads();
        if (t < 31) order(&s[2 * t + 1], &s[2 * t + 2]);
        __syncthreads();
    }
    a[t] = s[t];
    a[t + 32] = s[t + 32];
}
