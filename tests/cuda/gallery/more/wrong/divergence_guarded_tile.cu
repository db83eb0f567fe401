// about: threads beyond the edge skip the whole loop, barriers too
// launch: --kernel sum --grid 2 --block 64 --arg "x=rng.random(100)" --arg "y=inout(zeros(2))" --arg n=100
// expect: barrier-divergence
// also: race
__global__ void sum(const float* x, float* y, int n)
{
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : 0;
    if (i < n) {
        for (int step = 32; step > 0; step /= 2) {
            __syncthreads();  // <- here
            if (t < step) s[t] += s[t + step];  // <- here
        }
        if (t == 0) y[blockIdx.x] = s[0];
    }
}
